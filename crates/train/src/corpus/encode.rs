//! What batches need of a tokenizer.

use std::error::Error;

/// The tokens of a text, or why it has none.
pub type Encoded = Result<Vec<u32>, Box<dyn Error + Send + Sync>>;

/// Turns text into tokens. Every function from text to [`Encoded`] does.
pub trait Encode: Send + Sync {
    /// The tokens of a text, with those that begin or end a sequence. The same text must always give the
    /// same.
    fn encode(&self, text: &str) -> Encoded;
}

impl<F: Fn(&str) -> Encoded + Send + Sync> Encode for F {
    fn encode(&self, text: &str) -> Encoded {
        self(text)
    }
}
