//! Decoding over keys and values in int8, each row with a scale of its own.
//!
//! At each step, keys and values are as many bytes to read as weights. In int8 they are half as many as in bf16, and whole dot
//! products of four take one instruction. Queries are rounded for that like keys, and so are the weights of a block of keys, times
//! the scales of their values: the largest becomes 127.
//!
//! Queries and keys lie in the order of [`key_order`]: four elements of a head, then the same four of the next head. The sums of a
//! key are then sums of whole vectors. Values lie in the order of [`value_order`], from which four rows are turned with the
//! fewest instructions. Who makes queries, keys and values has their order for nothing: it is that of the rows of a projection.
//!
//! Sums of products are exact. So the bits of what a query gets depend on the query and on what it sees, and on nothing else.

use super::block::{BLOCK, cut};
use super::decode::{KeyLists, QUERIES, weigh};
use super::{Attention, Rows, check_len};
use crate::gemm::quantise_row;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// Keys whose products are computed together, since each sum waits for itself.
const KEYS: usize = 8;
/// Values that are turned together.
const FOUR: usize = 4;
/// Bytes of a row of values that have an order of their own.
const PART: usize = 64;

/// Keys and values, and their scales.
#[derive(Debug, Clone, Copy)]
pub struct Int8Cache<'a> {
    /// `[rows, d_k · heads]`, in the order of [`key_order`].
    pub k: &'a [i8],
    /// `[rows, heads · d_v]`, in the order of [`value_order`].
    pub v: &'a [i8],
    /// `[rows, 2]`: of the keys and of the values of a row.
    pub scales: &'a [f32],
}

/// Whether an attention can have keys and values in int8: heads and widths fill whole vectors on every instruction set.
pub fn fits_int8(attention: &Attention) -> bool {
    let &Attention { heads, d_k, d_v, .. } = attention;
    heads.is_power_of_two()
        && d_k.is_multiple_of(FOUR)
        && (heads * d_k).is_multiple_of(PART)
        && d_v.is_multiple_of(16)
        && (heads * d_v).is_multiple_of(PART)
}

/// Which column of heads one after the other each place of a query or a key has.
pub fn key_order(heads: usize, d_k: usize) -> Vec<usize> {
    let column = |place: usize| {
        let (group, element) = (place / FOUR, place % FOUR);
        group % heads * d_k + group / heads * FOUR + element
    };
    (0..heads * d_k).map(column).collect()
}

/// Which column of heads one after the other each place of a value has: in every 64 of them, groups of four change places
/// like rows and columns.
pub fn value_order(heads: usize, d_v: usize) -> Vec<usize> {
    let column = |place: usize| {
        let (part, group, element) = (place / PART, place % PART / FOUR, place % FOUR);
        part * PART + (group % 4 * 4 + group / 4) * FOUR + element
    };
    (0..heads * d_v).map(column).collect()
}

/// [`attention_to_lists`](super::attention_to_lists) of keys and values in int8.
///
/// # Shapes
/// `q: [queries, d_k · heads]` in the order of [`key_order`], `y: [queries, heads · d_v]`
///
/// # Panics
/// If `attention` has a window or dropout, or does not [fit](fits_int8).
pub fn attention_to_int8_lists<T: Real>(
    cpu: &Cpu,
    attention: &Attention,
    lists: KeyLists,
    q: Rows<T>,
    cache: Int8Cache,
    y: &mut [T],
) {
    let &Attention { heads, d_k, d_v, .. } = attention;
    let name = "attention_to_int8_lists";
    assert!(attention.window.is_none() && attention.dropout.is_none(), "{name}: a window or dropout");
    assert!(fits_int8(attention), "{name}: {heads} heads of d_k {d_k} and d_v {d_v}");
    let queries = y.len() / (heads * d_v);
    check_len(name, "y", y.len(), queries, heads * d_v);
    let rows = lists.check(queries);
    q.check(name, "q", queries, heads * d_k);
    check_len(name, "k", cache.k.len(), cache.scales.len() / 2, heads * d_k);
    check_len(name, "v", cache.v.len(), cache.scales.len() / 2, heads * d_v);
    assert!(rows <= cache.scales.len() / 2, "{name}: {rows} rows are listed, {} are there", cache.scales.len() / 2);

    let y = Shared::new(y);
    cpu.threads.run(queries.div_ceil(QUERIES), |task| {
        let first = task * QUERIES;
        let count = QUERIES.min(queries - first);
        // Safety: a query belongs to one task.
        let y = unsafe { y.slice(first * heads * d_v, count * heads * d_v) };
        cpu.isa.dispatch(Queries { attention, lists, first, q, cache, y });
    });
}

/// Some queries, from the one with the number `first` on.
struct Queries<'a, T> {
    attention: &'a Attention,
    lists: KeyLists<'a>,
    first: usize,
    q: Rows<'a, T>,
    cache: Int8Cache<'a>,
    /// Those of these queries alone.
    y: &'a mut [T],
}

