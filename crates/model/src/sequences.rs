//! Where the sequences of a packed batch begin.

use attentive_tensor::{Backend, Layout, Span, Var};
use std::ops::Range;
use std::sync::Arc;

/// The sequences of a packed batch, one after the other in its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequences {
    /// The first row of each sequence, and the end of the last.
    offsets: Arc<[u32]>,
}

impl Sequences {
    /// Sequences of these lengths.
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> Sequences {
        let mut offsets = vec![0u32];
        for length in lengths {
            let end = offsets[offsets.len() - 1] as usize + length;
            offsets.push(u32::try_from(end).expect("a batch has fewer than 2³² tokens"));
        }
        Sequences { offsets: offsets.into() }
    }

    /// How many sequences there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of tokens of all sequences together.
    pub fn tokens(&self) -> usize {
        self.offsets[self.len()] as usize
    }

    /// The rows of each sequence.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// The first row of each sequence, and the end of the last: one more than there are sequences.
    pub fn offsets(&self) -> Vec<i32> {
        self.offsets.iter().map(|&row| row as i32).collect()
    }

    /// The place of each token in its sequence, counted from zero.
    pub fn positions(&self) -> Vec<i32> {
        self.ranges().flat_map(|range| 0..range.len() as i32).collect()
    }

    /// Checks that the rows of `x` are the tokens of these sequences.
    ///
    /// # Panics
    /// If they are more or fewer.
    pub(crate) fn check(&self, what: &str, x: &Var) {
        let (tokens, shape) = (self.tokens(), x.shape());
        assert_eq!(shape.rows(), tokens, "{what}: {shape} for sequences of {tokens} tokens");
    }

    /// How attention goes from the queries of each sequence to the keys of its partner in `memory`, for all layers.
    ///
    /// # Panics
    /// If there are not as many sequences in `memory`.
    pub fn attending(&self, backend: &dyn Backend, memory: &Sequences) -> Layout {
        assert_eq!(self.len(), memory.len(), "attention: {} sequences to {}", self.len(), memory.len());
        let spans = self.ranges().zip(memory.ranges()).map(|(queries, keys)| Span {
            query: queries.start as u32,
            queries: queries.len() as u32,
            key: keys.start as u32,
            keys: keys.len() as u32,
            offset: 0,
        });
        backend.layout(&spans.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_become_offsets_and_positions() {
        let sequences = Sequences::new([3, 0, 2]);
        assert_eq!((sequences.len(), sequences.tokens()), (3, 5));
        assert_eq!(sequences.ranges().collect::<Vec<_>>(), [0..3, 3..3, 3..5]);
        assert_eq!(sequences.positions(), [0, 1, 2, 0, 1]);
    }
}
