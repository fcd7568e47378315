//! What a model is used to read: sentences or paragraphs, and of which language. Its folder tells.

use crate::error::Error;
use crate::name::model_name;
use attentive_model::families::Family;
use attentive_model::families::transformer::multi_sentence_share;
use attentive_text::language;
use serde_json::Value;
use std::path::Path;

/// What a model is used to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The code of the language, if it is known.
    pub language: Option<String>,
    /// Whether the model was trained on lines of several sentences too. A folder of others does not say so, and counts as
    /// trained on sentences.
    pub paragraphs: bool,
}

/// The share of training lines with several sentences that makes a model able to read them.
const ENOUGH: f64 = 0.05;

impl Reading {
    /// What a folder tells.
    pub fn of(folder: &Path) -> Result<Reading, Error> {
        let paragraphs = match Family::of(folder)? {
            // It was trained on texts of any length, and what it is asked for stands before the first sentence alone.
            Family::T5 => true,
            _ => multi_sentence_share(folder)?.is_some_and(|share| share >= ENOUGH),
        };
        Ok(Reading { language: source_language(folder), paragraphs })
    }
}

/// The language that a folder's model reads, if the tokenizer's configuration or the folder's name tells it.
pub fn source_language(folder: &Path) -> Option<String> {
    let named = || Some(languages_of_name(&model_name(folder)?)?.0.to_owned());
    tokenizer_languages(folder).0.or_else(named)
}

/// The words of `tokenizer_config.json` that say which language a model reads and which one it writes.
pub fn tokenizer_languages(folder: &Path) -> (Option<String>, Option<String>) {
    let text = std::fs::read_to_string(folder.join("tokenizer_config.json")).unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    let word = |name: &str| config[name].as_str().map(str::to_owned);
    (word("source_lang"), word("target_lang"))
}

/// The last two words of a name such as `opus-mt-en-de`, if they look like codes of languages.
pub fn languages_of_name(name: &str) -> Option<(&str, &str)> {
    let mut parts = name.rsplit(['-', '_']);
    let (target, source) = (parts.next()?, parts.next()?);
    // Where a language has a code of two letters, one of three is more likely a word, such as the last one of `my-run`.
    let is_code = |word: &str| {
        let has_length = (2..=3).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
        has_length && language::short(word) == word
    };
    (is_code(source) && is_code(target)).then_some((source, target))
}
