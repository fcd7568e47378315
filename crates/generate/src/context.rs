//! The input of filters and stopping rules.

/// A hypothesis of a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The number of the sentence, counted from the generator's first.
    pub sentence: u64,
    /// Its tokens.
    pub source: &'a [u32],
    /// The tokens of the hypothesis so far, prefix included. If the model continues its source, they begin with the source.
    pub tokens: &'a [u32],
    /// How many of `tokens` are the source: 0 unless the model continues it.
    pub prompt: usize,
    /// The tokens that end a target.
    pub ends: &'a [u32],
}
