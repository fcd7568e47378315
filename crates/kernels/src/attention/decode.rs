//! Decoding: one query for each hypothesis, over keys and values that lie in any rows of a cache.
//!
//! Hypotheses of a beam share their past. A list of rows for each query lets them share it in memory, too: nothing is copied when one
//! hypothesis replaces another.
//!
//! Queries and keys are stored transposed, `[d, heads]` instead of `[heads, d]` for each token ([`heads_side_by_side`]). The products of a
//! query with a key are then sums of whole vectors, one lane for each head. Keys are transposed once, when they are written to the cache.
//!
//! The sums are those of [`attention`](super::attention), in the same order, so that a query gets the same bits here as in a
//! pass over its whole sequence. That function also copies its operands, which pays only for many queries. For keys and values in int8 see
//! [`attention_to_int8_lists`](super::attention_to_int8_lists).

use super::bias::{Bias, Biases, Pairs};
use super::block::{BLOCK, MOST_LANES, base, cut, masked, padded};
use super::{Attention, Rows, check_len};
use crate::isa::Kernel;
use crate::math::exp;
use crate::pass::{assert_same_length, rows_of, rows_per_piece};
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};
use std::ops::Range;

/// Which rows of keys and values each query sees, in the order of their positions.
#[derive(Debug, Clone, Copy)]
pub struct KeyLists<'a> {
    /// The rows of all lists.
    pub rows: &'a [u32],
    /// The part of `rows` that is the list of each query. Lists may overlap: those of the tokens of a prompt begin at the same place.
    pub lists: &'a [Range<u32>],
}

impl<'a> KeyLists<'a> {
    pub(super) fn of(self, query: usize) -> &'a [u32] {
        let list = &self.lists[query];
        &self.rows[list.start as usize..list.end as usize]
    }

    /// Each query with its keys, of which it has the position of the last.
    pub(super) fn pairs(self) -> impl Iterator<Item = Pairs> + Clone {
        (0..self.lists.len()).map(move |query| Self::pairs_of(self.of(query)))
    }

    #[inline(always)]
    pub(super) fn pairs_of(keys: &[u32]) -> Pairs {
        Pairs { queries: 1, keys: keys.len(), offset: keys.len().saturating_sub(1) }
    }

    /// Checks that there is a list for each query; returns how many rows there must be at least.
    pub(super) fn check(self, op: &str, queries: usize) -> usize {
        let (lists, rows) = (self.lists.len(), self.rows.len());
        assert_eq!(lists, queries, "{op}: {lists} lists for {queries} queries");
        assert!(
            self.lists.iter().all(|list| list.start <= list.end && list.end as usize <= rows),
            "{op}: the lists are at {:?}, but there are {rows} rows in them",
            self.lists
        );
        self.rows.iter().max().map_or(0, |&last| last as usize + 1)
    }
}

/// The heads' weighted means of the values that each query sees: all of its list, or the last `window` of it. A query with an empty list
/// gets zeros.
///
/// To a bias, a list is a span with one query, which has the position of the last key.
///
/// # Shapes
/// `q: [queries, d_k · heads]`, `k: [rows, d_k · heads]`, `v: [rows, heads · d_v]`, `y: [queries, heads · d_v]`
///
/// # Panics
/// If `attention` has dropout.
pub fn attention_to_lists<T: Real>(
    cpu: &Cpu,
    attention: &Attention,
    lists: KeyLists,
    bias: Option<Bias>,
    q: Rows<T>,
    k: Rows<T>,
    v: Rows<T>,
    y: &mut [T],
) {
    let &Attention { heads, d_k, d_v, .. } = attention;
    let name = "attention_to_lists";
    assert!(attention.dropout.is_none(), "{name}: dropout");
    assert!(heads > 0 && d_k > 0 && d_v > 0, "{name}: {heads} heads of d_k {d_k} and d_v {d_v}");
    let queries = y.len() / (heads * d_v);
    check_len(name, "y", y.len(), queries, heads * d_v);
    let rows = lists.check(name, queries);
    q.check(name, "q", queries, heads * d_k);
    k.check(name, "k", rows, heads * d_k);
    v.check(name, "v", rows, heads * d_v);

    let biases = bias.map(|bias| Biases::new(name, bias, heads, lists.pairs()));
    let biases = biases.as_ref();
    let y = Shared::new(y);
    cpu.threads.run(queries.div_ceil(QUERIES), |task| {
        let first = task * QUERIES;
        let count = QUERIES.min(queries - first);
        // Safety: a query belongs to one task.
        let y = unsafe { y.slice(first * heads * d_v, count * heads * d_v) };
        cpu.isa.dispatch(Queries { attention, lists, biases, first, q, k, v, y });
    });
}

