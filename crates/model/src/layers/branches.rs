//! The key/value cache of sequences that branch, as the hypotheses of a beam search do.
//!
//! The key and value of a token are written once, in a row of their own, and never moved: hypotheses that share a beginning
//! share its rows. What tells them apart is an ancestor table, for each hypothesis and position the row that holds its
//! key and value. A row is free again when no hypothesis that is followed comes from it.
//!
//! Sentences come and go: each has a slot while it is decoded, with the keys and values that cross attention sees.

use super::cache::{LayerCache, Seen, Step};
use crate::sequences::Sequences;
use attentive_tensor::{Backend, Tensor};
use std::ops::Range;

/// How a hypothesis goes on: from which one of the last step, in which slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The slot of its sentence.
    pub slot: usize,
    /// The one that it follows, by its number among the branches of the last step; none begins a sentence.
    pub parent: Option<usize>,
}

/// The keys and values of every layer, and whose they are.
#[derive(Debug, Default)]
pub struct BranchCache {
    layers: Vec<LayerCache>,
    rows: Rows,
    /// The ancestor table: for each branch of the last step the rows of its tokens, in order.
    ancestors: Vec<Vec<u32>>,
    slots: Vec<Option<Range<u32>>>,
    memory: Ranges,
}

impl BranchCache {
    pub(super) fn layers_mut(&mut self) -> impl Iterator<Item = &mut LayerCache> {
        self.layers.iter_mut()
    }

    /// Makes room for what cross attention sees of further sentences: the rows to write it to. Keys and values are kept in
    /// int8 or as they come.
    ///
    /// # Panics
    /// If a slot is taken.
    pub(super) fn admit(
        &mut self,
        backend: &dyn Backend,
        slots: &[usize],
        sequences: &Sequences,
        layers: usize,
        int8: bool,
    ) -> Tensor {
        assert_eq!(
            slots.len(),
            sequences.len(),
            "cache: {} slots for {} sources",
            slots.len(),
            sequences.len()
        );
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
        self.layers.resize_with(layers, || LayerCache::new(int8));
        for layer in &mut self.layers {
            layer.memory.rows = self.memory.end as usize;
        }
        backend.upload_i32(&rows)
    }

    /// Forgets the sentence in a slot. Its hypotheses must not be followed any more.
    pub fn release(&mut self, slot: usize) {
        if let Some(range) = self.slots.get_mut(slot).and_then(Option::take) {
            self.memory.give_back(range);
        }
    }

    /// Makes room for one new token of each branch, and forgets the hypotheses that none of them follows.
    pub(super) fn step(&mut self, backend: &dyn Backend, branches: &[Branch]) -> Step {
        let last = std::mem::take(&mut self.ancestors);
        let (mut positions, mut rows) = (Vec::new(), Vec::new());
        for branch in branches {
            let parent = branch.parent.map(|parent| &last[parent]);
            let mut ancestors = Vec::with_capacity(parent.map_or(0, Vec::len) + 1);
            ancestors.extend(parent.into_iter().flatten());
            let row = self.rows.take(ancestors.last().copied());
            positions.push(ancestors.len() as i32);
            rows.push(row as i32);
            ancestors.push(row);
            self.ancestors.push(ancestors);
        }
        for ancestors in last {
            self.rows.give_back(&ancestors);
        }
        for layer in &mut self.layers {
            layer.own.rows = self.rows.room();
        }
        let own = lists(self.ancestors.iter().map(|ancestors| ancestors.iter().copied()));
        let slot = |branch: &Branch| self.slots[branch.slot].clone();
        let empty = |branch: &Branch| panic!("cache: slot {} is empty", branch.slot);
        let cross = lists(branches.iter().map(|branch| slot(branch).unwrap_or_else(|| empty(branch))));
        Step { positions, rows: backend.upload_i32(&rows), own, cross }
    }
}

