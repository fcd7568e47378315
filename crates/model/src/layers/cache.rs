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

/// Keys `[rows, h·d_k]` and values `[rows, h·d_v]`, in int8 with scales `[rows, 2]`. They are made when the first ones
/// are written, and again when `rows` has grown since.
#[derive(Debug, Default)]
pub(super) struct KeysValues {
    tensors: Option<(Tensor, Tensor)>,
    scales: Option<Tensor>,
    pub rows: usize,
    int8: bool,
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
    /// An empty one, with keys and values in int8 or as they come.
    pub(super) fn new(int8: bool) -> LayerCache {
        let empty = || KeysValues { int8, ..KeysValues::default() };
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
                ..KeysValues::default()
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

    /// Those of keys and values in int8.
    pub(super) fn scales(&self) -> Option<&Tensor> {
        self.scales.as_ref()
    }

    /// Writes rows, such as those of the newest tokens.
    pub(super) fn write(&mut self, backend: &dyn Backend, rows: &Tensor, keys: &Tensor, values: &Tensor) {
        let (old_keys, old_values) = self.tensors.take().unzip();
        let dtype = if self.int8 { DType::I8 } else { keys.dtype() };
        let mut all_keys = self.room(backend, old_keys, keys.shape().cols(), dtype);
        let mut all_values = self.room(backend, old_values, values.shape().cols(), dtype);
        if self.int8 {
            let old = self.scales.take();
            let mut scales = self.room(backend, old, 2, DType::F32);
            backend.write_int8_rows(&mut all_keys, &mut scales, 0, rows, keys);
            backend.write_int8_rows(&mut all_values, &mut scales, 1, rows, values);
            self.scales = Some(scales);
        } else {
            backend.write_rows(&mut all_keys, rows, keys);
            backend.write_rows(&mut all_values, rows, values);
        }
        self.tensors = Some((all_keys, all_values));
    }

    /// A tensor of `rows` rows that begins with the old ones and may be written to.
    fn room(&self, backend: &dyn Backend, old: Option<Tensor>, width: usize, dtype: DType) -> Tensor {
        match old {
            // Who watches the attention of an earlier step still holds its keys.
            Some(old) if old.shape().rows() == self.rows => backend.own(old),
            old => {
                let mut all = backend.zeros([self.rows, width].into(), dtype);
                if let Some(old) = old {
                    let rows: Vec<i32> = (0..old.shape().rows() as i32).collect();
                    backend.write_rows(&mut all, &backend.upload_i32(&rows), &old);
                }
                all
            }
        }
    }
}