/// Queries of a task: enough to hide the cost of starting it.
pub(super) const QUERIES: usize = 8;

/// Keys whose products are computed together: independent sums hide the latency of the multiply-adds.
const KEYS: usize = 8;

/// Transposes each row from head after head to element after element: `x: [rows, heads · d]` to `y: [rows, d · heads]`.
pub fn heads_side_by_side<T: Real>(cpu: &Cpu, x: &[T], heads: usize, width: usize, y: &mut [T]) {
    let name = "heads_side_by_side";
    assert!(heads > 0 && width.is_multiple_of(heads), "{name}: {heads} heads in {width} numbers");
    rows_of(name, x, width);
    assert_same_length(name, x, y);
    let piece = rows_per_piece(width) * width;
    cpu.threads.for_pieces(y, piece, |i, y| {
        cpu.isa.dispatch(SideBySide { x: &x[i * piece..][..y.len()], heads, width, y });
    });
}

struct SideBySide<'a, T> {
    x: &'a [T],
    heads: usize,
    width: usize,
    y: &'a mut [T],
}

impl<T: Real> Kernel for SideBySide<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (heads, d) = (self.heads, self.width / self.heads);
        let mut square = [0f32; MOST_LANES * MOST_LANES];
        for (x, y) in self.x.chunks_exact(self.width).zip(self.y.chunks_exact_mut(self.width)) {
            for head in (0..heads).step_by(S::LANES) {
                let n = S::LANES.min(heads - head);
                for at in (0..d).step_by(S::LANES) {
                    if at + S::LANES > d {
                        for i in at..d {
                            (0..n).for_each(|h| y[i * heads + head + h] = x[(head + h) * d + i]);
                        }
                        continue;
                    }
                    // Safety: of each of the `n` heads a whole vector; `square` has room for the transpose.
                    unsafe {
                        s.transpose_rows(
                            #[inline(always)]
                            |h| x.as_ptr().add((head + h.min(n - 1)) * d + at),
                            square.as_mut_ptr(),
                            S::LANES,
                        );
                    }
                    for i in 0..S::LANES {
                        store(s, y, (at + i) * heads + head, n, load(s, &square, i * S::LANES, S::LANES));
                    }
                }
            }
        }
    }
}

/// Some queries, from the one with the number `first` on.
struct Queries<'a, T> {
    attention: &'a Attention,
    lists: KeyLists<'a>,
    biases: Option<&'a Biases<'a>>,
    first: usize,
    q: Rows<'a, T>,
    k: Rows<'a, T>,
    v: Rows<'a, T>,
    /// Those of these queries alone.
    y: &'a mut [T],
}

