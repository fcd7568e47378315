//! The key/value cache of decoding: what was computed for earlier tokens is not computed again.
//!
//! Each sequence has `capacity` rows of its own in every layer's keys and values, so that a new token is written in
//! place and attention reads a sequence's rows where they lie. Where sequences branch, see
//! [`BranchCache`](super::BranchCache).

use crate::sequences::Sequences;
use attentive_tensor::{Backend, DType, Span, Tape, Tensor, Var};
use std::sync::Arc;

/// The keys and values of every layer.
#[derive(Debug)]
pub struct Cache {
    layers: Vec<LayerCache>,
    lengths: Vec<usize>,
    capacity: usize,
    memory: Sequences,
}

/// The keys and values of one layer: of the target so far, and of the encoder's memory.
#[derive(Debug, Default)]
pub struct LayerCache {
    pub(super) own: KeysValues,
    pub(super) memory: KeysValues,
}

/// Keys `[rows, h·d_k]` and values `[rows, h·d_v]`. They are made when the first ones are written, and again when `rows`
/// has grown since.
#[derive(Debug, Default)]
pub(super) struct KeysValues {
    tensors: Option<(Tensor, Tensor)>,
    pub rows: usize,
    /// The type that they are rounded to, if not their own.
    dtype: Option<DType>,
}

/// Where the tokens of one step stand.
pub(super) struct Step {
    pub positions: Vec<i32>,
    /// Where their keys and values are written.
    pub rows: Tensor,
    pub own: Seen,
    pub cross: Seen,
}

/// Which rows of the cache the tokens of a step see.
pub(super) enum Seen {
    /// Of each sequence rows that lie one after the other.
    Spans(Arc<[Span]>),
    /// Rows that lie anywhere, a list for each token.
    Lists { rows: Vec<u32>, ends: Vec<u32> },
}

impl LayerCache {
    /// An empty one whose keys and values are rounded to a type, if one is given.
    pub(super) fn of(dtype: Option<DType>) -> LayerCache {
        let empty = || KeysValues { dtype, ..KeysValues::default() };
        LayerCache { own: empty(), memory: empty() }
    }
}

impl Cache {
    pub(super) fn new(
        memory_keys_values: impl Iterator<Item = (Var, Var)>,
        memory: &Sequences,
        capacity: usize,
    ) -> Cache {
        let layer = |(keys, values): (Var, Var)| LayerCache {
            own: KeysValues { rows: memory.len() * capacity, ..KeysValues::default() },
            memory: KeysValues {
                tensors: Some((keys.value().clone(), values.value().clone())),
                rows: memory.tokens(),
                dtype: None,
            },
        };
        let layers = memory_keys_values.map(layer).collect();
        Cache { layers, lengths: vec![0; memory.len()], capacity, memory: memory.clone() }
    }

    /// How many tokens of each sequence are in the cache.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    pub(super) fn layers_mut(&mut self) -> impl Iterator<Item = &mut LayerCache> {
        self.layers.iter_mut()
    }

    /// Makes room for the new tokens of each sequence.
    ///
    /// # Panics
    /// If a sequence would outgrow the capacity.
    pub(super) fn step(&mut self, backend: &dyn Backend, new: &Sequences) -> Step {
        assert_eq!(
            new.len(),
            self.lengths.len(),
            "cache: {} sequences for {}",
            new.len(),
            self.lengths.len()
        );
        let (mut positions, mut rows, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for (i, range) in new.ranges().enumerate() {
            let (start, length) = (i * self.capacity, self.lengths[i]);
            let end = length + range.len();
            assert!(end <= self.capacity, "cache: {end} tokens, but there is room for {}", self.capacity);
            positions.extend((length..end).map(|position| position as i32));
            rows.extend((start + length..start + end).map(|row| row as i32));
            own.push(Span {
                query: range.start as u32,
                queries: range.len() as u32,
                key: start as u32,
                keys: end as u32,
                offset: length as u32,
            });
            self.lengths[i] = end;
        }
        Step {
            positions,
            rows: backend.upload_i32(&rows),
            own: Seen::Spans(own.into()),
            cross: Seen::Spans(new.attending(&self.memory)),
        }
    }
}

impl KeysValues {
    pub(super) fn vars(&self, tape: &Tape) -> (Var, Var) {
        let (keys, values) = self.tensors.as_ref().expect("keys and values were written");
        (tape.constant(keys.clone()), tape.constant(values.clone()))
    }

    /// Writes rows, such as those of the newest tokens.
    pub(super) fn write(&mut self, backend: &dyn Backend, rows: &Tensor, keys: &Tensor, values: &Tensor) {
        let (old_keys, old_values) = self.tensors.take().unzip();
        let write = |old: Option<Tensor>, new: &Tensor| {
            let mut all = self.room(backend, old, new);
            backend.write_rows(&mut all, rows, new);
            all
        };
        self.tensors = Some((write(old_keys, keys), write(old_values, values)));
    }

    /// A tensor of `rows` rows that begins with the old ones and may be written to.
    fn room(&self, backend: &dyn Backend, old: Option<Tensor>, new: &Tensor) -> Tensor {
        match old {
            // Who watches the attention of an earlier step still holds its keys.
            Some(old) if old.shape().rows() == self.rows => backend.own(old),
            old => {
                let dtype = self.dtype.unwrap_or(new.dtype());
                let mut all = backend.zeros([self.rows, new.shape().cols()].into(), dtype);
                if let Some(old) = old {
                    let rows: Vec<i32> = (0..old.shape().rows() as i32).collect();
                    backend.write_rows(&mut all, &backend.upload_i32(&rows), &old);
                }
                all
            }
        }
    }
}
