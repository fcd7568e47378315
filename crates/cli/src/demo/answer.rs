//! Translations of what a person has asked for.

use super::question::Question;
use super::translator::Translator;
use crate::error::Error;
use crate::words::thousands;
use attentive_train::numbers::Language;
use serde::Serialize;

/// A translation of something that was asked.
#[derive(Serialize)]
pub(super) struct Answer {
    number: Option<u32>,
    source: String,
    language: &'static str,
    translation: String,
    /// What it should be, where that is known.
    reference: Option<String>,
}

/// Each question in each language.
pub(super) fn answers(translator: &mut Translator, questions: &[Question]) -> Result<Vec<Answer>, Error> {
    let asked: Vec<(&Question, Language)> = questions
        .iter()
        .flat_map(|question| Language::TARGETS.map(|language| (question, language)))
        .collect();
    let sources: Vec<String> =
        asked.iter().map(|(question, language)| language.ask(&question.english)).collect();
    let translations = translator.translate(sources.iter().map(String::as_str))?;
    let answer = |((question, language), translation): (&(&Question, Language), String)| Answer {
        number: question.number,
        source: question.english.clone(),
        language: language.name(),
        translation,
        reference: question.number.map(|number| language.write(number)),
    };
    Ok(asked.iter().zip(translations).map(answer).collect())
}

/// What stands before each line of an answer, and is left free where it goes on.
const MARGIN: usize = 11;

/// Answers, each number once, with its translations below, in lines of at most `width` characters where words allow it.
pub(super) fn text(answers: &[Answer], width: usize) -> String {
    let mut text = String::new();
    let mut add = |name: &str, words: &str| {
        text.push_str(&format!("{name:>9}  {}\n", folded(words, width.saturating_sub(MARGIN))));
    };
    for answers in answers.chunk_by(|one, other| one.source == other.source) {
        let number = answers[0].number.map(|number| thousands(number as usize)).unwrap_or_default();
        add(&number, &answers[0].source);
        for Answer { language, translation, reference, .. } in answers {
            let verdict = match reference {
                Some(reference) if reference == translation => " ✓".to_owned(),
                Some(reference) => format!(" ✗ (expected: {reference})"),
                None => String::new(),
            };
            add(language, &format!("{}{verdict}", said(translation)));
        }
    }
    text
}

/// A translation as it is shown: one without a word is called so.
pub(super) fn said(translation: &str) -> &str {
    if translation.trim().is_empty() { "(nothing)" } else { translation }
}

/// Words in lines of at most `width` characters; further lines begin below the first.
fn folded(words: &str, width: usize) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in words.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push_str(&format!("\n{:MARGIN$}", ""));
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(language: &'static str, translation: &str) -> Answer {
        let (source, reference) = ("twenty-one".to_owned(), Some("vingt et un".to_owned()));
        Answer { number: Some(21), source, language, translation: translation.to_owned(), reference }
    }

    #[test]
    fn a_number_stands_above_its_translations_and_their_verdicts() {
        let answers = [answer("German", "einundzwanzig"), answer("French", "vingt et un")];
        let expected = concat!(
            "       21  twenty-one\n",
            "   German  einundzwanzig ✗ (expected: vingt et un)\n",
            "   French  vingt et un ✓\n"
        );
        assert_eq!(text(&answers, 80), expected);
    }

    #[test]
    fn a_model_that_says_nothing_is_shown_to_say_nothing() {
        let expected = concat!("       21  twenty-one\n", "   French  (nothing) ✗ (expected: vingt et un)\n");
        assert_eq!(text(&[answer("French", "")], 80), expected);
    }

    #[test]
    fn long_answers_go_on_below_their_beginning() {
        let expected = concat!("       21  twenty-one\n", "   French  vingt et\n", "           un ✓\n");
        assert_eq!(text(&[answer("French", "vingt et un")], 21), expected);
        assert_eq!(folded("einundzwanzig", 3), "einundzwanzig");
    }
}