impl<T: Real> Kernel for Queries<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Queries { attention, lists, biases, first, q, k, v, y } = self;
        let Attention { heads, d_k, d_v, .. } = *attention;
        let squares = 2 * S::LANES * S::LANES;
        let greatest = heads.next_multiple_of(MOST_LANES);
        let sizes = [
            padded(s, heads) * d_k,
            heads * BLOCK,
            heads * padded(s, d_v),
            heads * S::LANES,
            squares,
            greatest,
        ];
        let mut memory = Scratch::take(sizes.iter().sum());
        let [scaled, scores, o, l, squares, greatest] = cut(&mut memory, sizes);
        let mut memory = QueryMemory { q: scaled, scores, o, l, squares, greatest: &mut greatest[..heads] };
        for (query, y) in (first..).zip(y.chunks_exact_mut(heads * d_v)) {
            let q = q.row(query, heads * d_k);
            Query { attention, keys: lists.of(query), number: query, biases, q, k, v }.attend(
                s,
                &mut memory,
                y,
            );
        }
    }
}

/// What a query is computed in.
struct QueryMemory<'a> {
    /// The query, scaled.
    q: &'a mut [f32],
    /// `[heads, BLOCK]`
    scores: &'a mut [f32],
    /// `[heads, d_v]`, padded: sums of values, each to be divided by its sum of weights.
    o: &'a mut [f32],
    /// `[heads, LANES]`: sums of weights, in parts that are added up at the end.
    l: &'a mut [f32],
    squares: &'a mut [f32],
    /// The greatest score of each head so far.
    greatest: &'a mut [f32],
}

/// All heads of one query.
struct Query<'a, T> {
    attention: &'a Attention,
    keys: &'a [u32],
    /// Which of the queries it is.
    number: usize,
    biases: Option<&'a Biases<'a>>,
    q: &'a [T],
    k: Rows<'a, T>,
    v: Rows<'a, T>,
}

impl<T: Real> Query<'_, T> {
    /// All heads go from one stage to the next together: what one of them waits for, another one computes.
    #[inline(always)]
    fn attend<S: Simd>(&self, s: S, memory: &mut QueryMemory, y: &mut [T]) {
        let Attention { heads, d_v, window, .. } = *self.attention;
        let QueryMemory { q, scores, o, l, squares, greatest } = memory;
        self.pad_queries(s, q);
        o.fill(0.0);
        l.fill(0.0);
        greatest.fill(f32::NEG_INFINITY);
        // Blocks begin at the first key of the sequence, wherever a window begins, as in a pass over the whole sequence.
        let hidden = window.map_or(0, |window| self.keys.len().saturating_sub(window));
        for (block, keys) in self.keys.chunks(BLOCK).enumerate().skip(hidden / BLOCK) {
            let seen = hidden.saturating_sub(block * BLOCK)..keys.len();
            for (vector, keys) in keys.chunks(S::LANES).enumerate() {
                let scores = &mut scores[vector * S::LANES..];
                self.score(s, q, keys, squares, scores);
            }
            if let Some(biases) = self.biases {
                let pairs = KeyLists::pairs_of(self.keys);
                for (head, scores) in scores.chunks_exact_mut(BLOCK).enumerate() {
                    let bias = biases.of(self.number, pairs, head);
                    bias.add(s, [0, 1], [block * BLOCK, keys.len()], scores, BLOCK);
                }
            }
            for (head, scores) in scores.chunks_exact_mut(BLOCK).enumerate() {
                let o = &mut o[head * padded(s, d_v)..][..padded(s, d_v)];
                weigh(s, &seen, scores, &mut greatest[head], &mut l[head * S::LANES..][..S::LANES], o);
            }
            self.add_values(s, keys, scores, o);
        }
        for head in 0..heads {
            let (o, l) = (&o[head * padded(s, d_v)..], s.sum(load(s, l, head * S::LANES, S::LANES)));
            let y = &mut y[head * d_v..][..d_v];
            if l == 0.0 {
                y.fill(T::from_f32(0.0));
                continue;
            }
            for at in (0..d_v).step_by(S::LANES) {
                let n = S::LANES.min(d_v - at);
                store(s, y, at, n, s.div(load(s, o, at, n), s.splat(l)));
            }
        }
    }
}

