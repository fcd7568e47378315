//! Scaled dot-product attention over packed sequences, forward and backward, without a T×T matrix.
//!
//! For every head, query `i` and the keys `j` that it may see:
//!
//! ```text
//! s_ij = scale · q_i · k_j + b_ij    lse_i = log Σ_j e^s_ij    p_ij = e^(s_ij - lse_i)    y_i = Σ_j p_ij · v_j
//! ```
//!
//! where `b` is a bias, if there is one (`bias.rs`).
//!
//! Scores exist for a block of queries and a block of keys at a time. Going through the blocks of keys, a
//! query keeps the greatest score `m` so far, the sum `l` of `e^(s - m)` and the sum `o` of `e^(s - m) · v`;
//! a greater `m` scales both sums down (Milakov and Gimelshein 2018; Dao et al. 2022). Backward forms `p`
//! again from `lse`:
//!
//! ```text
//! dv_j = Σ_i p_ij · dy_i    ds_ij = p_ij · (dy_i · v_j - dy_i · y_i)
//! dq_i = scale · Σ_j ds_ij · k_j    dk_j = scale · Σ_i ds_ij · q_i
//! ```
//!
//! Blocks of keys have a fixed size and start at the first key of the sequence, scores and sums over keys are
//! single chains in the order of the keys, and a key that a query does not see adds exact zeros. So the bits
//! of a query's output depend on the query, its position and what it sees, and on nothing else in the call:
//! one query over cached keys gives the bits that it gets in a pass over the whole sequence. (One exception:
//! zero times a value that is not finite is not zero, so a broken value also breaks queries of its block that
//! do not see it.)
//!
//! Queries, keys, values, outputs and their gradients are stored as [`Real`]s. What is between them, sums
//! over blocks above all, is `f32`; so are `lse` and the weights.

mod backward;
mod backward_on_tiles;
mod bias;
mod block;
mod decode;
mod forward;
mod forward_on_tiles;
mod int8;
mod on_tiles;
#[cfg(test)]
mod tests;

pub use backward::attention_backward;
pub use bias::Bias;
pub use decode::{KeyLists, attention_to_lists, heads_side_by_side};
pub use forward::{attention, attention_weights};
pub use int8::{Int8Cache, attention_to_int8_lists, fits_int8, key_order, value_order};

use crate::{Cpu, Dropout, Real};
use std::ops::Range;

/// What one attention computes, apart from the numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// How many heads lie side by side in a row.
    pub heads: usize,
    /// Width of a query and of a key, for one head.
    pub d_k: usize,
    /// Width of a value, for one head.
    pub d_v: usize,
    /// What products of query and key are multiplied by: 1/√d_k in the paper.
    pub scale: f32,
    /// Whether a query at position `p` sees no key after `p`.
    pub causal: bool,
    /// With `Some(w)`, a query at position `p` sees only the keys from `p - w + 1` to `p + w - 1`.
    pub window: Option<usize>,
    /// Whether the same attention is also computed query by query over a cache. Then both give the same bits. Otherwise the pass over
    /// whole sequences may use any instructions of the set, also tiles.
    pub cached: bool,
    /// Drops weights after the softmax; element `j` of generator `split(row · heads + head)` decides about
    /// key `j` of the sequence for the query in that row.
    pub dropout: Option<Dropout>,
}

/// One sequence of a packed batch as attention sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Row of the first query.
    pub query: u32,
    /// How many queries there are.
    pub queries: u32,
    /// Row of the first key and of its value.
    pub key: u32,
    /// How many keys there are.
    pub keys: u32,
    /// Position of the first query among the keys: zero for a whole sequence, more where earlier keys are
    /// cached.
    pub offset: u32,
}

impl Span {
    fn rows_of_queries(&self) -> Range<usize> {
        self.query as usize..self.query as usize + self.queries as usize
    }

    fn rows_of_keys(&self) -> Range<usize> {
        self.key as usize..self.key as usize + self.keys as usize
    }
}

