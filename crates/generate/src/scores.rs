//! The scores of the next token of a hypothesis, and the changes that filters make.
//!
//! Filters that change a few tokens do not need all logits: the model returns the logits of the changed tokens, and the best of all other
//! tokens. The changed scores are then merged with the best.

use crate::filter::Change;
use crate::top::top_without;
use attentive_tensor::{Best, Found, TokenLists};

/// The scores that searches need of each row of a step.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The listed tokens of all rows: those whose logits are returned on their own.
    tokens: Vec<u32>,
    /// Where the list of each row ends.
    ends: Vec<u32>,
    /// Rows whose listed tokens also count for the best and for the sum.
    counted: Vec<usize>,
    /// Whether all logits of a row are needed.
    whole: Vec<bool>,
}

impl Asked {
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.ends.clear();
        self.counted.clear();
        self.whole.clear();
    }

    /// Adds a row with listed tokens, in any order and with repetitions.
    pub fn some(&mut self, tokens: impl Iterator<Item = u32>) {
        let first = self.tokens.len();
        self.tokens.extend(tokens);
        self.tokens[first..].sort_unstable();
        let mut kept = first;
        for i in first..self.tokens.len() {
            if kept == first || self.tokens[kept - 1] != self.tokens[i] {
                self.tokens[kept] = self.tokens[i];
                kept += 1;
            }
        }
        self.tokens.truncate(kept);
        self.ends.push(kept as u32);
        self.whole.push(false);
    }

    /// Adds a row with one listed token, which also counts for the best and for the sum.
    pub fn one(&mut self, token: u32) {
        self.counted.push(self.ends.len());
        self.some([token].into_iter());
    }

    /// Adds a row of which all logits are needed.
    pub fn all(&mut self) {
        self.ends.push(self.tokens.len() as u32);
        self.whole.push(true);
    }

    /// Whether all logits of any row are needed.
    pub fn wants_rows(&self) -> bool {
        self.whole.contains(&true)
    }

    /// Whether any row has listed tokens.
    pub fn has_lists(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The lists, or none if all of them are empty.
    pub fn apart(&self) -> TokenLists<'_> {
        if self.tokens.is_empty() { TokenLists::NONE } else { self.lists() }
    }

    fn lists(&self) -> TokenLists<'_> {
        TokenLists { tokens: &self.tokens, ends: &self.ends, counted: &self.counted }
    }

    /// The same bits as [`Seq2Seq::best`](crate::Seq2Seq::best) of a model that never writes the token `never`, computed from all logits.
    pub fn find(&self, rows: &mut [f32], width: usize, count: usize, never: Option<u32>) -> Found {
        let mut found = Found { best: Vec::new(), log_sums: Vec::new(), apart: Vec::new() };
        let mut best = Vec::new();
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            if self.whole[i] {
                found.best.resize((i + 1) * count, Best::NONE);
                found.log_sums.push(f32::NEG_INFINITY);
                continue;
            }
            for &token in &self.tokens[self.lists().of(i)] {
                found.apart.push(row[token as usize]);
                if self.counted.binary_search(&i).is_err() {
                    row[token as usize] = f32::NEG_INFINITY;
                }
            }
            found.log_sums.push(top_without(row, never, count, &mut best));
            found.best.extend_from_slice(&best);
            found.best.resize((i + 1) * count, Best::NONE);
        }
        found
    }

    /// The scores of each row, from what was found.
    pub fn rows<'a>(&'a self, found: &'a Found, whole: &'a mut [f32], width: usize) -> Vec<Scores<'a>> {
        let count = found.best.len() / self.ends.len().max(1);
        let mut whole = whole.chunks_exact_mut(width.max(1));
        let row = |row: usize| {
            let apart = self.lists().of(row);
            Scores {
                best: &found.best[row * count..][..count],
                log_sum: found.log_sums.get(row).copied(),
                apart: (&self.tokens[apart.clone()], found.apart.get(apart).unwrap_or_default()),
                row: whole.next().filter(|_| self.whole[row]).unwrap_or_default(),
            }
        };
        (0..self.ends.len()).map(row).collect()
    }
}

/// The scores of one row.
pub(crate) struct Scores<'a> {
    /// The best tokens that are not listed, with their logits.
    best: &'a [Best],
    /// `log Σ e^logit` of all tokens that are not listed, if log-probabilities are wanted.
    log_sum: Option<f32>,
    /// The listed tokens, and their logits.
    apart: (&'a [u32], &'a [f32]),
    /// All logits, if they were asked for.
    pub row: &'a mut [f32],
}

/// The scores that filters change. As in transformers, these are log-probabilities in a beam search, and logits otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    Logits,
    LogProbabilities,
}

