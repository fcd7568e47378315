//! Windows: so many examples of a shuffled epoch, as batches.
//!
//! Examples of like length belong in one batch, but to know all lengths one would have to encode the whole
//! corpus first. A window is large enough to sort in: it is read in the order of the files, encoded, sorted
//! by length, cut into batches, and the batches are shuffled. Examples of the same length stay in the shuffled
//! order of the epoch.
//!
//! Several ranks share the encoding: each encodes a run of a window, and all have the whole window before it is sorted.

use super::shuffle::shuffle;
use super::{Error, Example, ExampleBatch, Examples, LeftOut, Limits};
use crate::ranks::run_of;
use attentive_tensor::Random;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

/// How batches are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Batching {
    /// Where all orders come from.
    pub seed: u64,
    /// The most tokens of a batch, sources and targets together. Batches are packed, so this is what is
    /// computed.
    pub tokens: usize,
    /// The most examples of a batch, if there is a limit.
    #[serde(default)]
    pub examples: Option<usize>,
    /// The most examples of a window; the windows of an epoch are equally large.
    pub window: usize,
    /// Which examples are used.
    pub limits: Limits,
}

impl Default for Batching {
    fn default() -> Batching {
        let limits = Limits { longest: 256, ratio: 9.0 };
        Batching { seed: 1, tokens: 8192, examples: None, window: 1 << 16, limits }
    }
}

/// The examples of a window that were kept, as batches, and how many were not.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) batches: Vec<ExampleBatch>,
    pub(super) left_out: LeftOut,
}

impl Window {
    /// The window of this number, from all of its examples in the order of the epoch.
    pub(super) fn of(mut examples: Vec<Example>, epoch: u64, number: usize, batching: &Batching) -> Window {
        let Batching { seed, tokens, examples: most, limits, .. } = *batching;
        let mut left_out = LeftOut::default();
        examples.retain(|example| {
            let (source, target) = if example.answers() > 0 { example.sides() } else { (0, 0) };
            left_out.keeps(source, target, &limits) && left_out.fits(example.tokens(), tokens)
        });
        examples.sort_by_key(|example| (example.target.len(), example.read()));
        let mut batches = batches_of(examples, tokens, most.unwrap_or(usize::MAX));
        shuffle(&mut batches, Random::new(seed).split(epoch).split(1 + number as u64));
        Window { batches, left_out }
    }
}

/// What one of several ranks has encoded of a window.
#[derive(Debug)]
pub(super) struct Part {
    /// The place that each example of the window has in the order of the epoch, in the order of the files.
    pub(super) places: Vec<usize>,
    /// This rank's run of the examples, in the order of the files.
    pub(super) examples: Vec<Example>,
}

/// Goes through the windows of epochs.
pub(super) struct Windows<'a> {
    examples: &'a dyn Examples,
    batching: Batching,
    /// The number of this rank and how many share the work of encoding.
    share: (usize, usize),
    /// The epoch whose order is there, and this order.
    order: Option<(u64, Vec<u32>)>,
}

impl<'a> Windows<'a> {
    pub(super) fn new(examples: &'a dyn Examples, batching: Batching, share: (usize, usize)) -> Windows<'a> {
        Windows { examples, batching, share, order: None }
    }

    /// How many windows an epoch has.
    ///
    /// # Panics
    /// If a window has no examples.
    pub(super) fn count(examples: &dyn Examples, batching: &Batching) -> usize {
        assert!(batching.window > 0, "batches: a window of no examples");
        examples.len().div_ceil(batching.window)
    }

    /// This rank's part of a window of an epoch. If `stop` is set before it is finished, what is returned is of no use.
    pub(super) fn part(&mut self, epoch: u64, number: usize, stop: &AtomicBool) -> Result<Part, Error> {
        let random = Random::new(self.batching.seed).split(epoch);
        let order = match &mut self.order {
            Some((of, order)) if *of == epoch => order,
            // The order of the last epoch goes before the new one is made: they are as large as the corpus.
            slot => {
                *slot = None;
                let mut order: Vec<u32> = (0..self.examples.len() as u32).collect();
                shuffle(&mut order, random.split(0));
                &mut slot.insert((epoch, order)).1
            }
        };
        let windows = Windows::count(self.examples, &self.batching);
        let border = |window: usize| window * order.len() / windows;
        let here = border(number)..border(number + 1);
        let mut sorted: Vec<(u32, usize)> = order[here].iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let (rank, ranks) = self.share;
        let numbers: Vec<u32> =
            sorted[run_of(sorted.len(), rank, ranks)].iter().map(|(number, _)| *number).collect();

        let mut examples = Vec::with_capacity(numbers.len());
        // Orders are drawn from the numbers of windows, which no example's number reaches from the other end.
        let chance = |number: u32| random.split(u64::MAX - u64::from(number));
        self.examples.encode(&numbers, &chance, &mut |_, example| {
            examples.push(example);
            !stop.load(Ordering::Relaxed)
        })?;
        Ok(Part { places: sorted.into_iter().map(|(_, place)| place).collect(), examples })
    }
}

/// Cuts examples into batches of at most so many tokens and examples. An example with more tokens is a batch alone.
pub(crate) fn batches_of(
    examples: Vec<Example>,
    most_tokens: usize,
    most_examples: usize,
) -> Vec<ExampleBatch> {
    let mut batches: Vec<ExampleBatch> = Vec::new();
    let mut tokens = usize::MAX;
    for example in examples {
        tokens = tokens.saturating_add(example.tokens());
        let is_full = batches.last().is_none_or(|batch| batch.examples.len() >= most_examples);
        if is_full || tokens > most_tokens {
            tokens = example.tokens();
            batches.push(ExampleBatch::default());
        }
        if let Some(batch) = batches.last_mut() {
            batch.examples.push(example);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_all_examples_in_order_and_are_never_over_but_for_a_single_one() {
        let cut = |lengths: &[usize], tokens, examples| -> Vec<Vec<usize>> {
            let example =
                |&n: &usize| Example { source: vec![0; n], target: vec![0; n], ..Example::default() };
            let batches = batches_of(lengths.iter().map(example).collect(), tokens, examples);
            batches.iter().map(|batch| batch.examples.iter().map(|one| one.source.len()).collect()).collect()
        };
        let lengths = [1, 2, 2, 3, 9, 4];
        assert_eq!(cut(&lengths, 10, 100), [vec![1, 2, 2], vec![3], vec![9], vec![4]]);
        assert_eq!(cut(&lengths, 100, 4), [vec![1, 2, 2, 3], vec![9, 4]]);
        assert_eq!(cut(&lengths, 10, 2), [vec![1, 2], vec![2, 3], vec![9], vec![4]]);
    }
}
