//! Decoding over keys and values that were rounded to bf16, though the queries were not.
//!
//! Two bf16 lie in each lane of a vector, and it takes one instruction each to have the even and the odd ones of them as numbers.
//! So products are computed for even and odd elements apart, and a vector has all heads of several elements of a key: a
//! sum is then one of several that are added at the end, in another order than elsewhere. Nothing is lost by that, for rounded
//! keys give other bits than a pass over the whole sequence anyway.

use super::Attention;
use super::block::BLOCK;
use super::decode::Query;
use crate::Real;
use crate::simd::{Simd, load, store};

/// Keys whose products are computed together.
const KEYS: usize = 4;

/// Squares of vectors that [`Query::score_pairs`] turns in.
pub(super) const SQUARES: usize = 3;

impl<T: Real, C: Real> Query<'_, T, C> {
    /// Whether keys and values are rounded, and heads and widths such that pairs fill whole vectors.
    #[inline(always)]
    pub(super) fn is_paired<S: Simd>(&self, _: S) -> bool {
        let (Attention { heads, d_k, d_v, .. }, two) = (*self.attention, 2 * S::LANES);
        let fit = two.is_multiple_of(heads) && heads.is_multiple_of(2) && (heads * d_k).is_multiple_of(two);
        T::EXACT && !C::EXACT && fit && d_v.is_multiple_of(two)
    }

    /// The query times the scale, of each two vectors the even and then the odd ones.
    #[inline(always)]
    pub(super) fn pair_queries<S: Simd>(&self, s: S, q: &mut [f32]) {
        let two = 2 * S::LANES;
        for (x, q) in self.q.chunks_exact(two).zip(q.chunks_exact_mut(two)) {
            // Safety: two vectors.
            let pair = unsafe { T::load_even_odd(s, x.as_ptr()) };
            for i in 0..2 {
                store(s, q, i * S::LANES, S::LANES, s.mul(pair[i], s.splat(self.attention.scale)));
            }
        }
    }

    /// The products of all heads of the query with a vector of keys, each head's [`BLOCK`] behind those of the one before;
    /// behind the last key there may be anything. `squares` is memory for it.
    #[inline(always)]
    pub(super) fn score_pairs<S: Simd>(
        &self,
        s: S,
        q: &[f32],
        keys: &[u32],
        squares: &mut [f32],
        scores: &mut [f32],
    ) {
        const { assert!(S::LANES.is_multiple_of(KEYS)) };
        let (heads, square) = (self.attention.heads, S::LANES * S::LANES);
        let (by_key, by_head) = squares[..SQUARES * square].split_at_mut(2 * square);
        for (at, keys) in keys.chunks(KEYS).enumerate() {
            let sums = self.products_of_pairs(s, q, keys);
            for i in 0..KEYS {
                for odd in 0..2 {
                    store(s, by_key, odd * square + (at * KEYS + i) * S::LANES, S::LANES, sums[odd][i]);
                }
            }
        }
        for odd in 0..2 {
            // Safety: both are squares of LANES × LANES.
            unsafe {
                s.transpose(by_key[odd * square..].as_ptr(), S::LANES, by_head.as_mut_ptr(), S::LANES);
            }
            for half in 0..heads / 2 {
                let mut sum = s.splat(0.0);
                for row in (half..S::LANES).step_by(heads / 2) {
                    sum = s.add(sum, load(s, by_head, row * S::LANES, S::LANES));
                }
                store(s, scores, (2 * half + odd) * BLOCK, S::LANES, sum);
            }
        }
    }

    /// The products of even and of odd elements with up to [`KEYS`] keys.
    #[inline(always)]
    fn products_of_pairs<S: Simd>(&self, s: S, q: &[f32], keys: &[u32]) -> [[S::F; KEYS]; 2] {
        let Attention { heads, d_k, .. } = *self.attention;
        let mut rows = [self.k.data.as_ptr(); KEYS];
        for i in 0..KEYS {
            // Safety: `attention_to_lists` checked that every row in the lists has all heads.
            rows[i] = unsafe { rows[i].add(keys[i.min(keys.len() - 1)] as usize * self.k.stride) };
        }
        let mut sums = [[s.splat(0.0); KEYS]; 2];
        for at in (0..heads * d_k).step_by(2 * S::LANES) {
            let q = [load(s, q, at, S::LANES), load(s, q, at + S::LANES, S::LANES)];
            for i in 0..KEYS {
                // Safety: two vectors inside of a row.
                let k = unsafe { C::load_even_odd(s, rows[i].add(at)) };
                for odd in 0..2 {
                    sums[odd][i] = s.fma(q[odd], k[odd], sums[odd][i]);
                }
            }
        }
        sums
    }

    /// `o += p · v` over some keys, in their order; of each two vectors of `o` the even and then the odd ones.
    #[inline(always)]
    pub(super) fn add_paired_values<S: Simd>(&self, s: S, keys: &[u32], p: &[f32], o: &mut [f32]) {
        let Attention { heads, d_v, .. } = *self.attention;
        let blocks = d_v / (2 * S::LANES);
        // Four pairs of sums at a time, since each sum waits for itself; there are an even number of heads.
        let mut first = 0;
        while first < heads * blocks {
            first += match heads * blocks - first {
                4.. => self.add_pairs::<S, 4>(s, first, keys, p, o),
                _ => self.add_pairs::<S, 2>(s, first, keys, p, o),
            };
        }
    }

    /// `N` pairs of vectors, from the one with the number `first` on; returns `N`.
    #[inline(always)]
    fn add_pairs<S: Simd, const N: usize>(
        &self,
        s: S,
        first: usize,
        keys: &[u32],
        p: &[f32],
        o: &mut [f32],
    ) -> usize {
        let two = 2 * S::LANES;
        let blocks = self.attention.d_v / two;
        let o = &mut o[first * two..][..N * two];
        let mut sums = [[s.splat(0.0); 2]; N];
        for n in 0..N {
            for odd in 0..2 {
                sums[n][odd] = load(s, o, n * two + odd * S::LANES, S::LANES);
            }
        }
        for (i, &key) in keys.iter().enumerate() {
            // Safety: `attention_to_lists` checked that every row in the lists has all heads.
            let row = unsafe { self.v.data.as_ptr().add(key as usize * self.v.stride + first * two) };
            for n in 0..N {
                // Safety: two vectors inside of a row.
                let v = unsafe { C::load_even_odd(s, row.add(n * two)) };
                let p = s.splat(p[(first + n) / blocks * BLOCK + i]);
                for odd in 0..2 {
                    sums[n][odd] = s.fma(p, v[odd], sums[n][odd]);
                }
            }
        }
        for n in 0..N {
            for odd in 0..2 {
                store(s, o, n * two + odd * S::LANES, S::LANES, sums[n][odd]);
            }
        }
        N
    }
}

/// Writes a head's sums, divided by that of its weights, in their order.
#[inline(always)]
pub(super) fn write_pairs<S: Simd, T: Real>(s: S, o: &[f32], l: f32, y: &mut [T]) {
    for at in (0..y.len()).step_by(2 * S::LANES) {
        let even = s.div(load(s, o, at, S::LANES), s.splat(l));
        let odd = s.div(load(s, o, at + S::LANES, S::LANES), s.splat(l));
        let pair = s.in_turn(even, odd);
        for i in 0..2 {
            store(s, y, at + i * S::LANES, S::LANES, pair[i]);
        }
    }
}