impl<T: Real> Kernel for Queries<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Queries { attention, lists, first, q, cache, y } = self;
        let Attention { heads, d_k, d_v, .. } = *attention;
        let square = S::LANES * S::LANES;
        let sizes = [heads * BLOCK, heads * d_v, heads * S::LANES, square, square, heads, heads, BLOCK, BLOCK];
        let mut memory = Scratch::take(sizes.iter().sum());
        let [scores, o, l, by_key, by_head, greatest, steps, key_scales, value_scales] =
            cut(&mut memory, sizes);
        let mut bytes = Scratch::<i8>::take(heads * (d_k + BLOCK));
        let (query, weights) = bytes.split_at_mut(heads * d_k);
        let mut memory =
            Memory { query, weights, scores, o, l, by_key, by_head, greatest, steps, key_scales, value_scales };
        for (number, y) in (first..).zip(y.chunks_exact_mut(heads * d_v)) {
            let scale = quantise_row(s, q.row(number, heads * d_k), memory.query) * attention.scale;
            Query { attention, keys: lists.of(number), scale, cache }.attend(s, &mut memory, y);
        }
    }
}

/// What a query is computed in.
struct Memory<'a> {
    /// The query, rounded.
    query: &'a mut [i8],
    /// `[heads, BLOCK]`: weights, times the scales of the values, rounded.
    weights: &'a mut [i8],
    /// `[heads, BLOCK]`
    scores: &'a mut [f32],
    /// `[heads, d_v]`: sums of values, each to be divided by its sum of weights.
    o: &'a mut [f32],
    /// `[heads, LANES]`: sums of weights, in parts that are added up at the end.
    l: &'a mut [f32],
    /// Squares that sums are turned in.
    by_key: &'a mut [f32],
    by_head: &'a mut [f32],
    /// The greatest score of each head so far.
    greatest: &'a mut [f32],
    /// What one is worth among the rounded weights of each head.
    steps: &'a mut [f32],
    /// Of a block.
    key_scales: &'a mut [f32],
    value_scales: &'a mut [f32],
}

/// All heads of one query.
struct Query<'a> {
    attention: &'a Attention,
    keys: &'a [u32],
    /// Of the query's rounded numbers, times that of scores.
    scale: f32,
    cache: Int8Cache<'a>,
}

