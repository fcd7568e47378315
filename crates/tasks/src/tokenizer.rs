//! The tokenizer of a model that generates.

use crate::error::Error;
use attentive_text::tokenizer::{self, Tokenizer};
use std::path::Path;

/// The tokenizer of a model's folder. What is missing is told by the files that models come with, not by all that can be read.
pub fn tokenizer_of(folder: &Path) -> Result<Tokenizer, Error> {
    Tokenizer::load(folder).map_err(|error| match error {
        tokenizer::Error::NoTokenizer { path } => Error::NoTokenizer { folder: path },
        other => other.into(),
    })
}
