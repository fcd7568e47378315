//! What filters and stopping rules may look at.

/// A hypothesis of a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The number of the sentence, counted from the generator's first.
    pub sentence: u64,
    /// Its tokens.
    pub source: &'a [u32],
    /// What has been written, the prefix included. Of a model that continues its source, the source stands before it.
    pub tokens: &'a [u32],
    /// How many of `tokens` are the source: none unless the model continues it.
    pub prompt: usize,
    /// The tokens that end a target.
    pub ends: &'a [u32],
}
