//! Which rows of a cache queries see, in the processor's memory.

use crate::layout::Seen;
use crate::tensor::Buffer;
use attentive_kernels::attention::KeyLists;
use std::ops::Range;

/// The lists of rows that queries see.
pub(super) struct Lists {
    rows: Vec<u32>,
    lists: Vec<Range<u32>>,
}

/// Queries that follow one another, and how they are to be computed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub queries: Range<usize>,
    /// Whether they are tokens of one text, one after the other, so many that a pass over all of them takes less time.
    pub is_text: bool,
}

/// The fewest tokens of a text for which keys and values are worth being copied to one place.
const FEWEST: usize = 32;

impl Lists {
    pub fn seen(lists: KeyLists) -> Seen {
        let own = Lists { rows: lists.rows.to_vec(), lists: lists.lists.to_vec() };
        Seen::new(lists.lists.len(), Buffer::new(own))
    }

    pub fn of(seen: &Seen) -> &Lists {
        seen.buffer().get().unwrap_or_else(|| panic!("{seen:?}: not in the processor's memory"))
    }

    /// The same for queries that see no more than the last `window` rows of their lists.
    pub fn within(&self, window: usize) -> Lists {
        let cut = |list: &Range<u32>| list.start.max(list.end.saturating_sub(window as u32))..list.end;
        Lists { rows: self.rows.clone(), lists: self.lists.iter().map(cut).collect() }
    }

    /// The lists of some queries.
    pub fn lists(&self, queries: &Range<usize>) -> KeyLists<'_> {
        KeyLists { rows: &self.rows, lists: &self.lists[queries.clone()] }
    }

    /// The rows that the last of some queries sees: for tokens of one text, all that any of them sees.
    pub fn rows(&self, queries: &Range<usize>) -> &[u32] {
        let list = &self.lists[queries.end - 1];
        &self.rows[list.start as usize..list.end as usize]
    }

    /// All queries, in runs. Each token of a text sees one row more than the token before.
    pub fn runs(&self) -> Vec<Run> {
        let follows = |a: &Range<u32>, b: &Range<u32>| a.start == b.start && a.end + 1 == b.end;
        let mut runs: Vec<Run> = Vec::new();
        let mut first = 0;
        for text in self.lists.chunk_by(follows) {
            let queries = first..first + text.len();
            let is_text = text.len() >= FEWEST;
            first = queries.end;
            match runs.last_mut() {
                Some(last) if !last.is_text && !is_text => last.queries.end = queries.end,
                _ => runs.push(Run { queries, is_text }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_part_texts_from_single_tokens() {
        let text = |start: u32, tokens: usize| (1..=tokens as u32).map(move |end| start..start + end);
        let lists: Vec<Range<u32>> = [0..5, 5..9]
            .into_iter()
            .chain(text(9, FEWEST))
            .chain(text(9, FEWEST - 1))
            .chain(std::iter::once(3..4))
            .collect();
        let lists = Lists { rows: (0..50).collect(), lists };
        let ends: Vec<(usize, bool)> =
            lists.runs().iter().map(|run| (run.queries.end, run.is_text)).collect();
        assert_eq!(ends, [(2, false), (2 + FEWEST, true), (2 * FEWEST + 2, false)]);
        assert_eq!(lists.rows(&(2..2 + FEWEST)).len(), FEWEST);
        assert_eq!(Lists { rows: Vec::new(), lists: Vec::new() }.runs(), []);
    }
}
