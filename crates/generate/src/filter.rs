//! Filters change scores before a token is chosen: repetition penalty, forbidden sequences, least length.
//!
//! As in transformers, a beam search filters log-probabilities, and greedy search and sampling filter logits.

use crate::context::Context;

/// A change of the score of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// It becomes `-∞`.
    Forbid,
    /// It is multiplied by this if it is below zero, and divided by it otherwise: above 1, the token is less probable.
    Penalise(f32),
}

impl Change {
    /// The changed score.
    pub fn apply(self, score: f32) -> f32 {
        match self {
            Change::Forbid => f32::NEG_INFINITY,
            Change::Penalise(factor) if score < 0.0 => score * factor,
            Change::Penalise(factor) => score / factor,
        }
    }
}

/// Changes the scores of the next token. A filter that changes few tokens implements `changes`, so that logits stay on the device. Any
/// other filter implements `filter`.
pub trait Filter: Send + Sync {
    /// The changes of a few tokens; none if any token may change, so that [`Filter::filter`] is called instead.
    fn changes(&self, context: &Context) -> Option<Vec<(u32, Change)>> {
        let _ = context;
        None
    }

    /// Changes `scores`, one for each token of the vocabulary; `-∞` forbids a token.
    fn filter(&self, context: &Context, scores: &mut [f32]) {
        for (token, change) in self.changes(context).into_iter().flatten() {
            if let Some(score) = scores.get_mut(token as usize) {
                *score = change.apply(*score);
            }
        }
    }
}

/// Makes tokens that were written before less probable, by a factor on their scores (Keskar et al. 2019).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RepetitionPenalty(pub f32);

impl Filter for RepetitionPenalty {
    fn changes(&self, context: &Context) -> Option<Vec<(u32, Change)>> {
        // A token that was written several times is penalised once.
        let mut tokens = context.tokens.to_vec();
        tokens.sort_unstable();
        tokens.dedup();
        Some(tokens.into_iter().map(|token| (token, Change::Penalise(self.0))).collect())
    }
}

/// Forbids that a sequence of this many tokens is written twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRepeatNgrams(pub usize);

impl Filter for NoRepeatNgrams {
    fn changes(&self, context: &Context) -> Option<Vec<(u32, Change)>> {
        let tokens = context.tokens;
        if self.0 == 0 || tokens.len() < self.0 {
            return Some(Vec::new());
        }
        let end = &tokens[tokens.len() + 1 - self.0..];
        let repeated = tokens.windows(self.0).filter(|ngram| ngram.starts_with(end));
        Some(repeated.map(|ngram| (ngram[self.0 - 1], Change::Forbid)).collect())
    }
}

/// Forbids sequences of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Banned(pub Vec<Vec<u32>>);

impl Filter for Banned {
    fn changes(&self, context: &Context) -> Option<Vec<(u32, Change)>> {
        let next = |sequence: &Vec<u32>| {
            let (last, before) = sequence.split_last()?;
            context.tokens.ends_with(before).then_some((*last, Change::Forbid))
        };
        Some(self.0.iter().filter_map(next).collect())
    }
}

/// Forbids the end tokens before this many others are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinLength(pub usize);

impl Filter for MinLength {
    fn changes(&self, context: &Context) -> Option<Vec<(u32, Change)>> {
        let too_short = context.tokens.len() - context.prompt < self.0;
        let ends = context.ends.iter().filter(|_| too_short);
        Some(ends.map(|end| (*end, Change::Forbid)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of ten tokens a filter forbids, and what becomes of scores that are the numbers of the tokens less 5.
    fn filtered(filter: &impl Filter, tokens: &[u32]) -> (Vec<usize>, Vec<f32>) {
        let mut scores: Vec<f32> = (0..10).map(|i| i as f32 - 5.0).collect();
        filter.filter(&Context { sentence: 0, source: &[], tokens, prompt: 0, ends: &[0] }, &mut scores);
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
