//! What batches need of a tokenizer.

/// Turns text into tokens. Every function from text to numbers does.
pub trait Encode: Send + Sync {
    /// The tokens of a text, with those that begin or end a sequence. The same text must always give the
    /// same.
    fn encode(&self, text: &str) -> Vec<u32>;
}

impl<F: Fn(&str) -> Vec<u32> + Send + Sync> Encode for F {
    fn encode(&self, text: &str) -> Vec<u32> {
        self(text)
    }
}
