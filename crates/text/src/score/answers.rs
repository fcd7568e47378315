//! Answers to questions: how many are exact, and the F1 of their words, as the scripts of SQuAD count them.
//!
//! Answers are compared in small letters, without punctuation and articles. Of several known answers, the best one counts. Where the
//! text has no answer (version 2.0), to answer nothing is right, and all else is wrong.
//!
//! ```
//! use attentive_text::score::AnswerScores;
//!
//! let mut scores = AnswerScores::default();
//! scores.add(&["the Thames", "River Thames"], "Thames.");
//! scores.add(&["London"], "in London");
//! assert_eq!((scores.all().exact(), format!("{:.2}", scores.all().f1()).as_str()), (50.0, "83.33"));
//! ```

use super::tokenize::words;
use std::collections::HashMap;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Answers beside those that are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AnswerScores {
    answered: AnswerScore,
    unanswered: AnswerScore,
}

/// The sums over some questions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AnswerScore {
    exact: f64,
    f1: f64,
    /// How many questions there are.
    pub questions: usize,
}

impl AnswerScore {
    /// The share of the answers that are exact, in per cent.
    pub fn exact(&self) -> f64 {
        100.0 * self.exact / self.questions.max(1) as f64
    }

    /// The mean of the F1 of all answers, in per cent.
    pub fn f1(&self) -> f64 {
        100.0 * self.f1 / self.questions.max(1) as f64
    }

    fn add(&mut self, exact: f64, f1: f64) {
        self.exact += exact;
        self.f1 += f1;
        self.questions += 1;
    }
}

impl AnswerScores {
    /// Counts what was found for a question with these answers; both may be nothing.
    pub fn add(&mut self, known: &[&str], found: &str) {
        let found = normalized(found);
        // The script of version 2.0 leaves out what has no words.
        let mut all: Vec<String> = known.iter().map(|known| normalized(known)).collect();
        all.retain(|known| !known.is_empty());
        if all.is_empty() {
            all.push(String::new());
        }
        let best =
            |score: fn(&str, &str) -> f64| all.iter().map(|known| score(known, &found)).fold(0.0, f64::max);
        let (exact, f1) = (best(|known, found| f64::from(known == found)), best(f1));
        if known.is_empty() { &mut self.unanswered } else { &mut self.answered }.add(exact, f1);
    }

    /// Counts a question for which nothing was found at all: whatever its answers are, it scores nothing, as in the script of
    /// version 1.1.
    pub fn add_missing(&mut self, known: &[&str]) {
        if known.is_empty() { &mut self.unanswered } else { &mut self.answered }.add(0.0, 0.0);
    }

    /// All questions.
    pub fn all(&self) -> AnswerScore {
        let [a, b] = [self.answered, self.unanswered];
        AnswerScore { exact: a.exact + b.exact, f1: a.f1 + b.f1, questions: a.questions + b.questions }
    }

    /// Those whose text has an answer.
    pub fn answered(&self) -> AnswerScore {
        self.answered
    }

    /// Those whose text has none.
    pub fn unanswered(&self) -> AnswerScore {
        self.unanswered
    }
}

/// The harmonic mean of the shares of the words that both have, each as often as both have it.
fn f1(known: &str, found: &str) -> f64 {
    let (known, found): (Vec<&str>, Vec<&str>) = (words(known).collect(), words(found).collect());
    if known.is_empty() || found.is_empty() {
        return f64::from(known.is_empty() && found.is_empty());
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    known.iter().for_each(|&word| *left.entry(word).or_default() += 1);
    let is_common = |word: &&&str| match left.get_mut(**word) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let common = found.iter().filter(is_common).count() as f64;
    // 2pr / (p + r)
    2.0 * common / (known.len() + found.len()) as f64
}

/// A text as it is compared: in small letters, without the punctuation of ASCII, without articles, with single spaces.
fn normalized(text: &str) -> String {
    let text: String = text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let mut kept = String::with_capacity(text.len());
    let mut rest = &text[..];
    while let Some(first) = rest.chars().next() {
        let is_word = is_of_word(first);
        let end = rest.find(|c| is_of_word(c) != is_word).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        kept.push_str(if matches!(run, "a" | "an" | "the") { " " } else { run });
        rest = after;
    }
    words(&kept).collect::<Vec<_>>().join(" ")
}

/// What Python's `\w` matches, but for the underscore, which is punctuation.
fn is_of_word(c: char) -> bool {
    matches!(c.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_without_case_punctuation_and_articles() {
        for (text, expected) in [
            ("The  Cat, a\tdog!", "cat dog"),
            ("an-other", "another"),
            ("a–b", "–b"),
            ("theatre the_x", "theatre thex"),
            ("…The…", "… …"),
            ("A", ""),
        ] {
            assert_eq!(normalized(text), expected, "{text}");
        }
    }

    #[test]
    fn where_there_is_no_answer_nothing_is_right() {
        let mut scores = AnswerScores::default();
        for found in ["", "the", "Ada"] {
            scores.add(&[], found);
        }
        scores.add(&["Ada"], "");
        scores.add_missing(&["Ada"]);
        assert_eq!(
            (scores.unanswered().questions, format!("{:.1}", scores.unanswered().exact())),
            (3, "66.7".to_owned())
        );
        assert_eq!(
            (scores.answered().exact(), scores.answered().f1(), scores.all().questions),
            (0.0, 0.0, 5)
        );
    }

    #[test]
    fn words_count_as_often_as_both_have_them() {
        assert_eq!(f1("x x y", "x x x"), 2.0 / 3.0);
        assert_eq!(f1("x y", "z"), 0.0);
    }
}
