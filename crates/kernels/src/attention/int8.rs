//! Decoding over keys and values in int8, each row with a scale of its own.
//!
//! In each step, keys and values are as many bytes to read as weights. In int8 they are half as many as in bf16, and a dot product of
//! four elements is one instruction. So queries are rounded like keys. Attention weights are multiplied with the scales of their values
//! and rounded, too: the greatest weight of a block with the largest scale in it becomes 254. The rest of each rounding is added to the
//! next key. So many weights that are small beside the greatest are not all rounded the same way, and the result stays a mean of the
//! values.
//!
//! Queries and keys have the order of [`key_order`]: four elements of a head, then the same four of the next head. A vector of sums then
//! has one lane for each head, or several, which are added. From there to the weights all heads are computed at the same time. Values
//! have the order of [`value_order`], in which four rows are transposed with the fewest instructions. These orders cost nothing: a
//! projection has its rows in the order that is wanted.
//!
//! Sums of products are exact. So the result of a query depends only on the query and on what it sees, to the bit.

use super::bias::{Bias, Biases};
use super::block::{BLOCK, MOST_LANES, cut};
use super::decode::{KeyLists, QUERIES};
use super::{Attention, Rows, check_len};
use crate::gemm::quantise_row;
use crate::isa::Kernel;
use crate::math::exp;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// Keys whose products are computed at the same time, because each sum has to wait for its own last addition.
const KEYS: usize = 8;
/// Elements of a dot product that is one instruction.
const FOUR: usize = 4;
/// The largest rounded weight. Rounded weights are unsigned bytes; 255 leaves room for the rest of the weight before.
const MOST: f32 = 254.0;
/// Bytes of a row of values within which the order is changed.
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

/// The order of a query or a key in a cache: `order[i]` is the column, head after head, that is stored at position `i`.
pub fn key_order(heads: usize, d_k: usize) -> Vec<usize> {
    let column = |position: usize| {
        let (group, element) = (position / FOUR, position % FOUR);
        group % heads * d_k + group / heads * FOUR + element
    };
    (0..heads * d_k).map(column).collect()
}

/// The order of a value in a cache: `order[i]` is the column, head after head, that is stored at position `i`. Of every 64 columns, the
/// 4 × 4 groups of four are transposed.
pub fn value_order(heads: usize, d_v: usize) -> Vec<usize> {
    let column = |position: usize| {
        let (part, group, element) = (position / PART, position % PART / FOUR, position % FOUR);
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
    bias: Option<Bias>,
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
    let rows = lists.check(name, queries);
    q.check(name, "q", queries, heads * d_k);
    check_len(name, "k", cache.k.len(), cache.scales.len() / 2, heads * d_k);
    check_len(name, "v", cache.v.len(), cache.scales.len() / 2, heads * d_v);
    assert!(
        rows <= cache.scales.len() / 2,
        "{name}: {rows} rows are listed, {} are there",
        cache.scales.len() / 2
    );

    let biases = bias.map(|bias| Biases::new(name, bias, heads, lists.pairs()));
    let biases = biases.as_ref();
    let y = Shared::new(y);
    cpu.threads.run(queries.div_ceil(QUERIES), |task| {
        let first = task * QUERIES;
        let count = QUERIES.min(queries - first);
        // Safety: a query belongs to one task.
        let y = unsafe { y.slice(first * heads * d_v, count * heads * d_v) };
        cpu.isa.dispatch(Queries { attention, lists, biases, first, q, cache, y });
    });
}

/// Some queries, from the one with the number `first` on.
struct Queries<'a, T> {
    attention: &'a Attention,
    lists: KeyLists<'a>,
    biases: Option<&'a Biases<'a>>,
    first: usize,
    q: Rows<'a, T>,
    cache: Int8Cache<'a>,
    /// The results of these queries.
    y: &'a mut [T],
}

impl<T: Real> Kernel for Queries<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Queries { attention, lists, biases, first, q, cache, y } = self;
        let Attention { heads, d_k, d_v, .. } = *attention;
        let lanes = heads.next_multiple_of(S::LANES);
        let sizes = [BLOCK * S::LANES, heads * d_v, lanes, lanes, lanes, lanes];
        let mut memory = Scratch::take(sizes.iter().sum());
        let [scores, o, l, greatest, shrink, gain] = cut(&mut memory, sizes);
        let mut weights = Scratch::<u32>::take(BLOCK / FOUR * lanes);
        let mut query = Scratch::<i8>::take(heads * d_k);
        let (query, weights) = (&mut query[..], &mut weights[..]);
        let mut memory = Memory { query, weights, scores, o, l, greatest, shrink, gain };
        for (number, y) in (first..).zip(y.chunks_exact_mut(heads * d_v)) {
            let scale = quantise_row(s, q.row(number, heads * d_k), memory.query) * attention.scale;
            Query { attention, keys: lists.of(number), number, biases, scale, cache }.attend(
                s,
                &mut memory,
                y,
            );
        }
    }
}

