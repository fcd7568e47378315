//! What changes scores before a token is chosen: repetitions, forbidden sequences, a least length.
//!
//! As in transformers, a beam search filters log-probabilities, and greedy search and sampling filter logits.

use crate::search::Context;

/// Changes the scores of the next token.
pub trait Filter: Send + Sync {
    /// Changes `scores`, one for each token of the vocabulary; `-∞` forbids a token.
    fn filter(&self, context: &Context, scores: &mut [f32]);
}

/// Makes tokens that were written before less probable, by a factor on their scores (Keskar et al. 2019).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RepetitionPenalty(pub f32);

impl Filter for RepetitionPenalty {
    fn filter(&self, context: &Context, scores: &mut [f32]) {
        for (i, &token) in context.tokens.iter().enumerate() {
            // Once, however often it was written.
            if !context.tokens[..i].contains(&token) {
                let score = &mut scores[token as usize];
                *score = if *score < 0.0 { *score * self.0 } else { *score / self.0 };
            }
        }
    }
}

/// Forbids that a sequence of this many tokens is written twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRepeatNgrams(pub usize);

impl Filter for NoRepeatNgrams {
    fn filter(&self, context: &Context, scores: &mut [f32]) {
        let tokens = context.tokens;
        if self.0 == 0 || tokens.len() < self.0 {
            return;
        }
        let end = &tokens[tokens.len() + 1 - self.0..];
        for ngram in tokens.windows(self.0) {
            if ngram.starts_with(end) {
                scores[ngram[self.0 - 1] as usize] = f32::NEG_INFINITY;
            }
        }
    }
}

/// Forbids sequences of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Banned(pub Vec<Vec<u32>>);

impl Filter for Banned {
    fn filter(&self, context: &Context, scores: &mut [f32]) {
        for sequence in &self.0 {
            if let Some((last, before)) = sequence.split_last()
                && context.tokens.ends_with(before)
            {
                scores[*last as usize] = f32::NEG_INFINITY;
            }
        }
    }
}

/// Forbids the end token before this many others are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinLength(pub usize);

impl Filter for MinLength {
    fn filter(&self, context: &Context, scores: &mut [f32]) {
        if context.tokens.len() < self.0 {
            scores[context.eos as usize] = f32::NEG_INFINITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of ten tokens a filter forbids, and what becomes of scores that are the numbers of the tokens less 5.
    fn filtered(filter: &impl Filter, tokens: &[u32]) -> (Vec<usize>, Vec<f32>) {
        let mut scores: Vec<f32> = (0..10).map(|i| i as f32 - 5.0).collect();
        filter.filter(&Context { sentence: 0, source: &[], tokens, eos: 0 }, &mut scores);
        ((0..10).filter(|&i| scores[i] == f32::NEG_INFINITY).collect(), scores)
    }

    #[test]
    fn tokens_that_were_written_are_less_probable_once() {
        let (_, scores) = filtered(&RepetitionPenalty(2.0), &[1, 9, 1, 1]);
        assert_eq!((scores[1], scores[2], scores[9]), (-8.0, -3.0, 2.0));
    }

    #[test]
    fn an_ngram_is_not_written_twice() {
        assert_eq!(filtered(&NoRepeatNgrams(1), &[1, 7]).0, [1, 7]);
        assert_eq!(filtered(&NoRepeatNgrams(2), &[1, 7, 1]).0, [7]);
        assert_eq!(filtered(&NoRepeatNgrams(2), &[1, 1]).0, [1]);
        assert_eq!(filtered(&NoRepeatNgrams(3), &[1, 7, 2, 1, 7]).0, [2]);
        assert_eq!(filtered(&NoRepeatNgrams(3), &[1, 7]).0, [0; 0]);
    }

    #[test]
    fn a_banned_sequence_is_not_completed() {
        let banned = Banned(vec![vec![4], vec![1, 7], vec![2, 1, 8]]);
        assert_eq!(filtered(&banned, &[]).0, [4]);
        assert_eq!(filtered(&banned, &[1]).0, [4, 7]);
        assert_eq!(filtered(&banned, &[2, 1]).0, [4, 7, 8]);
    }

    #[test]
    fn the_end_comes_after_the_least_length() {
        assert_eq!(filtered(&MinLength(2), &[5]).0, [0]);
        assert_eq!(filtered(&MinLength(2), &[5, 5]).0, [0; 0]);
    }
}
