//! Decoding: one query for each hypothesis, over keys and values that lie in any rows of a cache.
//!
//! Hypotheses of a beam share their past. A list of rows for each query lets them share it in memory too: nothing is ever
//! copied when one hypothesis takes the place of another.
//!
//! The sums are those of [`attention`](super::attention), in the same order, so that a query gets the same bits here as in a
//! pass over its whole sequence. What is left out is the copying that pays only for many queries.

use super::block::{BLOCK, MOST_LANES, base, masked, padded};
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

/// Scores of a block of keys, where vectors can be stored.
#[repr(C, align(64))]
struct Scores([f32; BLOCK]);

impl<T: Real> Kernel for Query<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Attention { heads, d_k, d_v, scale, .. } = *self.attention;
        let mut memory = Scratch::take(padded(s, heads * d_k) + padded(s, d_v));
        let (q, o) = memory.split_at_mut(padded(s, heads * d_k));
        for at in (0..heads * d_k).step_by(S::LANES) {
            let x = load(s, self.q, at, S::LANES.min(heads * d_k - at));
            store(s, q, at, S::LANES, s.mul(x, s.splat(scale)));
        }
        let mut scores = Scores([0.0; BLOCK]);
        for head in 0..heads {
            let (mut m, mut l) = (f32::NEG_INFINITY, s.splat(0.0));
            o.fill(0.0);
            for keys in self.keys.chunks(BLOCK) {
                self.score(s, &q[head * d_k..][..d_k], head, keys, &mut scores);
                let before = m;
                m = before.max(greatest(s, keys.len(), &mut scores));
                if m > before {
                    let shrink = exp(s, s.splat(before - m));
                    l = s.mul(l, shrink);
                    for at in (0..o.len()).step_by(S::LANES) {
                        let shrunk = s.mul(load(s, o, at, S::LANES), shrink);
                        store(s, o, at, S::LANES, shrunk);
                    }
                }
                let base = s.splat(base(m));
                for at in (0..keys.len()).step_by(S::LANES) {
                    let p = exp(s, s.sub(load(s, &scores.0, at, S::LANES), base));
                    l = s.add(l, p);
                    store(s, &mut scores.0, at, S::LANES, p);
                }
                self.add_values(s, head, keys, &scores, o);
            }
            let l = s.sum(l);
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

/// Takes the scores of places behind the last key out, and finds the greatest of the others.
#[inline(always)]
fn greatest<S: Simd>(s: S, keys: usize, scores: &mut Scores) -> f32 {
    let mut greatest = s.splat(f32::NEG_INFINITY);
    for at in (0..keys).step_by(S::LANES) {
        let x = masked(s, load(s, &scores.0, at, S::LANES), at, &(0..keys));
        greatest = s.max(greatest, x);
        store(s, &mut scores.0, at, S::LANES, x);
    }
    s.greatest(greatest)
}

impl<T: Real> Query<'_, T> {
    /// The products of a head's query, scaled already, with some keys, a vector of keys at a time; behind the last one
    /// there may be anything.
    #[inline(always)]
    fn score<S: Simd>(&self, s: S, q: &[f32], head: usize, keys: &[u32], scores: &mut Scores) {
        let d_k = q.len();
        let mut square = [0f32; MOST_LANES * MOST_LANES];
        let mut edge = [0f32; MOST_LANES * MOST_LANES];
        for (vector, keys) in keys.chunks(S::LANES).enumerate() {
            let last = keys.len() - 1;
            let mut sum = s.splat(0.0);
            for at in (0..d_k).step_by(S::LANES) {
                let n = S::LANES.min(d_k - at);
                // Safety: `attention_to_lists` checked that every row in the lists has all heads.
                let row = |i: usize| unsafe {
                    let row = keys[i.min(last)] as usize;
                    self.k.data.as_ptr().add(row * self.k.stride + head * d_k + at)
                };
                // Safety: every row has a whole vector from there on, in the matrix or in `edge`; `square` has room for the
                // transpose.
                unsafe {
                    if n == S::LANES {
                        s.transpose_rows(row, square.as_mut_ptr(), S::LANES);
                    } else {
                        for i in 0..S::LANES {
                            store(s, &mut edge, i * S::LANES, S::LANES, T::load_first(s, row(i), n));
                        }
                        s.transpose(edge.as_ptr(), S::LANES, square.as_mut_ptr(), S::LANES);
                    }
                }
                for (c, &q) in q[at..at + n].iter().enumerate() {
                    sum = s.fma(s.splat(q), load(s, &square, c * S::LANES, S::LANES), sum);
                }
            }
            store(s, &mut scores.0, vector * S::LANES, S::LANES, sum);
        }
    }

    /// `o += p · v` over some keys, in their order.
    #[inline(always)]
    fn add_values<S: Simd>(&self, s: S, head: usize, keys: &[u32], p: &Scores, o: &mut [f32]) {
        let whole = self.attention.d_v / S::LANES;
        let mut done = 0;
        while done < whole {
            // Several vectors at a time, since each sum waits for itself.
            done += match whole - done {
                4.. => self.add_vectors::<S, 4>(s, head, keys, p, o, done),
                2 | 3 => self.add_vectors::<S, 2>(s, head, keys, p, o, done),
                _ => self.add_vectors::<S, 1>(s, head, keys, p, o, done),
            };
        }
        let (d_v, at) = (self.attention.d_v, whole * S::LANES);
        if at < d_v {
            let mut sum = load(s, o, at, S::LANES);
            for (&key, &p) in keys.iter().zip(&p.0) {
                let row = self.v.row(key as usize, (head + 1) * d_v);
                sum = s.fma(s.splat(p), load(s, row, head * d_v + at, d_v - at), sum);
            }
            store(s, o, at, S::LANES, sum);
        }
    }

    /// `V` whole vectors of the values, from vector `first` on; returns `V`.
    #[inline(always)]
    fn add_vectors<S: Simd, const V: usize>(
        &self,
        s: S,
        head: usize,
        keys: &[u32],
        p: &Scores,
        o: &mut [f32],
        first: usize,
    ) -> usize {
        let at = |v: usize| (first + v) * S::LANES;
        let mut sums = [s.splat(0.0); V];
        for v in 0..V {
            sums[v] = load(s, o, at(v), S::LANES);
        }
        for (&key, &p) in keys.iter().zip(&p.0) {
            // Safety: `attention_to_lists` checked that every row in the lists has all heads.
            let row =
                unsafe { self.v.data.as_ptr().add(key as usize * self.v.stride + head * self.attention.d_v) };
            for v in 0..V {
                // Safety: vectors inside of the head.
                sums[v] = s.fma(s.splat(p), unsafe { T::load(s, row.add(at(v))) }, sums[v]);
            }
        }
        for v in 0..V {
            store(s, o, at(v), S::LANES, sums[v]);
        }
        V
    }
}