/// Makes weights of a head's scores of the keys that are seen: `e^(score - greatest)`, whose sums are added to `l`; the others, before
/// and behind them, weigh nothing. Where a greater score than before is among them, what there is of `l` and `o` shrinks.
#[inline(always)]
fn weigh<S: Simd>(
    s: S,
    seen: &Range<usize>,
    scores: &mut [f32],
    greatest: &mut f32,
    l: &mut [f32],
    o: &mut [f32],
) {
    let keys = seen.end;
    let mut here = s.splat(f32::NEG_INFINITY);
    for at in (0..keys).step_by(S::LANES) {
        let x = masked(s, load(s, scores, at, S::LANES), at, seen);
        here = s.max(here, x);
        store(s, scores, at, S::LANES, x);
    }
    let (before, mut sum) = (*greatest, load(s, l, 0, S::LANES));
    *greatest = before.max(s.greatest(here));
    if *greatest > before && before > f32::NEG_INFINITY {
        let shrink = exp(s, s.splat(before - *greatest));
        sum = s.mul(sum, shrink);
        for at in (0..o.len()).step_by(S::LANES) {
            let shrunk = s.mul(load(s, o, at, S::LANES), shrink);
            store(s, o, at, S::LANES, shrunk);
        }
    }
    let base = s.splat(base(*greatest));
    for at in (0..keys).step_by(S::LANES) {
        let p = exp(s, s.sub(load(s, scores, at, S::LANES), base));
        sum = s.add(sum, p);
        store(s, scores, at, S::LANES, p);
    }
    store(s, l, 0, S::LANES, sum);
}

