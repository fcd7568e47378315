//! The tokenizer of a model that generates.

use crate::error::Error;
use attentive_text::tokenizer::{self, Side, Tokenizer};
use std::path::Path;

/// The tokenizer of a model's folder. Errors name the files that models usually come with, not all that can be read.
pub fn tokenizer_of(folder: &Path) -> Result<Tokenizer, Error> {
    Tokenizer::load(folder).map_err(|error| match error {
        tokenizer::Error::NoTokenizer { path } => Error::NoTokenizer { folder: path },
        other => other.into(),
    })
}

/// The text of what a model wrote. A model may have more rows than its tokenizer has tokens, as T5 has for the sake of round
/// numbers; such a row is no text.
pub(crate) fn text_of(tokenizer: &Tokenizer, tokens: &[u32]) -> Result<String, Error> {
    let known = tokenizer.vocabulary_size(Side::Target);
    let tokens: Vec<u32> = tokens.iter().copied().filter(|&token| (token as usize) < known).collect();
    Ok(tokenizer.decode(&tokens)?)
}