impl Scores<'_> {
    /// Puts the `count` best tokens into `best`, best first, with their log-probabilities, or their logits if log-probabilities are not
    /// wanted. Of equal scores, the lower token comes first. `-∞` and NaN are never among them.
    ///
    /// Log-probabilities are not renormalised after a change.
    pub fn rank(&self, count: usize, changes: &[(u32, Change)], changed: Changed, best: &mut Vec<Best>) {
        best.clear();
        best.extend(self.best.iter().filter(|best| **best != Best::NONE));
        let (tokens, logits) = self.apart;
        let change = |(&token, &score): (&u32, &f32)| {
            let own = changes.iter().filter(|(other, _)| *other == token);
            Best { score: own.fold(score, |score, (_, change)| change.apply(score)), token }
        };
        let log_sum = |logits: &[f32]| self.log_sum.map_or(0.0, |log_sum| log_sum_with(log_sum, logits));
        let subtract =
            |best: &mut [Best], log_sum: f32| best.iter_mut().for_each(|best| best.score -= log_sum);
        match changed {
            Changed::Logits => {
                let apart: Vec<Best> = tokens.iter().zip(logits).map(change).collect();
                let log_sum = log_sum(&apart.iter().map(|best| best.score).collect::<Vec<_>>());
                // In the order of the logits, even if log-probabilities are wanted: the subtraction rounds and makes ties.
                apart.into_iter().for_each(|apart| insert(best, apart));
                subtract(best, log_sum);
            }
            Changed::LogProbabilities => {
                let log_sum = log_sum(logits);
                subtract(best, log_sum);
                let log_probabilities: Vec<f32> = logits.iter().map(|logit| logit - log_sum).collect();
                tokens.iter().zip(&log_probabilities).map(change).for_each(|apart| insert(best, apart));
            }
        }
        best.truncate(count);
    }

    /// The log-probability of the one token that was asked for.
    pub fn one(&self) -> f32 {
        let logit = self.apart.1.first().copied().unwrap_or(f32::NEG_INFINITY);
        logit - self.log_sum.unwrap_or(0.0)
    }
}

/// Inserts a token in order, unless its score is `-∞` or NaN.
fn insert(best: &mut Vec<Best>, new: Best) {
    if new.score > f32::NEG_INFINITY {
        let comes_before =
            |other: &Best| other.score > new.score || other.score == new.score && other.token < new.token;
        best.insert(best.partition_point(comes_before), new);
    }
}

/// `log(e^log_sum + Σ e^logit)`.
fn log_sum_with(log_sum: f32, logits: &[f32]) -> f32 {
    let most = logits.iter().copied().fold(log_sum, f32::max);
    if logits.is_empty() || most == f32::NEG_INFINITY {
        return log_sum;
    }
    let sum = logits.iter().fold((log_sum - most).exp(), |sum, logit| sum + (logit - most).exp());
    most + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks of a row of logits, with the changed tokens listed.
    fn ranked(logits: &[f32], changes: &[(u32, Change)], changed: Changed) -> Vec<Best> {
        let mut asked = Asked::default();
        asked.some(changes.iter().map(|(token, _)| *token));
        let mut row = logits.to_vec();
        let found = asked.find(&mut row, logits.len(), 3, None);
        let mut best = Vec::new();
        asked.rows(&found, &mut [], 0)[0].rank(3, changes, changed, &mut best);
        best
    }

    fn tokens(best: &[Best]) -> Vec<u32> {
        best.iter().map(|best| best.token).collect()
    }

    #[test]
    fn changed_tokens_compete_with_the_best_of_the_others() {
        let logits = [1.0f32, 4.0, 3.0, 2.0, 0.0];
        let all: f32 = logits.iter().map(|x| x.exp()).sum::<f32>().ln();
        assert_eq!(tokens(&ranked(&logits, &[], Changed::Logits)), [1, 2, 3]);
        let forbidden = ranked(&logits, &[(1, Change::Forbid)], Changed::Logits);
        let rest = [1f32, 3.0, 2.0, 0.0].iter().map(|x| x.exp()).sum::<f32>().ln();
        assert_eq!(tokens(&forbidden), [2, 3, 0]);
        assert!((forbidden[0].score - (3.0 - rest)).abs() < 1e-6, "{forbidden:?}");
        // Log-probabilities are those of all tokens.
        let forbidden =
            ranked(&logits, &[(1, Change::Forbid), (4, Change::Forbid)], Changed::LogProbabilities);
        assert_eq!(tokens(&forbidden), [2, 3, 0]);
        assert!((forbidden[0].score - (3.0 - all)).abs() < 1e-6, "{forbidden:?}");
        let penalised = ranked(&logits, &[(1, Change::Penalise(2.0))], Changed::Logits);
        assert_eq!(tokens(&penalised), [2, 1, 3]);
        let penalised = ranked(&logits, &[(1, Change::Penalise(8.0))], Changed::LogProbabilities);
        assert_eq!(tokens(&penalised), [2, 3, 0]);
    }

    #[test]
    fn a_token_may_be_changed_twice_and_a_tie_goes_to_the_lower_one() {
        let changes = [(2, Change::Penalise(3.0)), (2, Change::Penalise(2.0)), (2, Change::Penalise(0.5))];
        assert_eq!(tokens(&ranked(&[1.0, 0.5, 3.0], &changes, Changed::Logits)), [0, 2, 1]);
        assert_eq!(
            tokens(&ranked(&[3.0, 0.5, 3.0], &[(0, Change::Penalise(1.0))], Changed::Logits)),
            [0, 2, 1]
        );
    }

    #[test]
    fn where_all_is_forbidden_nothing_is_best() {
        let changes = [(0, Change::Forbid), (1, Change::Forbid)];
        for changed in [Changed::Logits, Changed::LogProbabilities] {
            assert_eq!(ranked(&[1.0, 2.0], &changes, changed), []);
        }
    }
}