impl<T: Real> Query<'_, T> {
    /// The query times the scale, each element's heads in whole vectors.
    #[inline(always)]
    fn pad_queries<S: Simd>(&self, s: S, q: &mut [f32]) {
        let Attention { heads, scale, .. } = *self.attention;
        for (x, q) in self.q.chunks_exact(heads).zip(q.chunks_exact_mut(padded(s, heads))) {
            for at in (0..heads).step_by(S::LANES) {
                let x = load(s, x, at, S::LANES.min(heads - at));
                store(s, q, at, S::LANES, s.mul(x, s.splat(scale)));
            }
        }
    }

    /// The products of all heads of the query, scaled already, with a vector of keys, each head's [`BLOCK`] behind those of the
    /// one before; behind the last key there may be anything. `squares` is memory for it.
    #[inline(always)]
    fn score<S: Simd>(&self, s: S, q: &[f32], keys: &[u32], squares: &mut [f32], scores: &mut [f32]) {
        let heads = self.attention.heads;
        const { assert!(S::LANES.is_multiple_of(KEYS)) };
        let (by_key, by_head) = squares.split_at_mut(S::LANES * S::LANES);
        for head in (0..heads).step_by(S::LANES) {
            let n = S::LANES.min(heads - head);
            for (keys, sums) in keys.chunks(KEYS).zip(by_key.chunks_mut(KEYS * S::LANES)) {
                // The common numbers of heads are known when compiling.
                match n {
                    _ if n == S::LANES => self.products(s, q, head, S::LANES, keys, sums),
                    8 => self.products(s, q, head, 8, keys, sums),
                    _ => self.products(s, q, head, n, keys, sums),
                }
            }
            // Safety: both are squares of LANES × LANES.
            unsafe { s.transpose(by_key.as_ptr(), S::LANES, by_head.as_mut_ptr(), S::LANES) }
            for h in 0..n {
                store(s, scores, (head + h) * BLOCK, S::LANES, load(s, by_head, h * S::LANES, S::LANES));
            }
        }
    }

    /// The products of `n` heads from `head` on with up to [`KEYS`] keys, each key's a vector behind those of the one before.
    #[inline(always)]
    fn products<S: Simd>(&self, s: S, q: &[f32], head: usize, n: usize, keys: &[u32], sums: &mut [f32]) {
        let Attention { heads, d_k, .. } = *self.attention;
        let row = |i: usize| {
            let row = keys[i.min(keys.len() - 1)] as usize;
            // Safety: `attention_to_lists` checked that every row in the lists has all heads.
            unsafe { self.k.data.as_ptr().add(row * self.k.stride + head) }
        };
        let rows: [_; KEYS] = std::array::from_fn(row);
        let mut products = [s.splat(0.0); KEYS];
        for c in 0..d_k {
            let q = load(s, q, c * padded(s, heads) + head, S::LANES);
            for i in 0..KEYS {
                // Safety: element `c` of these heads, in a row that has them all.
                let k = unsafe {
                    let at = rows[i].add(c * heads);
                    if n < S::LANES { T::load_first(s, at, n) } else { T::load(s, at) }
                };
                products[i] = s.fma(q, k, products[i]);
            }
        }
        for (i, product) in products.into_iter().enumerate() {
            store(s, sums, i * S::LANES, S::LANES, product);
        }
    }

    /// `o += p · v` over some keys, in their order.
    #[inline(always)]
    fn add_values<S: Simd>(&self, s: S, keys: &[u32], p: &[f32], o: &mut [f32]) {
        let Attention { heads, d_v, .. } = *self.attention;
        // As many heads at a time as have sums in registers, since each sum waits for itself.
        let mut head = 0;
        while head < heads {
            head += match (d_v == 2 * S::LANES, d_v == 4 * S::LANES, heads - head) {
                (true, _, 4..) => self.add_heads::<S, 4, 2>(s, head, keys, p, o),
                (_, true, 2..) => self.add_heads::<S, 2, 4>(s, head, keys, p, o),
                _ => self.add_head(s, head, keys, p, o),
            };
        }
    }

    /// `H` heads of `V` whole vectors each, from `head` on; returns `H`.
    #[inline(always)]
    fn add_heads<S: Simd, const H: usize, const V: usize>(
        &self,
        s: S,
        head: usize,
        keys: &[u32],
        p: &[f32],
        o: &mut [f32],
    ) -> usize {
        let d_v = V * S::LANES;
        let o = &mut o[head * d_v..][..H * d_v];
        let p = &p[head * BLOCK..][..H * BLOCK];
        let mut sums = [[s.splat(0.0); V]; H];
        for h in 0..H {
            for v in 0..V {
                sums[h][v] = load(s, o, (h * V + v) * S::LANES, S::LANES);
            }
        }
        for (i, &key) in keys.iter().enumerate() {
            // Safety: `attention_to_lists` checked that every row in the lists has all heads.
            let row = unsafe { self.v.data.as_ptr().add(key as usize * self.v.stride + head * d_v) };
            for h in 0..H {
                let p = s.splat(p[h * BLOCK + i]);
                for v in 0..V {
                    // Safety: vectors inside of the heads.
                    let x = unsafe { T::load(s, row.add((h * V + v) * S::LANES)) };
                    sums[h][v] = s.fma(p, x, sums[h][v]);
                }
            }
        }
        for h in 0..H {
            for v in 0..V {
                store(s, o, (h * V + v) * S::LANES, S::LANES, sums[h][v]);
            }
        }
        H
    }

    /// One head of any width; returns 1.
    #[inline(always)]
    fn add_head<S: Simd>(&self, s: S, head: usize, keys: &[u32], p: &[f32], o: &mut [f32]) -> usize {
        let d_v = self.attention.d_v;
        let (o, p) = (&mut o[head * padded(s, d_v)..][..padded(s, d_v)], &p[head * BLOCK..][..BLOCK]);
        for at in (0..d_v).step_by(S::LANES) {
            let n = S::LANES.min(d_v - at);
            let mut sum = load(s, o, at, S::LANES);
            for (&key, &p) in keys.iter().zip(p) {
                let row = self.v.row(key as usize, (head + 1) * d_v);
                sum = s.fma(s.splat(p), load(s, row, head * d_v + at, n), sum);
            }
            store(s, o, at, S::LANES, sum);
        }
        1
    }
}
