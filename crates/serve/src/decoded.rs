//! What the thread that computes has found, on its way to an answer. Nothing here needs the model, so that nothing of it happens on
//! that thread.

use crate::job::{Decoded, Found};
use crate::order::{Done, Order};
use crate::refusal::Refusal;
use attentive_generate::{Hypothesis, LengthPenalty, Link, Options};
use attentive_tasks::{Codec, Cut, Part, Translated, WrittenPart};
use attentive_tensor::Best;

impl Decoded {
    /// How many tokens the best of each sentence have.
    pub fn best_tokens(&self) -> usize {
        self.0.iter().filter_map(|found| found.first()).map(|best| best.hypothesis.tokens.len()).sum()
    }

    /// The translations of the text, as the order wants them.
    pub fn finish(mut self, order: &Order, cut: Cut) -> Result<Done, Refusal> {
        let codec = &order.chosen.model.codec;
        if !order.prefix.is_empty() {
            self.count_prefix(order.options.penalty);
        }
        if let Some(most) = order.max_tokens {
            self.shorten(most);
        }
        let is_whole = self.0.len() == cut.parts.len();
        let ranks = self.0.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let Options { max_length, forced_eos, .. } = order.options;
        let most = |part: &Part| max_length.of(part.source.len()).min(codec.spec().max_target);
        // Where no end is forced, a part may have any length.
        let full: Vec<usize> =
            cut.parts.iter().map(|part| if forced_eos.is_some() { most(part) } else { usize::MAX }).collect();
        let ended = (0..ranks).map(|rank| is_whole && self.ended(rank, &full)).collect();
        let top = (0..ranks).map(|rank| self.top(rank)).collect();
        Ok(Done { best: self.join(codec, &cut)?, ended, top, cut })
    }

    /// Gives the first sentence, which has the prefix, the scores that it would have if the model had found the prefix; best first.
    fn count_prefix(&mut self, penalty: LengthPenalty) {
        let Some(first) = self.0.first_mut() else { return };
        for one in first.iter_mut() {
            one.hypothesis = one.hypothesis.clone().with_prefix_counted(penalty);
        }
        first.sort_by(|a, b| b.hypothesis.score.total_cmp(&a.hypothesis.score));
    }

    /// Leaves the first `most` tokens of each translation of the text, and the sentences that the best one has any of: what follows
    /// is cut off, as if the search had ended there.
    fn shorten(&mut self, most: usize) {
        let ranks = self.0.iter().map(Vec::len).max().unwrap_or(0);
        for found in &mut self.0 {
            // A sentence that has fewer takes part with its last.
            found.extend(found.last().cloned().into_iter().cycle().take(ranks - found.len()));
        }
        for rank in 0..ranks {
            let mut left = most;
            for found in self.0.iter_mut().filter_map(|found| found.get_mut(rank)) {
                let one = &mut found.hypothesis;
                if one.tokens.len() > left {
                    one.tokens.truncate(left);
                    one.token_scores.truncate(left);
                    one.ended = false;
                    found.top.truncate(left);
                }
                left -= one.tokens.len();
            }
        }
        let is_written =
            |found: &Vec<Found>| found.first().is_some_and(|one| !one.hypothesis.tokens.is_empty());
        self.0.truncate(self.0.iter().take_while(|found| is_written(found)).count());
    }

    /// The translation of each sentence that the one of this rank is made of. A sentence that has fewer takes part with its last.
    fn rank(&self, rank: usize) -> impl Iterator<Item = &Found> {
        self.0.iter().filter_map(move |found| found.get(rank).or(found.last()))
    }

    /// Whether the translation of this rank came to its end. `full` is the length of each sentence at which an end is forced.
    fn ended(&self, rank: usize, full: &[usize]) -> bool {
        let ends =
            |(one, &full): (&Found, &usize)| one.hypothesis.ended && !has_forced_end(&one.hypothesis, full);
        self.rank(rank).zip(full).all(ends)
    }

