//! What batches need of a tokenizer.

use attentive_tensor::Random;
use std::error::Error;

/// The tokens of a text, or why it has none.
pub type Encoded = Result<Vec<u32>, Box<dyn Error + Send + Sync>>;

/// Turns text into tokens. Every function from text and chance to [`Encoded`] does.
pub trait Encode: Send + Sync {
    /// The tokens of a text, with those that begin or end a sequence. `random` is this text's own in this epoch;
    /// the same text and the same `random` must always give the same.
    fn encode(&self, text: &str, random: Random) -> Encoded;
}

impl<F: Fn(&str, Random) -> Encoded + Send + Sync> Encode for F {
    fn encode(&self, text: &str, random: Random) -> Encoded {
        self(text, random)
    }
}
