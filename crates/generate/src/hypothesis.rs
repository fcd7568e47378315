//! What was written.

/// A sequence of tokens that the model wrote, and how sure it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// The tokens: the prefix that was asked for, what follows it, and the end token where it was reached.
    pub tokens: Vec<u32>,
    /// The log of the probability of each token, given those before it.
    pub token_scores: Vec<f32>,
    /// The sum of the token scores behind the prefix, divided by the length penalty.
    pub score: f32,
    /// Whether the last token is the end token. Otherwise there was no room for more, or a stopping rule struck.
    pub ended: bool,
}

impl Hypothesis {
    /// The tokens without the end token.
    pub fn content(&self) -> &[u32] {
        &self.tokens[..self.tokens.len() - usize::from(self.ended)]
    }
}
