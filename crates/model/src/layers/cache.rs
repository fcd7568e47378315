//! The key/value cache of decoding: what was computed for earlier tokens is not computed again.
//!
//! The key and value of a token are written once, in a row of their own, and never moved: hypotheses that share a beginning
//! share its rows, as those of a beam search do. What tells them apart is an ancestor table, for each hypothesis and position
//! the row that holds its key and value. A row is free again when no hypothesis that is followed comes from it.
//!
//! Sentences come and go: each has a slot while it is decoded, with the keys and values that cross attention sees. A decoder
//! without cross attention has no use for slots.

use super::rows::{Ranges, Rows};
use crate::sequences::Sequences;
use attentive_tensor::{Backend, KeyLists, KeyValueCache, Seen, Tensor};
use std::ops::Range;

/// How a hypothesis goes on: from which one of the last step, in which slot, by how many tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The slot of its sentence.
    pub slot: usize,
    /// The one that it follows, by its number among the branches of the last step; none begins a sentence.
    pub parent: Option<usize>,
    /// How many tokens are new: one in the midst of decoding, more of a prompt or a prefix.
    pub tokens: usize,
}

impl Branch {
    /// One more token.
    pub fn token(slot: usize, parent: Option<usize>) -> Branch {
        Branch { slot, parent, tokens: 1 }
    }
}

/// The keys and values of every layer, and whose they are.
#[derive(Debug, Default)]
pub struct Cache {
    layers: Vec<LayerCache>,
    rows: Rows,
    /// The ancestor table: for each branch of the last step the rows of its tokens, in order.
    ancestors: Vec<Vec<u32>>,
    slots: Vec<Option<Range<u32>>>,
    memory: Ranges,
}

/// The keys and values of one layer: of the target so far, and of the encoder's memory where there is one.
#[derive(Debug)]
pub(super) struct LayerCache {
    pub own: Box<dyn KeyValueCache>,
    pub memory: Option<Box<dyn KeyValueCache>>,
}

/// Where the new tokens of one step stand, as [`Decoder::begin`](super::Decoder::begin) found it.
#[derive(Debug)]
pub struct Step {
    pub(super) positions: Vec<i32>,
    /// Where their keys and values are written.
    pub(super) rows: Tensor,
    /// What they see of the target so far.
    pub(super) own: Seen,
    /// What they see of the memory.
    pub(super) cross: Option<Seen>,
}

impl Step {
    /// The position of each new token in its sequence, counted from zero.
    pub fn positions(&self) -> &[i32] {
        &self.positions
    }
}

impl Cache {
    /// The layers, made by `new` the first time.
    pub(super) fn layers_mut(&mut self, new: impl FnOnce() -> Vec<LayerCache>) -> &mut [LayerCache] {
        if self.layers.is_empty() {
            self.layers = new();
        }
        for layer in &mut self.layers {
            layer.own.reserve(self.rows.room());
            if let Some(memory) = &mut layer.memory {
                memory.reserve(self.memory.end as usize);
            }
        }
        &mut self.layers
    }

    /// Makes room for what cross attention sees of further sentences: the rows to write it to.
    ///
    /// # Panics
    /// If a slot is taken.
    pub(super) fn admit(&mut self, backend: &dyn Backend, slots: &[usize], sequences: &Sequences) -> Tensor {
        let (count, sources) = (slots.len(), sequences.len());
        assert_eq!(count, sources, "cache: {count} slots for {sources} sources");
        let mut rows = Vec::with_capacity(sequences.tokens());
        for (&slot, range) in slots.iter().zip(sequences.ranges()) {
            if self.slots.len() <= slot {
                self.slots.resize(slot + 1, None);
            }
            assert!(self.slots[slot].is_none(), "cache: slot {slot} is taken");
            let range = self.memory.take(range.len() as u32);
            rows.extend(range.clone().map(|row| row as i32));
            self.slots[slot] = Some(range);
        }
        backend.upload_i32(&rows)
    }

    /// Forgets the sentence in a slot. Its hypotheses must not be followed any more.
    pub fn release(&mut self, slot: usize) {
        if let Some(range) = self.slots.get_mut(slot).and_then(Option::take) {
            self.memory.give_back(range);
        }
    }

    /// Makes room for the new tokens of each branch, and forgets the hypotheses that none of them follows.
    pub(super) fn step(&mut self, backend: &dyn Backend, branches: &[Branch], cross: bool) -> Step {
        let last = std::mem::take(&mut self.ancestors);
        let (mut positions, mut rows) = (Vec::new(), Vec::new());
        for branch in branches {
            let parent = branch.parent.map(|parent| &last[parent]);
            let mut ancestors = Vec::with_capacity(parent.map_or(0, Vec::len) + branch.tokens);
            ancestors.extend(parent.into_iter().flatten());
            if let (Some(&last), 0) = (ancestors.last(), branch.tokens) {
                self.rows.keep(last);
            }
            for token in 0..branch.tokens {
                let row = match ancestors.last() {
                    Some(&before) if token > 0 => self.rows.take_next(before),
                    before => self.rows.take(before.copied()),
                };
                positions.push(ancestors.len() as i32);
                rows.push(row as i32);
                ancestors.push(row);
            }
            self.ancestors.push(ancestors);
        }
        for ancestors in last {
            self.rows.give_back(&ancestors);
        }
        let mut own = Lists::default();
        for (branch, ancestors) in branches.iter().zip(&self.ancestors) {
            let before = ancestors.len() - branch.tokens;
            own.push(ancestors.iter().copied(), (before..ancestors.len()).map(|token| token + 1));
        }
        let cross = cross.then(|| {
            let mut cross = Lists::default();
            for branch in branches {
                let slot = self.slots.get(branch.slot).cloned().flatten();
                let slot = slot.unwrap_or_else(|| panic!("cache: slot {} is empty", branch.slot));
                cross.push(slot.clone(), std::iter::repeat_n(slot.len(), branch.tokens));
            }
            cross.seen(backend)
        });
        Step { positions, rows: backend.upload_i32(&rows), own: own.seen(backend), cross }
    }
}

/// The rows that each token sees.
#[derive(Default)]
struct Lists {
    rows: Vec<u32>,
    lists: Vec<Range<u32>>,
}

impl Lists {
    /// Adds the tokens of a branch, of which each sees so many of `rows`.
    fn push(&mut self, rows: impl Iterator<Item = u32>, seen: impl Iterator<Item = usize>) {
        let start = self.rows.len() as u32;
        self.rows.extend(rows);
        self.lists.extend(seen.map(|seen| start..start + seen as u32));
    }

    fn seen(&self, backend: &dyn Backend) -> Seen {
        backend.seen(KeyLists { rows: &self.rows, lists: &self.lists })
    }
}
