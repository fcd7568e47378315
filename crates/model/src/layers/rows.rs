//! Which rows of a cache are taken.

use std::ops::Range;

/// Rows that are taken one by one and know who comes from them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// How many rows come from each one, and one more while a hypothesis that is followed ends with it.
    uses: Vec<u32>,
    free: Vec<u32>,
}

impl Rows {
    /// A row for a token after `parent`.
    pub(super) fn take(&mut self, parent: Option<u32>) -> u32 {
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

    /// The same for a token after one of the same step: no hypothesis ends with that one.
    pub(super) fn take_next(&mut self, parent: u32) -> u32 {
        let row = self.take(Some(parent));
        self.uses[parent as usize] -= 1;
        row
    }

    /// Keeps a hypothesis that goes on without a new token.
    pub(super) fn keep(&mut self, last: u32) {
        self.uses[last as usize] += 1;
    }

    /// Gives back the hypothesis with these rows: all of them from the end to the first that another one shares.
    pub(super) fn give_back(&mut self, ancestors: &[u32]) {
        for &row in ancestors.iter().rev() {
            self.uses[row as usize] -= 1;
            if self.uses[row as usize] > 0 {
                break;
            }
            self.free.push(row);
        }
    }

    /// How many rows must be in memory: more than are taken, so that memory grows seldom.
    pub(super) fn room(&self) -> usize {
        self.uses.len().next_power_of_two()
    }
}

/// Rows that are taken many at a time, one after the other.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// In order, no two of them touching.
    free: Vec<Range<u32>>,
    /// Rows that were ever taken are below.
    pub(super) end: u32,
}

impl Ranges {
    /// The first place with room, or new rows at the end, where it grows by at least half.
    pub(super) fn take(&mut self, len: u32) -> Range<u32> {
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

    pub(super) fn give_back(&mut self, range: Range<u32>) {
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
    fn several_tokens_of_a_step_are_given_back_together() {
        let mut rows = Rows::default();
        let a = rows.take(None);
        let b = rows.take_next(a);
        let c = rows.take_next(b);
        rows.keep(c);
        rows.give_back(&[a, b, c]);
        assert_eq!(rows.free, [0; 0]);
        rows.give_back(&[a, b, c]);
        assert_eq!(rows.free, [c, b, a]);
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
