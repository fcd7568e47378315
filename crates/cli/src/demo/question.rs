//! What a person asks to have translated: a number, or words.

use attentive_text::tokenizer::Side;
use attentive_train::numbers::{self, LIMIT, Language};

/// A number below a million in English words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// The words, as the model has learned to read them.
    pub english: String,
    /// The number that they say, if they are spelled like those that the model learns from.
    pub number: Option<u32>,
}

impl Question {
    /// A number.
    pub(super) fn number(number: u32) -> Question {
        Question { english: Language::English.write(number), number: Some(number) }
    }

    /// Reads digits or words.
    pub(super) fn parse(text: &str) -> Result<Question, String> {
        let text = text.trim();
        let digits: String = text.chars().filter(|sign| !matches!(sign, ',' | '_' | '\'' | ' ')).collect();
        if !digits.is_empty() && digits.chars().all(|sign| sign.is_ascii_digit()) {
            let number = digits.parse().ok().filter(|&number| number < LIMIT);
            return number.map(Question::number).ok_or_else(|| format!("{text} is not below a million"));
        }
        let english = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        match unknown_word(&english) {
            Some(word) => Err(format!("`{word}` is not a word of an English number below a million")),
            None => Ok(Question { number: Language::read_english(&english), english }),
        }
    }
}

/// The first word that the model has no pieces for.
fn unknown_word(english: &str) -> Option<&str> {
    let tokenizer = numbers::tokenizer();
    let unknown = tokenizer.special(Side::Source).unk;
    let is_known = |word: &str| {
        let ids = tokenizer.encode(word, Side::Source).unwrap_or_default();
        ids.iter().all(|&id| Some(id) != unknown)
    };
    if english.is_empty() { Some("") } else { english.split(' ').find(|word| !is_known(word)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_words_are_the_same_question() {
        let expected =
            Question { english: "four thousand three hundred and twenty-one".into(), number: Some(4321) };
        for text in ["4321", "4,321", " 4 321\n", "Four  thousand three hundred and Twenty-one"] {
            assert_eq!(Question::parse(text), Ok(expected.clone()), "{text}");
        }
    }

    #[test]
    fn words_in_another_order_are_asked_but_say_no_number() {
        let question = Question::parse("one and twenty").unwrap();
        assert_eq!((question.english.as_str(), question.number), ("one and twenty", None));
    }

    #[test]
    fn what_no_number_is_made_of_is_named() {
        assert!(Question::parse("1000000").unwrap_err().contains("1000000"));
        assert!(Question::parse("99999999999999999999").is_err());
        assert!(Question::parse("two dozen").unwrap_err().contains("`dozen`"));
        assert!(Question::parse("-5").is_err());
        assert!(Question::parse(" ").is_err());
    }
}