/// The rows that each branch sees, one list after the other.
fn lists(seen: impl Iterator<Item = impl Iterator<Item = u32>>) -> Seen {
    let (mut rows, mut ends) = (Vec::new(), Vec::new());
    for list in seen {
        rows.extend(list);
        ends.push(rows.len() as u32);
    }
    Seen::Lists { rows, ends }
}

/// Rows that are taken one by one and know who comes from them.
#[derive(Debug, Default)]
struct Rows {
    /// How many rows come from each one, and one more while a hypothesis that is followed ends with it.
    uses: Vec<u32>,
    free: Vec<u32>,
}

impl Rows {
    /// A row for a token after `parent`.
    fn take(&mut self, parent: Option<u32>) -> u32 {
        if let Some(parent) = parent {
            self.uses[parent as usize] += 1;
        }
        match self.free.pop() {
            Some(row) => {
                self.uses[row as usize] = 1;
                row
            }
            None => {
                self.uses.push(1);
                self.uses.len() as u32 - 1
            }
        }
    }

    /// Gives back the hypothesis with these rows: all of them from the end to the first that another one shares.
    fn give_back(&mut self, ancestors: &[u32]) {
        for &row in ancestors.iter().rev() {
            self.uses[row as usize] -= 1;
            if self.uses[row as usize] > 0 {
                break;
            }
            self.free.push(row);
        }
    }

    /// How many rows must be in memory: more than are taken, so that memory grows seldom.
    fn room(&self) -> usize {
        self.uses.len().next_power_of_two()
    }
}

/// Rows that are taken many at a time, one after the other.
#[derive(Debug, Default)]
struct Ranges {
    /// In order, no two of them touching.
    free: Vec<Range<u32>>,
    end: u32,
}

impl Ranges {
    /// The first place with room, or new rows at the end, where it grows by at least half.
    fn take(&mut self, len: u32) -> Range<u32> {
        if let Some(place) = self.free.iter().position(|range| range.len() as u32 >= len) {
            let start = self.free[place].start;
            self.free[place].start += len;
            if self.free[place].is_empty() {
                self.free.remove(place);
            }
            return start..start + len;
        }
        let more = len.max(self.end / 2);
        self.give_back(self.end..self.end + more);
        self.end += more;
        self.take(len)
    }

    fn give_back(&mut self, range: Range<u32>) {
        let place = self.free.partition_point(|free| free.start < range.start);
        self.free.insert(place, range);
        if self.free.get(place + 1).is_some_and(|next| next.start == self.free[place].end) {
            self.free[place].end = self.free.remove(place + 1).end;
        }
        if place > 0 && self.free[place - 1].end == self.free[place].start {
            self.free[place - 1].end = self.free.remove(place).end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_free_again_when_no_hypothesis_comes_from_them() {
        let mut rows = Rows::default();
        let a = rows.take(None);
        let [b, c] = [rows.take(Some(a)), rows.take(Some(a))];
        rows.give_back(&[a]); // It is followed by two, and itself no longer an end.
        assert_eq!(rows.free, [0; 0]);
        rows.give_back(&[a, b]);
        assert_eq!(rows.free, [b]);
        assert_eq!(rows.take(Some(c)), b);
        rows.give_back(&[a, c]);
        rows.give_back(&[a, c, b]);
        rows.free.sort_unstable();
        assert_eq!(rows.free, [a, b, c]);
    }

    #[test]
    fn ranges_do_not_overlap_and_grow_together_again() {
        let mut ranges = Ranges::default();
        let taken = [3, 5, 2, 7].map(|len| ranges.take(len));
        let mut sorted = taken.to_vec();
        sorted.sort_by_key(|range| range.start);
        assert!(sorted.windows(2).all(|pair| pair[0].end <= pair[1].start), "{taken:?}");
        for range in [2, 0, 3, 1].map(|i: usize| taken[i].clone()) {
            ranges.give_back(range);
        }
        assert_eq!((ranges.free.len(), &ranges.free[0]), (1, &(0..ranges.end)));
        assert_eq!(ranges.take(0), 0..0);
    }
}
