//! The result of a search.

use crate::penalty::LengthPenalty;

/// A sequence of tokens with its scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// The tokens: the prefix of the request, the new tokens, and the end token if it was reached.
    pub tokens: Vec<u32>,
    /// The log-probability of each token, given those before it.
    pub token_scores: Vec<f32>,
    /// The sum of the token scores after the prefix, divided by the length penalty.
    pub score: f32,
    /// Whether the last token is an end token. Otherwise the greatest length was reached, or a stopping rule applied.
    pub ended: bool,
    /// The number of the sample, counted from 0; 0 without sampling.
    pub draw: usize,
}

impl Hypothesis {
    /// The tokens without the end token.
    pub fn content(&self) -> &[u32] {
        &self.tokens[..self.tokens.len() - usize::from(self.ended)]
    }

    /// Replaces the score by that of all tokens, the prefix included. So a translation has the same score whether its beginning was found
    /// or given.
    pub fn with_prefix_counted(mut self, penalty: LengthPenalty) -> Hypothesis {
        self.score = self.token_scores.iter().sum::<f32>() / penalty.divisor(self.tokens.len().max(1));
        self
    }
}

/// Sorts by score, the best first; equals stay in order.
pub fn best_first(found: &mut [Hypothesis]) {
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
}