/// A matrix whose rows may lie further apart than their length, such as the queries in a fused projection.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T = f32> {
    /// The numbers, from the first one of the first row on.
    pub data: &'a [T],
    /// The distance from the start of a row to the start of the next.
    pub stride: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    /// The part of this matrix that starts at a row and a column. It is empty past the end, where an empty span may begin.
    #[inline(always)]
    fn at(self, row: usize, column: usize) -> Rows<'a, T> {
        Rows { data: self.data.get(row * self.stride + column..).unwrap_or(&[]), stride: self.stride }
    }

    /// The first `width` numbers of a row.
    #[inline(always)]
    fn row(self, row: usize, width: usize) -> &'a [T] {
        &self.data[row * self.stride..][..width]
    }

    fn check(self, op: &str, name: &str, rows: usize, width: usize) {
        let (len, stride) = (self.data.len(), self.stride);
        let end = rows.saturating_sub(1).checked_mul(stride).and_then(|start| start.checked_add(width));
        assert!(
            rows == 0 || stride >= width && end.is_some_and(|end| end <= len),
            "{op}: {name} has {len} elements in rows of stride {stride}, the spans need [{rows}, {width}]"
        );
    }
}

/// The largest number of heads in a task, computed one after the other. They are neighbours in every row, so computing one of them
/// brings the rows of the next into a cache.
const HEADS_IN_A_TASK: usize = 4;
/// The smallest number of tasks for each thread, so that no thread waits long for the last one.
const TASKS_OF_A_THREAD: usize = 8;

/// Calls `run(i, head)` for `i` in `0..count` and `head` in `0..heads`, on all threads.
fn for_heads(cpu: &Cpu, count: usize, heads: usize, run: impl Fn(usize, usize) + Sync) {
    let size = (count * heads / (TASKS_OF_A_THREAD * cpu.threads.count())).clamp(1, HEADS_IN_A_TASK);
    let groups = heads.div_ceil(size);
    cpu.threads.run(count * groups, |task| {
        let first = task % groups * size;
        for head in first..heads.min(first + size) {
            run(task / groups, head);
        }
    });
}

impl Attention {
    /// Which keys of a span its query number `query` sees. Neither end decreases from a query to the next.
    #[inline(always)]
    fn seen(&self, span: &Span, query: usize) -> Range<usize> {
        let position = span.offset as usize + query;
        let window = self.window.unwrap_or(usize::MAX);
        let ahead = if self.causal { window.min(1) } else { window };
        let end = position.saturating_add(ahead).min(span.keys as usize);
        (position + 1).saturating_sub(window).min(end)..end
    }

    /// The dropout of the weights of one query.
    #[inline(always)]
    fn dropout_of(&self, row: usize, head: usize) -> Option<Dropout> {
        let number = (row * self.heads + head) as u64;
        self.dropout.map(|dropout| Dropout { random: dropout.random.split(number), ..dropout })
    }

    /// Checks what every operation needs: that queries, keys and `lse` are large enough, and that no row of queries is in two spans.
    fn check<T: Real>(&self, op: &str, spans: &[Span], q: Rows<T>, k: Rows<T>, lse: &[f32]) {
        let Attention { heads, d_k, d_v, .. } = *self;
        let widths = heads.checked_mul(d_k).and(heads.checked_mul(d_v));
        assert!(
            widths.is_some() && heads > 0 && d_k > 0 && d_v > 0,
            "{op}: {heads} heads of d_k {d_k} and d_v {d_v}"
        );
        let queries = spans.iter().map(|span| span.rows_of_queries().end).max().unwrap_or(0);
        q.check(op, "q", queries, heads * d_k);
        k.check(op, "k", keys(spans), heads * d_k);
        let len = lse.len();
        assert!(
            len.is_multiple_of(heads) && len / heads >= queries,
            "{op}: lse has {len} elements, the spans need [{queries}, {heads}]"
        );
        assert!(
            disjoint(spans.iter().map(Span::rows_of_queries)),
            "{op}: spans share rows of queries: {spans:?}"
        );
    }
}

/// One more than the last row of keys.
fn keys(spans: &[Span]) -> usize {
    spans.iter().map(|span| span.rows_of_keys().end).max().unwrap_or(0)
}

fn disjoint(ranges: impl Iterator<Item = Range<usize>>) -> bool {
    let mut ranges: Vec<_> =
        ranges.filter(|range| !range.is_empty()).map(|range| (range.start, range.end)).collect();
    ranges.sort_unstable();
    ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

fn check_len(op: &str, name: &str, len: usize, rows: usize, width: usize) {
    assert!(rows.checked_mul(width) == Some(len), "{op}: {name} has {len} elements, not [{rows}, {width}]");
}
