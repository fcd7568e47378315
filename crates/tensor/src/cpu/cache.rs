//! Keys and values of earlier tokens in the processor's memory.
//!
//! Queries and keys lie element by element, the heads side by side, or in the order of a cache in int8
//! ([`Order`](super::order::Order)). Keys and values are in int8 if the projections that they come from are: they are not worth
//! more, and reading them takes as long as reading the weights.

use super::attention::numbers;
use super::memory::Memory;
use super::order::Order;
use super::profile::Share;
use super::view::{by_type, i32s, memory};
use super::{CpuBackend, view_mut};
use crate::bias::Bias;
use crate::cache::KeyValueCache;
use crate::layout::Seen;
use crate::tensor::{Buffer, DType, Tensor};
use attentive_kernels::attention::{self, Attention, Int8Cache, KeyLists, Rows};
use attentive_kernels::embedding;
use std::fmt;

/// The lists of rows that queries see.
pub(super) struct Lists {
    rows: Vec<u32>,
    ends: Vec<u32>,
}

impl Lists {
    pub(super) fn seen(lists: KeyLists) -> Seen {
        let own = Lists { rows: lists.rows.to_vec(), ends: lists.ends.to_vec() };
        Seen::new(lists.ends.len(), Buffer::new(own))
    }

    fn of(seen: &Seen) -> &Lists {
        seen.buffer().get().unwrap_or_else(|| panic!("{seen:?}: not in the processor's memory"))
    }

    /// The same for queries that see no more than the last `window` rows of their lists.
    fn within(&self, window: usize) -> Lists {
        let mut cut = Lists { rows: Vec::new(), ends: Vec::with_capacity(self.ends.len()) };
        let mut start = 0;
        for &end in &self.ends {
            let list = &self.rows[start..end as usize];
            cut.rows.extend(&list[list.len().saturating_sub(window)..]);
            cut.ends.push(cut.rows.len() as u32);
            start = end as usize;
        }
        cut
    }

    fn lists(&self) -> KeyLists<'_> {
        KeyLists { rows: &self.rows, ends: &self.ends }
    }
}

/// A cache of the backend for the processor.
pub(super) struct CpuCache {
    backend: CpuBackend,
    rule: Attention,
    /// Rows that there shall be room for.
    rows: usize,
    kept: Option<Kept>,
}

/// Keys `[rows, h·d_k]` and values `[rows, h·d_v]`, in int8 with scales `[rows, 2]`.
struct Kept {
    keys: Memory,
    values: Memory,
    scales: Option<Memory>,
    dtype: DType,
    rows: usize,
}

impl CpuCache {
    pub(super) fn new(backend: CpuBackend, rule: &Attention) -> CpuCache {
        CpuCache { backend, rule: Attention { dropout: None, ..*rule }, rows: 0, kept: None }
    }

    /// Room for `self.rows` rows, with those that are there.
    fn room(&self, dtype: DType) -> Kept {
        let &Attention { heads, d_k, d_v, .. } = &self.rule;
        let pool = &self.backend.pool;
        let int8 = dtype == DType::I8;
        let mut kept = Kept {
            keys: pool.take(dtype, self.rows * heads * d_k),
            values: pool.take(dtype, self.rows * heads * d_v),
            scales: int8.then(|| pool.take(DType::F32, self.rows * 2)),
            dtype,
            rows: self.rows,
        };
        if let Some(old) = &self.kept {
            assert_eq!(old.dtype, dtype, "a cache holds {:?}, and cannot take {dtype:?}", old.dtype);
            kept.keys.begin_with(&old.keys);
            kept.values.begin_with(&old.values);
            if let (Some(scales), Some(old)) = (&mut kept.scales, &old.scales) {
                scales.begin_with(old);
            }
        }
        kept
    }
}

impl KeyValueCache for CpuCache {
    fn reserve(&mut self, rows: usize) {
        self.rows = self.rows.max(rows);
    }

