//! The test: numbers that were never seen, and how many of their translations are exactly right.

use super::answer::said;
use super::translator::Translator;
use crate::error::Error;
use crate::words::percent;
use attentive_train::numbers::{Language, NumberPair};
use serde::Serialize;

/// How many translations of numbers that were never seen are exactly right.
#[derive(Serialize)]
pub(super) struct Score {
    numbers: usize,
    pub tested: usize,
    pub exact: usize,
    /// The exact ones of as many, for each language.
    #[serde(skip)]
    languages: Vec<(Language, usize, usize)>,
    #[serde(skip)]
    mistakes: Vec<(NumberPair, String)>,
}

/// Mistakes that are shown.
const MISTAKES: usize = 3;

impl Score {
    /// Translates the pairs and compares.
    pub(super) fn of(translator: &mut Translator, test: &[NumberPair]) -> Result<Score, Error> {
        let translations = translator.translate(test.iter().map(|pair| &*pair.source))?;
        let judged: Vec<(&NumberPair, &String)> = test.iter().zip(&translations).collect();
        let right = |(pair, translation): &(&NumberPair, &String)| pair.target == **translation;
        let of_language = |language: Language| {
            let own = judged.iter().filter(|(pair, _)| pair.language == language);
            let exact = own.clone().filter(|judged| right(judged)).count();
            (language, exact, own.count())
        };
        let wrong = judged.iter().filter(|judged| !right(judged)).take(MISTAKES);
        let mut seen: Vec<u32> = test.iter().map(|pair| pair.number).collect();
        seen.dedup();
        Ok(Score {
            numbers: seen.len(),
            tested: test.len(),
            exact: judged.iter().filter(|judged| right(judged)).count(),
            languages: Language::TARGETS.map(of_language).to_vec(),
            mistakes: wrong.map(|(pair, text)| ((*pair).clone(), (*text).clone())).collect(),
        })
    }

    /// What a person reads.
    pub(super) fn text(&self) -> String {
        let languages: Vec<String> = self
            .languages
            .iter()
            .map(|(language, exact, of)| format!("{} {}", language.name(), percent(*exact, *of)))
            .collect();
        let mut text = format!(
            "{} of {} translations of {} unseen numbers are exactly right:\n{} ({}).\n",
            self.exact,
            self.tested,
            self.numbers,
            percent(self.exact, self.tested),
            languages.join(", ")
        );
        for (pair, translation) in &self.mistakes {
            text.push_str(&format!(
                "  wrong: {} is translated as {}, not as {}\n",
                pair.number,
                said(translation),
                pair.target
            ));
        }
        text
    }
}