    /// The most probable tokens in the place of each token of the translation of this rank.
    fn top(&self, rank: usize) -> Vec<Vec<Best>> {
        self.rank(rank).flat_map(|one| one.top.iter().cloned()).collect()
    }

    fn join(self, codec: &Codec, cut: &Cut) -> Result<Vec<Translated>, Refusal> {
        type Parts = (Vec<Hypothesis>, Vec<Vec<Link>>);
        let parts =
            |found: Vec<Found>| -> Parts { found.into_iter().map(|one| (one.hypothesis, one.links)).unzip() };
        let parts: Vec<Parts> = self.0.into_iter().map(parts).collect();
        let written: Vec<WrittenPart<'_>> =
            parts.iter().map(|(hypotheses, links)| WrittenPart { hypotheses, links }).collect();
        Ok(codec.join(cut, &written)?)
    }
}

/// Whether the end token was written because there was room for no other: some models are made to end so, and are then sure of it.
fn has_forced_end(hypothesis: &Hypothesis, full: usize) -> bool {
    hypothesis.tokens.len() >= full && hypothesis.token_scores.last() == Some(&0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tokens: &[u32], score: f32, links: &[Link]) -> Found {
        let (tokens, token_scores) = (tokens.to_vec(), vec![score; tokens.len()]);
        let hypothesis = Hypothesis { tokens, token_scores, score, ended: true, draw: 0 };
        let top = tokens_in_place(&hypothesis);
        Found { hypothesis, links: links.to_vec(), top }
    }

    /// Each token itself, the most probable in its place.
    fn tokens_in_place(hypothesis: &Hypothesis) -> Vec<Vec<Best>> {
        hypothesis.tokens.iter().map(|&token| vec![Best { score: 0.0, token }]).collect()
    }

    fn tokens(decoded: &Decoded, rank: usize) -> Vec<Vec<u32>> {
        decoded.0.iter().map(|found| found[rank].hypothesis.tokens.clone()).collect()
    }

    #[test]
    fn an_alignment_stays_with_its_translation() {
        let mut decoded = Decoded(vec![vec![found(&[1], -2.0, &[(0, 0)]), found(&[2, 3], -1.0, &[(0, 1)])]]);
        decoded.count_prefix(LengthPenalty::Power(1.0));
        assert_eq!((&tokens(&decoded, 0)[0][..], &decoded.0[0][0].links[..]), (&[2, 3][..], &[(0, 1)][..]));
    }

    #[test]
    fn an_end_that_was_forced_is_none() {
        let decoded = Decoded(vec![vec![found(&[1, 0], 0.0, &[]), found(&[1, 0], -0.5, &[])]]);
        assert!(!decoded.ended(0, &[2]) && decoded.ended(1, &[2]));
        assert!(decoded.ended(0, &[3]) && decoded.ended(0, &[usize::MAX]));
    }

    #[test]
    fn a_sentence_that_has_fewer_translations_repeats_its_last_and_how_it_is_aligned() {
        let first = vec![found(&[1, 2], -1.0, &[(0, 0)])];
        let second = vec![found(&[3, 4], -1.0, &[]), found(&[5], -2.0, &[])];
        let mut decoded = Decoded(vec![first, second]);
        decoded.shorten(3);
        assert_eq!(tokens(&decoded, 0), [vec![1, 2], vec![3]]);
        assert_eq!(tokens(&decoded, 1), [vec![1, 2], vec![5]]);
        assert_eq!([0, 1].map(|rank| decoded.ended(rank, &[usize::MAX; 2])), [false, true]);
        assert_eq!(decoded.0[0][1].links, [(0, 0)]);
        let top: Vec<u32> = decoded.top(1).iter().map(|top| top[0].token).collect();
        assert_eq!((top, decoded.top(0).len()), (vec![1, 2, 5], 3));
        decoded.shorten(2);
        assert_eq!(tokens(&decoded, 0), [[1, 2]]);
    }
}
