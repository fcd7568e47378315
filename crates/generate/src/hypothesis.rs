//! What was written.

use crate::penalty::LengthPenalty;

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
    /// Which of the draws it is, counted from 0; always 0 where nothing is drawn.
    pub draw: usize,
}

impl Hypothesis {
    /// The tokens without the end token.
    pub fn content(&self) -> &[u32] {
        &self.tokens[..self.tokens.len() - usize::from(self.ended)]
    }

    /// The same tokens with the score of all of them: the prefix counts like what follows it. So a translation has the same
    /// score whether the model found its beginning or was given it.
    pub fn with_prefix_counted(mut self, penalty: LengthPenalty) -> Hypothesis {
        self.score = self.token_scores.iter().sum::<f32>() / penalty.divisor(self.tokens.len().max(1));
        self
    }
}

/// Sorts by score, the best first; equals stay in order.
pub fn best_first(found: &mut [Hypothesis]) {
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
}
