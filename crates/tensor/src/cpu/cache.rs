//! Keys and values of earlier tokens in the processor's memory.
//!
//! Queries and keys lie element by element, the heads side by side, or in the order of a cache in int8
//! ([`Order`](super::order::Order)). Keys and values are in int8 if the projections that they come from are: they are not worth
//! more, and reading them takes as long as reading the weights.

use super::attention::numbers;
use super::memory::{Memory, Number};
use super::order::Order;
use super::profile::Share;
use super::seen::{Lists, Run};
use super::view::{by_type, i32s, memory};
use super::{CpuBackend, view_mut};
use crate::bias::Bias;
use crate::cache::KeyValueCache;
use crate::layout::Seen;
use crate::tensor::{DType, Tensor};
use attentive_kernels::attention::{self, Attention, Int8Cache, KeyLists, Rows, Span};
use attentive_kernels::{Real, embedding};
use std::fmt;

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
        let &Attention { heads, d_k, d_v, window, .. } = &self.rule;
        let kept = self.kept.as_ref().expect("keys and values were written");
        let lists = Lists::of(seen);
        // Queries in int8 know no window: their lists are cut.
        let within = window.filter(|_| kept.scales.is_some()).map(|window| lists.within(window));
        let within = within.as_ref().unwrap_or(lists);
        let all = 0..seen.queries();
        // Keys in int8 are seen by queries in int8, and dense biases have another order for each kind of pass.
        let runs = match (&kept.scales, bias) {
            (Some(_), _) | (_, Some(Bias::Dense(_))) => vec![Run { queries: all, is_text: false }],
            _ => lists.runs(),
        };
        let queries = self.backend.side_by_side(queries, &self.rule);
        let backend = &self.backend;
        let bias = bias.map(|bias| backend.wide(bias));
        let bias = bias.as_ref().map(numbers);
        backend.profile.time(Share::Attention, || {
            by_type!(queries, T => backend.build([seen.queries(), heads * d_v], |y| {
                let q = memory(&queries).all::<T>();
                for Run { queries, is_text } in runs {
                    let q = &q[queries.start * heads * d_k..queries.end * heads * d_k];
                    let y = &mut y[queries.start * heads * d_v..queries.end * heads * d_v];
                    if is_text {
                        self.attend_to_text(kept, lists.rows(&queries), bias, q, y);
                    } else {
                        self.attend_to_lists(kept, within.lists(&queries), bias, q, y);
                    }
                }
            }))
        })
    }
}

impl CpuCache {
    /// Queries that each have a list of their own.
    fn attend_to_lists<T: Number + Real>(
        &self,
        kept: &Kept,
        lists: KeyLists,
        bias: Option<attention::Bias>,
        q: &[T],
        y: &mut [T],
    ) {
        let &Attention { heads, d_k, d_v, .. } = &self.rule;
        let cpu = &self.backend.cpu;
        let rule = self.rule;
        let q = Rows { data: q, stride: heads * d_k };
        match &kept.scales {
            Some(scales) => {
                let rule = Attention { window: None, ..rule };
                let cache = Int8Cache { k: kept.keys.all(), v: kept.values.all(), scales: scales.all() };
                attention::attention_to_int8_lists(cpu, &rule, lists, bias, q, cache, y);
            }
            None => {
                let k = Rows { data: kept.keys.all::<T>(), stride: heads * d_k };
                let v = Rows { data: kept.values.all::<T>(), stride: heads * d_v };
                attention::attention_to_lists(cpu, &rule, lists, bias, q, k, v, y);
            }
        }
    }

    /// The last tokens of a text of which the cache has all keys and values, in `rows`, to the same bits in one pass.
    fn attend_to_text<T: Number + Real>(
        &self,
        kept: &Kept,
        rows: &[u32],
        bias: Option<attention::Bias>,
        q: &[T],
        y: &mut [T],
    ) {
        let rule = Attention { causal: true, cached: true, ..self.rule };
        let Attention { heads, d_k, d_v, .. } = rule;
        let cpu = &self.backend.cpu;
        let (k_width, v_width) = (heads * d_k, heads * d_v);
        let (queries, keys) = (q.len() / k_width, rows.len());
        let pool = &self.backend.pool;
        let mut room: [Memory; 4] =
            [q.len(), keys * k_width, keys * k_width, keys * v_width].map(|len| pool.take(T::DTYPE, len));
        let [q_heads, k_heads, k_room, v_room] = room.each_mut().map(view_mut::<T>);
        let k = together(kept.keys.all(), rows, k_width, k_room);
        let v = together(kept.values.all(), rows, v_width, v_room);
        // Elements and heads change places.
        attention::heads_side_by_side(cpu, q, d_k, k_width, q_heads);
        attention::heads_side_by_side(cpu, k, d_k, k_width, k_heads);
        let span = Span {
            query: 0,
            queries: queries as u32,
            key: 0,
            keys: keys as u32,
            offset: (keys - queries) as u32,
        };
        let matrix = |data, stride| Rows { data, stride };
        let (q, k, v) = (matrix(q_heads, k_width), matrix(k_heads, k_width), matrix(v, v_width));
        let mut lse = pool.take(DType::F32, queries * heads);
        attention::attention(cpu, &rule, &[span], bias, q, k, v, y, view_mut(&mut lse));
    }
}

/// Rows of a cache one after the other: where they lie, if they lie so, or copied.
fn together<'a, T: Copy>(cache: &'a [T], rows: &[u32], width: usize, room: &'a mut [T]) -> &'a [T] {
    let row = |row: u32| row as usize * width..(row as usize + 1) * width;
    if rows.is_sorted_by(|a, b| a + 1 == *b) {
        return &cache[row(rows[0]).start..row(rows[rows.len() - 1]).end];
    }
    for (&from, to) in rows.iter().zip(room.chunks_exact_mut(width)) {
        to.copy_from_slice(&cache[row(from)]);
    }
    room
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
