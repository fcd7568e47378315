//! Decoding: one query for each hypothesis, over keys and values that lie in any rows of a cache.
//!
//! Hypotheses of a beam share their past. A list of rows for each query lets them share it in memory too: nothing is ever
//! copied when one hypothesis takes the place of another.
//!
//! The sums are those of [`attention`](super::attention), in the same order, so that a query gets the same bits here as in a
//! pass over its whole sequence. What is left out is the copying that pays only for many queries.

use super::block::{BLOCK, MOST_LANES, base, cut, masked, padded};
use super::{Attention, Rows, check_len};
use crate::isa::Kernel;
use crate::math::exp;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// Which rows of keys and values each query sees, in the order of their positions.
#[derive(Debug, Clone, Copy)]
pub struct KeyLists<'a> {
    /// The lists, one after the other.
    pub rows: &'a [u32],
    /// Where the list of each query ends.
    pub ends: &'a [u32],
}

impl<'a> KeyLists<'a> {
    fn of(self, query: usize) -> &'a [u32] {
        let start = if query == 0 { 0 } else { self.ends[query - 1] as usize };
        &self.rows[start..self.ends[query] as usize]
    }

    fn check(self, queries: usize) {
        let (lists, rows) = (self.ends.len(), self.rows.len());
        assert_eq!(lists, queries, "attention_to_lists: {lists} lists for {queries} queries");
        assert!(
            self.ends.is_sorted() && self.ends.last().is_none_or(|&end| end as usize <= rows),
            "attention_to_lists: the lists end at {:?}, but there are {rows} rows in them",
            self.ends
        );
    }
}

/// The heads' weighted means of the values that each query sees: all of its list. A query with an empty list gets zeros.
///
/// # Shapes
/// `q: [queries, heads · d_k]`, `k: [rows, heads · d_k]`, `v: [rows, heads · d_v]`, `y: [queries, heads · d_v]`
///
/// # Panics
/// If `attention` has a window or dropout: which keys are seen is for the lists to say.
pub fn attention_to_lists<T: Real>(
    cpu: &Cpu,
    attention: &Attention,
    lists: KeyLists,
    q: Rows<T>,
    k: Rows<T>,
    v: Rows<T>,
    y: &mut [T],
) {
    let &Attention { heads, d_k, d_v, .. } = attention;
    let name = "attention_to_lists";
    assert!(attention.window.is_none() && attention.dropout.is_none(), "{name}: a window or dropout");
    assert!(heads > 0 && d_k > 0 && d_v > 0, "{name}: {heads} heads of d_k {d_k} and d_v {d_v}");
    let queries = y.len() / (heads * d_v);
    check_len(name, "y", y.len(), queries, heads * d_v);
    lists.check(queries);
    q.check(name, "q", queries, heads * d_k);
    let rows = lists.rows.iter().max().map_or(0, |&last| last as usize + 1);
    k.check(name, "k", rows, heads * d_k);
    v.check(name, "v", rows, heads * d_v);

    let y = Shared::new(y);
    cpu.threads.run(queries.div_ceil(QUERIES), |task| {
        for query in task * QUERIES..queries.min((task + 1) * QUERIES) {
            // Safety: a query belongs to one task.
            let y = unsafe { y.slice(query * heads * d_v, heads * d_v) };
            let q = q.row(query, heads * d_k);
            cpu.isa.dispatch(Query { attention, keys: lists.of(query), q, k, v, y });
        }
    });
}

/// Queries of a task.
const QUERIES: usize = 4;

/// All heads of one query.
struct Query<'a, T> {
    attention: &'a Attention,
    keys: &'a [u32],
    q: &'a [T],
    k: Rows<'a, T>,
    v: Rows<'a, T>,
    y: &'a mut [T],
}

