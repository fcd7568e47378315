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

/// Answers, each number once, with its translations below.
pub(super) fn text(answers: &[Answer]) -> String {
    let mut text = String::new();
    for answers in answers.chunk_by(|one, other| one.source == other.source) {
        let number = answers[0].number.map(|number| thousands(number as usize)).unwrap_or_default();
        text.push_str(&format!("{number:>9}  {}\n", answers[0].source));
        for Answer { language, translation, reference, .. } in answers {
            let verdict = match reference {
                Some(reference) if reference == translation => " ✓".to_owned(),
                Some(reference) => format!(" ✗ {reference}"),
                None => String::new(),
            };
            text.push_str(&format!("{language:>9}  {translation}{verdict}\n"));
        }
    }
    text
}