    fn write(&mut self, rows: &Tensor, keys: &Tensor, values: &Tensor) {
        let &Attention { heads, d_k, d_v, .. } = &self.rule;
        let int8 = matches!(memory(keys).order(), Some(Order::Int8(_)));
        let dtype = if int8 { DType::I8 } else { keys.dtype() };
        let mut kept = match self.kept.take() {
            Some(kept) if kept.rows >= self.rows && kept.dtype == dtype => kept,
            kept => {
                self.kept = kept;
                self.room(dtype)
            }
        };
        let keys = self.backend.side_by_side(keys, &self.rule);
        let backend = &self.backend;
        backend.profile.time(Share::Embedding, || {
            let rows = i32s(rows);
            by_type!(keys, T => {
                let (k, v) = (memory(&keys).all::<T>(), memory(values).all::<T>());
                match &mut kept.scales {
                    Some(scales) => {
                        let scales = view_mut::<f32>(scales);
                        let cpu = &backend.cpu;
                        embedding::write_int8_rows(cpu, k, heads * d_k, rows, view_mut(&mut kept.keys), scales, 0);
                        embedding::write_int8_rows(cpu, v, heads * d_v, rows, view_mut(&mut kept.values), scales, 1);
                    }
                    None => {
                        embedding::write_rows(k, heads * d_k, rows, view_mut(&mut kept.keys));
                        embedding::write_rows(v, heads * d_v, rows, view_mut(&mut kept.values));
                    }
                }
            });
        });
        self.kept = Some(kept);
    }

    fn attend(&self, queries: &Tensor, seen: &Seen, bias: Option<&Bias>) -> Tensor {
        let &Attention { heads, d_k, d_v, .. } = &self.rule;
        let kept = self.kept.as_ref().expect("keys and values were written");
        // The lists say who sees what.
        let rule = Attention { window: None, ..self.rule };
        let lists = Lists::of(seen);
        let within = self.rule.window.map(|window| lists.within(window));
        let lists = within.as_ref().unwrap_or(lists).lists();
        let queries = self.backend.side_by_side(queries, &self.rule);
        let backend = &self.backend;
        let bias = bias.map(|bias| backend.wide(bias));
        let bias = bias.as_ref().map(numbers);
        backend.profile.time(Share::Attention, || {
            by_type!(queries, T => backend.build([seen.queries(), heads * d_v], |y| {
                let q = Rows { data: memory(&queries).all::<T>(), stride: heads * d_k };
                match &kept.scales {
                    Some(scales) => {
                        let cache = Int8Cache { k: kept.keys.all(), v: kept.values.all(), scales: scales.all() };
                        attention::attention_to_int8_lists(&backend.cpu, &rule, lists, bias, q, cache, y);
                    }
                    None => {
                        let k = Rows { data: kept.keys.all::<T>(), stride: heads * d_k };
                        let v = Rows { data: kept.values.all::<T>(), stride: heads * d_v };
                        attention::attention_to_lists(&backend.cpu, &rule, lists, bias, q, k, v, y);
                    }
                }
            }))
        })
    }
}

impl fmt::Debug for CpuCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuCache").field("rule", &self.rule).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl CpuBackend {
    /// Queries or keys as a cache has them: in its own order if they are not, or as they are.
    fn side_by_side(&self, x: &Tensor, rule: &Attention) -> Tensor {
        if memory(x).order().is_some() {
            return x.clone();
        }
        self.profile.time(Share::Attention, || {
            let order = Order::SideBySide { d: rule.d_k, heads: rule.heads };
            let turned = by_type!(x, T => self.build(x.shape(), |y| {
                let x = memory(x).all::<T>();
                attention::heads_side_by_side(&self.cpu, x, rule.heads, rule.heads * rule.d_k, y);
            }));
            self.ordered(turned, Some(order))
        })
    }

    /// Rows with their heads one after the other.
    pub(super) fn head_by_head(&self, x: &Tensor) -> Tensor {
        let Some(order) = memory(x).order() else { return x.clone() };
        self.profile.time(Share::Attention, || {
            by_type!(x, T => self.build(x.shape(), |y| order.turn_back(&self.cpu, memory(x).all::<T>(), y)))
        })
    }

    /// A fresh tensor with an order of its own.
    pub(super) fn ordered(&self, mut x: Tensor, order: Option<Order>) -> Tensor {
        if order.is_some() {
            x.buffer_mut().get_mut::<Memory>().expect("fresh, and of this backend").set_order(order);
        }
        x
    }
}