/// The memory in which a query is computed. Arrays with a number for each head are whole vectors: if there are fewer heads than lanes,
/// heads are repeated.
struct Memory<'a> {
    /// The query, rounded.
    query: &'a mut [i8],
    /// For every four keys and each head, four rounded weights, multiplied with the scales of the values.
    weights: &'a mut [u32],
    /// `[BLOCK, LANES]`: the scores of some heads.
    scores: &'a mut [f32],
    /// `[heads, d_v]`: sums of values, each to be divided by its sum of weights.
    o: &'a mut [f32],
    /// The sum of weights of each head.
    l: &'a mut [f32],
    /// Its greatest score so far.
    greatest: &'a mut [f32],
    /// The factor of its sums so far, below 1 if the block has a greater score.
    shrink: &'a mut [f32],
    /// The factor of the sums of the block, below 1 if there was a greater score before.
    gain: &'a mut [f32],
}

/// All heads of one query.
struct Query<'a> {
    attention: &'a Attention,
    keys: &'a [u32],
    /// Which of the queries it is.
    number: usize,
    biases: Option<&'a Biases<'a>>,
    /// The scale of the rounded query, times the scale of scores.
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
        for (block, keys) in self.keys.chunks(BLOCK).enumerate() {
            let mut largest = 0f32;
            for &key in keys {
                let scale = self.cache.scales[2 * key as usize + 1];
                // A NaN stays a NaN, and so does the result.
                largest = if scale <= largest || largest.is_nan() { largest } else { scale };
            }
            let step = largest / MOST;
            for part in (0..heads).step_by(S::LANES) {
                let mut here = self.score(s, memory, part, keys);
                if let Some(biases) = self.biases {
                    here = self.add_biases(s, biases, memory, part, block * BLOCK, keys.len());
                }
                self.weigh(s, memory, part, keys, here, step);
            }
            if block > 0 {
                for (o, &shrink) in memory.o.chunks_exact_mut(d_v).zip(&*memory.shrink) {
                    o.iter_mut().for_each(|o| *o *= shrink);
                }
            }
            self.add_values(s, memory, keys, step);
        }
        for (head, y) in y.chunks_exact_mut(d_v).enumerate() {
            // Without keys the result is zero, and so is the divisor.
            let l = if memory.l[head] == 0.0 { 1.0 } else { memory.l[head] };
            for at in (0..d_v).step_by(S::LANES) {
                let o = load(s, memory.o, head * d_v + at, S::LANES);
                store(s, y, at, S::LANES, s.div(o, s.splat(l)));
            }
        }
    }

    /// The scores of the heads from `part` on with all keys of a block; returns the greatest of each head.
    #[inline(always)]
    fn score<S: Simd>(&self, s: S, memory: &mut Memory, part: usize, keys: &[u32]) -> S::F {
        let mut here = s.splat(f32::NEG_INFINITY);
        for first in (0..keys.len()).step_by(KEYS) {
            let keys = &keys[first..keys.len().min(first + KEYS)];
            let sums = self.products(s, memory.query, part, keys);
            for i in 0..keys.len() {
                let scale = s.splat(self.cache.scales[2 * keys[i] as usize] * self.scale);
                let score = s.mul(s.fold(s.whole(sums[i]), self.attention.heads), scale);
                here = s.max(here, score);
                store(s, memory.scores, (first + i) * S::LANES, S::LANES, score);
            }
        }
        here
    }

    /// Adds biases to the scores of the heads from `part` on with the `keys` from `start` on; returns the greatest of each head.
    #[inline(always)]
    fn add_biases<S: Simd>(
        &self,
        s: S,
        biases: &Biases,
        memory: &mut Memory,
        part: usize,
        start: usize,
        keys: usize,
    ) -> S::F {
        let (heads, pairs) = (self.attention.heads, KeyLists::pairs_of(self.keys));
        let mut here = s.splat(f32::NEG_INFINITY);
        for i in 0..keys {
            let mut row = [0f32; MOST_LANES];
            for (lane, bias) in row[..S::LANES].iter_mut().enumerate() {
                *bias = biases.of(self.number, pairs, (part + lane) % heads).row(0, start + i, 1)[0];
            }
            let score = s.add(load(s, memory.scores, i * S::LANES, S::LANES), load(s, &row, 0, S::LANES));
            here = s.max(here, score);
            store(s, memory.scores, i * S::LANES, S::LANES, score);
        }
        here
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
        // The instruction takes keys as unsigned. So 128 is added to them, and its share of the sum is subtracted.
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

    /// Computes weights `e^(score - here)`, where `here` is the greatest score of each head. Each weight is multiplied with the scale of
    /// its value, the rest of the weight before is added, and the sum is rounded to a multiple of `step`. `l` gets the sum of weights.
    #[inline(always)]
    fn weigh<S: Simd>(&self, s: S, memory: &mut Memory, part: usize, keys: &[u32], here: S::F, step: f32) {
        let inverse = if step >= f32::MIN_POSITIVE { 1.0 / step } else { 0.0 };
        let lanes = self.attention.heads.next_multiple_of(S::LANES);
        let (mut sum, mut rest) = (s.splat(0.0), s.splat(0.0));
        for first in (0..keys.len()).step_by(FOUR) {
            let mut four = s.splat_u(0);
            // From the last to the first, so that the first ends in the lowest byte.
            for i in (first..keys.len().min(first + FOUR)).rev() {
                let p = exp(s, s.sub(load(s, memory.scores, i * S::LANES, S::LANES), here));
                let factor = s.splat(self.cache.scales[2 * keys[i] as usize + 1] * inverse);
                let weight = s.fma(p, factor, rest);
                let whole = s.nearest_u(weight);
                rest = s.sub(weight, s.whole(whole));
                sum = s.add(sum, p);
                four = s.add_u(s.shl_u::<8>(four), whole);
            }
            let to = &mut memory.weights[first / FOUR * lanes + part..][..S::LANES];
            // Safety: a whole vector.
            unsafe { s.store_u(to.as_mut_ptr(), four) }
        }
        // The rest of the last weight is lost, so it must not be in the sum either.
        sum = s.sub(sum, s.mul(rest, s.splat(1.0 / MOST)));
        let before = load(s, memory.greatest, part, S::LANES);
        let greatest = s.max(before, here);
        let (shrink, gain) = (exp(s, s.sub(before, greatest)), exp(s, s.sub(here, greatest)));
        let l = s.fma(sum, gain, s.mul(load(s, memory.l, part, S::LANES), shrink));
        store(s, memory.greatest, part, S::LANES, greatest);
        store(s, memory.shrink, part, S::LANES, shrink);
        store(s, memory.gain, part, S::LANES, gain);
        store(s, memory.l, part, S::LANES, l);
    }

    /// `o += p · v` over the keys of a block, four rows at a time.
    #[inline(always)]
    fn add_values<S: Simd>(&self, s: S, memory: &mut Memory, keys: &[u32], step: f32) {
        let Attention { heads, d_v, .. } = *self.attention;
        let (width, lanes) = (heads * d_v, heads.next_multiple_of(S::LANES));
        for at in (0..width).step_by(FOUR * S::LANES) {
            // Vector `j` has the columns from this one and `16 · j` on.
            let column = at / PART * PART + at % PART / FOUR;
            let mut sums = [s.splat_u(0); 4];
            for first in (0..keys.len()).step_by(FOUR) {
                let weights = &memory.weights[first / FOUR * lanes..][..lanes];
                let mut rows = [s.splat_u(0); FOUR];
                for i in 0..FOUR {
                    // Rows behind the last key have weight zero.
                    let key = keys[(first + i).min(keys.len() - 1)] as usize;
                    // Safety: `attention_to_int8_lists` checked that every row in the lists is there.
                    rows[i] = unsafe { s.load_u(self.cache.v.as_ptr().add(key * width + at).cast()) };
                }
                let transposed = s.transpose_bytes(rows);
                for j in 0..4 {
                    let weights = s.splat_u(weights[(column + 16 * j) / d_v]);
                    sums[j] = s.dot4_unsigned(sums[j], weights, transposed[j]);
                }
            }
            for j in 0..4 {
                let column = column + 16 * j;
                let factor = s.splat(step * memory.gain[column / d_v]);
                let o = load(s, memory.o, column, S::LANES);
                store(s, memory.o, column, S::LANES, s.fma(s.whole(sums[j]), factor, o));
            }
        }
    }
}
