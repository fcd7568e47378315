//! Windows: so many pairs of a shuffled epoch, as batches.
//!
//! Pairs of like length belong in one batch, but to know all lengths one would have to encode the whole
//! corpus first. A window is large enough to sort in: it is read in the order of the files, encoded, sorted
//! by length, cut into batches, and the batches are shuffled. Pairs of the same length stay in the shuffled
//! order of the epoch.

use super::pairs::Side;
use super::shuffle::shuffle;
use super::{Corpus, Encode, Error, LeftOut, Limits};
use attentive_model::Sequences;
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
    /// The most pairs of a window; the windows of an epoch are equally large.
    pub window: usize,
    /// Which pairs are used.
    pub limits: Limits,
}

impl Default for Batching {
    fn default() -> Batching {
        let limits = Limits { longest: 256, ratio: 9.0 };
        Batching { seed: 1, tokens: 8192, window: 1 << 16, limits }
    }
}

/// Pairs as tokens, packed one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairBatch {
    /// The tokens of all sources.
    pub source: Vec<i32>,
    /// Where each source begins.
    pub source_sequences: Sequences,
    /// The tokens of all targets.
    pub target: Vec<i32>,
    /// Where each target begins.
    pub target_sequences: Sequences,
}

impl PairBatch {
    /// The number of source and target tokens.
    pub fn tokens(&self) -> usize {
        self.source.len() + self.target.len()
    }

    /// The tokens of each pair.
    pub fn pairs(&self) -> Vec<(&[i32], &[i32])> {
        let sources = self.source_sequences.ranges().map(|range| &self.source[range]);
        let targets = self.target_sequences.ranges().map(|range| &self.target[range]);
        sources.zip(targets).collect()
    }

    fn new(pairs: &[Pair]) -> PairBatch {
        let tokens = |side: fn(&Pair) -> &[u32]| pairs.iter().flat_map(side).map(|&id| id as i32).collect();
        PairBatch {
            source: tokens(|pair| &pair.source),
            source_sequences: Sequences::new(pairs.iter().map(|pair| pair.source.len())),
            target: tokens(|pair| &pair.target),
            target_sequences: Sequences::new(pairs.iter().map(|pair| pair.target.len())),
        }
    }
}

/// The pairs of a window that were kept, as batches, and how many were not.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) batches: Vec<PairBatch>,
    pub(super) left_out: LeftOut,
}

/// Goes through the windows of epochs.
pub(super) struct Windows<'a> {
    pub(super) corpus: &'a Corpus,
    pub(super) batching: Batching,
    pub(super) source: &'a dyn Encode,
    pub(super) target: &'a dyn Encode,
    /// The epoch whose order is there, and this order.
    order: Option<(u64, Vec<u32>)>,
}

/// A pair as tokens.
#[derive(Default)]
struct Pair {
    source: Vec<u32>,
    target: Vec<u32>,
}

impl<'a> Windows<'a> {
    pub(super) fn new(
        corpus: &'a Corpus,
        batching: Batching,
        source: &'a dyn Encode,
        target: &'a dyn Encode,
    ) -> Windows<'a> {
        Windows { corpus, batching, source, target, order: None }
    }

    /// How many windows an epoch has.
    ///
    /// # Panics
    /// If a window has no pairs.
    pub(super) fn count(corpus: &Corpus, batching: &Batching) -> usize {
        assert!(batching.window > 0, "batches: a window of no pairs");
        corpus.len().div_ceil(batching.window)
    }

    /// A window of an epoch. If `stop` is set before it is finished, what is returned is of no use.
    pub(super) fn window(&mut self, epoch: u64, number: usize, stop: &AtomicBool) -> Result<Window, Error> {
        let Batching { seed, tokens, limits, .. } = self.batching;
        let random = Random::new(seed).split(epoch);
        let mut pairs = self.encode(random, epoch, number, stop)?;

        let mut left_out = LeftOut::default();
        pairs.retain(|pair| left_out.keeps(pair.source.len(), pair.target.len(), &limits, tokens));
        pairs.sort_by_key(|pair| (pair.target.len(), pair.source.len()));
        let mut batches: Vec<PairBatch> = cut(&pairs, tokens).map(PairBatch::new).collect();
        shuffle(&mut batches, random.split(1 + number as u64));
        Ok(Window { batches, left_out })
    }

    /// The pairs of a window, in the order of the epoch.
    fn encode(
        &mut self,
        random: Random,
        epoch: u64,
        number: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<Pair>, Error> {
        let order = match &mut self.order {
            Some((of, order)) if *of == epoch => order,
            // The order of the last epoch goes before the new one is made: they are as large as the corpus.
            slot => {
                *slot = None;
                let mut order: Vec<u32> = (0..self.corpus.len() as u32).collect();
                shuffle(&mut order, random.split(0));
                &mut slot.insert((epoch, order)).1
            }
        };
        let windows = Windows::count(self.corpus, &self.batching);
        let border = |window: usize| window * order.len() / windows;
        let here = border(number)..border(number + 1);
        let mut sorted: Vec<(u32, usize)> = order[here].iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let numbers: Vec<u32> = sorted.iter().map(|(number, _)| *number).collect();

        let mut pairs: Vec<Pair> = numbers.iter().map(|_| Pair::default()).collect();
        let mut failed = None;
        self.corpus.read(&numbers, |i, source, target| {
            // Blank pairs stay without tokens, whatever a tokenizer would add to them.
            if !source.trim().is_empty() && !target.trim().is_empty() {
                match self.pair(numbers[i], random, source, target) {
                    Ok(pair) => pairs[sorted[i].1] = pair,
                    Err(error) => failed = Some(error),
                }
            }
            failed.is_none() && !stop.load(Ordering::Relaxed)
        })?;
        failed.map_or(Ok(pairs), Err)
    }

    fn pair(&self, number: u32, epoch: Random, source: &str, target: &str) -> Result<Pair, Error> {
        let failed = |side| {
            move |error| {
                let (path, line) = self.corpus.place(number, side);
                Error::Line { path: path.to_owned(), line, problem: format!("cannot be encoded: {error}") }
            }
        };
        // Orders are drawn from the numbers of windows, which no pair's number reaches from the other end.
        let random = epoch.split(u64::MAX - u64::from(number));
        Ok(Pair {
            source: self.source.encode(source, random.split(0)).map_err(failed(Side::Source))?,
            target: self.target.encode(target, random.split(1)).map_err(failed(Side::Target))?,
        })
    }
}

/// Cuts pairs into pieces of at most `most` tokens; no pair has more.
fn cut(pairs: &[Pair], most: usize) -> impl Iterator<Item = &[Pair]> {
    let mut rest = pairs;
    std::iter::from_fn(move || {
        let mut tokens = 0;
        let fits = |pair: &&Pair| {
            tokens += pair.source.len() + pair.target.len();
            tokens <= most
        };
        let (piece, after) = rest.split_at(rest.iter().take_while(fits).count());
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