impl<T: Real> Kernel for Query<'_, T> {
    type Output = ();

    /// All heads go from one stage to the next together: what one of them waits for, another one computes.
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Attention { heads, d_k, d_v, scale, .. } = *self.attention;
        let sizes = [padded(s, heads * d_k), heads * BLOCK, heads * padded(s, d_v), heads * S::LANES];
        let mut memory = Scratch::take(sizes.iter().sum());
        let [q, scores, o, l] = cut(&mut memory, sizes);
        for at in (0..heads * d_k).step_by(S::LANES) {
            let x = load(s, self.q, at, S::LANES.min(heads * d_k - at));
            store(s, q, at, S::LANES, s.mul(x, s.splat(scale)));
        }
        o.fill(0.0);
        l.fill(0.0);
        let mut greatest = Scratch::take(heads);
        greatest.fill(f32::NEG_INFINITY);
        for keys in self.keys.chunks(BLOCK) {
            for (vector, keys) in keys.chunks(S::LANES).enumerate() {
                self.score(s, q, keys, &mut scores[vector * S::LANES..]);
            }
            for (head, scores) in scores.chunks_exact_mut(BLOCK).enumerate() {
                let o = &mut o[head * padded(s, d_v)..][..padded(s, d_v)];
                weigh(s, keys.len(), scores, &mut greatest[head], &mut l[head * S::LANES..][..S::LANES], o);
            }
            self.add_values(s, keys, scores, o);
        }
        for head in 0..heads {
            let (o, l) = (&o[head * padded(s, d_v)..], s.sum(load(s, l, head * S::LANES, S::LANES)));
            let y = &mut self.y[head * d_v..][..d_v];
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

/// Makes weights of a head's scores: `e^(score - greatest)`, whose sums are added to `l`. Where a greater score than before
/// is among them, what there is of `l` and `o` shrinks.
#[inline(always)]
fn weigh<S: Simd>(s: S, keys: usize, scores: &mut [f32], greatest: &mut f32, l: &mut [f32], o: &mut [f32]) {
    let mut here = s.splat(f32::NEG_INFINITY);
    for at in (0..keys).step_by(S::LANES) {
        // The places behind the last key count for nothing.
        let x = masked(s, load(s, scores, at, S::LANES), at, &(0..keys));
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
    /// The products of all heads of the query, scaled already, with a vector of keys, each head's [`BLOCK`] behind those of the
    /// one before; behind the last key there may be anything.
    #[inline(always)]
    fn score<S: Simd>(&self, s: S, q: &[f32], keys: &[u32], scores: &mut [f32]) {
        let Attention { heads, d_k, .. } = *self.attention;
        let mut square = [0f32; MOST_LANES * MOST_LANES];
        let mut edge = [0f32; MOST_LANES * MOST_LANES];
        let mut rows = [self.k.data.as_ptr(); MOST_LANES];
        for i in 0..S::LANES {
            let row = keys[i.min(keys.len() - 1)] as usize;
            // Safety: `attention_to_lists` checked that every row in the lists has all heads.
            rows[i] = unsafe { self.k.data.as_ptr().add(row * self.k.stride) };
        }
        for head in 0..heads {
            let mut sum = s.splat(0.0);
            for at in (0..d_k).step_by(S::LANES) {
                let (n, column) = (S::LANES.min(d_k - at), head * d_k + at);
                // Safety: every row has a whole vector from there on, in the matrix or in `edge`; `square` has room for the
                // transpose.
                unsafe {
                    if n == S::LANES {
                        s.transpose_rows(
                            #[inline(always)]
                            |i| rows[i].add(column),
                            square.as_mut_ptr(),
                            S::LANES,
                        );
                    } else {
                        for i in 0..S::LANES {
                            let x = T::load_first(s, rows[i].add(column), n);
                            store(s, &mut edge, i * S::LANES, S::LANES, x);
                        }
                        s.transpose(edge.as_ptr(), S::LANES, square.as_mut_ptr(), S::LANES);
                    }
                }
                for (c, &q) in q[column..column + n].iter().enumerate() {
                    sum = s.fma(s.splat(q), load(s, &square, c * S::LANES, S::LANES), sum);
                }
            }
            store(s, scores, head * BLOCK, S::LANES, sum);
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