impl Query<'_> {
    #[inline(always)]
    fn attend<S: Simd, T: Real>(&self, s: S, memory: &mut Memory, y: &mut [T]) {
        let Attention { heads, d_v, .. } = *self.attention;
        memory.o.fill(0.0);
        memory.l.fill(0.0);
        memory.greatest.fill(f32::NEG_INFINITY);
        for keys in self.keys.chunks(BLOCK) {
            // Behind the last key there may be anything in a vector but what is no number.
            memory.key_scales.fill(0.0);
            memory.value_scales.fill(0.0);
            for (i, &key) in keys.iter().enumerate() {
                memory.key_scales[i] = self.cache.scales[2 * key as usize];
                memory.value_scales[i] = self.cache.scales[2 * key as usize + 1];
            }
            for (vector, keys) in keys.chunks(S::LANES).enumerate() {
                self.score(s, memory, vector * S::LANES, keys);
            }
            for head in 0..heads {
                let scores = &mut memory.scores[head * BLOCK..][..BLOCK];
                let o = &mut memory.o[head * d_v..][..d_v];
                let l = &mut memory.l[head * S::LANES..][..S::LANES];
                weigh(s, keys.len(), scores, &mut memory.greatest[head], l, o);
                let weights = &mut memory.weights[head * BLOCK..][..BLOCK];
                memory.steps[head] = round_weights(s, keys.len(), scores, memory.value_scales, weights);
            }
            self.add_values(s, memory, keys);
        }
        for head in 0..heads {
            let (o, l) = (&memory.o[head * d_v..][..d_v], s.sum(load(s, memory.l, head * S::LANES, S::LANES)));
            // Without keys there are zeros, and nothing to divide them by.
            let inverse = s.splat(if l > 0.0 { 1.0 / l } else { l });
            for at in (0..d_v).step_by(S::LANES) {
                store(s, y, head * d_v + at, S::LANES, s.mul(load(s, o, at, S::LANES), inverse));
            }
        }
    }

    /// The products of all heads of the query with a vector of keys, from the one with the number `first` in its block on; behind the
    /// last key there may be anything.
    #[inline(always)]
    fn score<S: Simd>(&self, s: S, memory: &mut Memory, first: usize, keys: &[u32]) {
        const { assert!(S::LANES.is_multiple_of(KEYS)) };
        let heads = self.attention.heads;
        let scale = s.mul(load(s, memory.key_scales, first, S::LANES), s.splat(self.scale));
        // A vector has all heads, several elements of each side by side, or a part of the heads.
        for part in (0..heads).step_by(S::LANES) {
            for (at, keys) in keys.chunks(KEYS).enumerate() {
                let sums = self.products(s, memory.query, part, keys);
                for i in 0..KEYS {
                    store(s, memory.by_key, (at * KEYS + i) * S::LANES, S::LANES, s.whole(sums[i]));
                }
            }
            // Safety: both are squares of LANES × LANES.
            unsafe { s.transpose(memory.by_key.as_ptr(), S::LANES, memory.by_head.as_mut_ptr(), S::LANES) }
            for head in 0..heads.min(S::LANES) {
                let mut sum = load(s, memory.by_head, head * S::LANES, S::LANES);
                for row in (head + heads..S::LANES).step_by(heads) {
                    sum = s.add(sum, load(s, memory.by_head, row * S::LANES, S::LANES));
                }
                store(s, memory.scores, (part + head) * BLOCK + first, S::LANES, s.mul(sum, scale));
            }
        }
    }

    /// The sums of up to [`KEYS`] keys, of the heads from `part` on.
    #[inline(always)]
    fn products<S: Simd>(&self, s: S, query: &[i8], part: usize, keys: &[u32]) -> [S::U; KEYS] {
        let Attention { heads, d_k, .. } = *self.attention;
        let width = heads * d_k;
        assert!(query.len() == width);
        let mut rows = [self.cache.k.as_ptr(); KEYS];
        for i in 0..KEYS {
            // Safety: `attention_to_int8_lists` checked that every row in the lists is there.
            rows[i] = unsafe { rows[i].add(keys[i.min(keys.len() - 1)] as usize * width) };
        }
        // Keys are taken as unsigned, 128 more than they are: its share is taken away.
        let sign = s.splat_u(0x8080_8080);
        let (mut sums, mut share) = ([s.splat_u(0); KEYS], s.splat_u(0));
        for at in (part * FOUR..width).step_by(heads.max(S::LANES) * FOUR) {
            // Safety: whole vectors inside of a row, since heads and widths fit.
            unsafe {
                let q = s.load_u(query.as_ptr().add(at).cast());
                share = s.dot4_unsigned(share, sign, q);
                for i in 0..KEYS {
                    let k = s.xor_u(s.load_u(rows[i].add(at).cast()), sign);
                    sums[i] = s.dot4_unsigned(sums[i], k, q);
                }
            }
        }
        let minus = s.mul_u(share, s.splat_u(u32::MAX));
        for i in 0..KEYS {
            sums[i] = s.add_u(sums[i], minus);
        }
        sums
    }

    /// `o += p · v` over the keys of a block, four rows at a time.
    #[inline(always)]
    fn add_values<S: Simd>(&self, s: S, memory: &mut Memory, keys: &[u32]) {
        let Attention { heads, d_v, .. } = *self.attention;
        let width = heads * d_v;
        for at in (0..width).step_by(FOUR * S::LANES) {
            // Vector `j` has the columns from this one and `16 · j` on.
            let column = at / PART * PART + at % PART / FOUR;
            let mut sums = [s.splat_u(0); 4];
            for (group, keys) in keys.chunks(FOUR).enumerate() {
                let mut rows = [s.splat_u(0); FOUR];
                for i in 0..FOUR {
                    let key = keys[i.min(keys.len() - 1)] as usize;
                    // Safety: `attention_to_int8_lists` checked that every row in the lists is there.
                    rows[i] = unsafe { s.load_u(self.cache.v.as_ptr().add(key * width + at).cast()) };
                }
                let turned = s.turn_bytes(rows);
                for j in 0..4 {
                    let head = (column + 16 * j) / d_v;
                    let four = &memory.weights[head * BLOCK + group * FOUR..][..FOUR];
                    let four = u32::from_ne_bytes([four[0] as u8, four[1] as u8, four[2] as u8, four[3] as u8]);
                    sums[j] = s.dot4_unsigned(sums[j], s.splat_u(four), turned[j]);
                }
            }
            for j in 0..4 {
                let column = column + 16 * j;
                let o = load(s, memory.o, column, S::LANES);
                let o = s.fma(s.whole(sums[j]), s.splat(memory.steps[column / d_v]), o);
                store(s, memory.o, column, S::LANES, o);
            }
        }
    }
}

/// Rounds the weights of a head, each times the scale of its value, to whole numbers up to 127; returns what one is worth.
#[inline(always)]
fn round_weights<S: Simd>(s: S, keys: usize, p: &mut [f32], scales: &[f32], weights: &mut [i8]) -> f32 {
    let mut most = s.splat(0.0);
    for at in (0..keys).step_by(S::LANES) {
        let weight = s.mul(load(s, p, at, S::LANES), load(s, scales, at, S::LANES));
        most = s.max(most, weight);
        store(s, p, at, S::LANES, weight);
    }
    let step = s.greatest(most) / 127.0;
    let inverse = s.splat(if step >= f32::MIN_POSITIVE { 1.0 / step } else { 0.0 });
    assert!(keys.next_multiple_of(S::LANES) <= weights.len());
    for at in (0..keys).step_by(S::LANES) {
        // Safety: there is room for whole vectors, as just checked.
        unsafe { s.store_i8(weights.as_mut_ptr().add(at), s.mul(load(s, p, at, S::LANES), inverse)) };
    }
    step
}
