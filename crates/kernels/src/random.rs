//! Random numbers from a counter: the number of an element depends on a seed and its index, and on nothing else.
//!
//! There is no state to carry along, so dropout draws the same mask again when gradients flow back, on any number of
//! threads, and a resumed run draws what the uninterrupted one drew.

use crate::simd::Simd;

/// The generator of one operation: two words of key made from a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Random {
    key: [u32; 2],
}

impl Random {
    /// The generator for `seed`.
    pub fn new(seed: u64) -> Random {
        let mixed = mix(seed);
        Random { key: [mixed as u32, (mixed >> 32) as u32] }
    }

    /// A generator of its own for part `number` of what this one is for: a step, a layer, a row.
    pub fn split(self, number: u64) -> Random {
        Random::new(mix(number) ^ (self.key[0] as u64 | (self.key[1] as u64) << 32))
    }

    /// The 32 random bits of element `index`.
    pub fn bits(self, index: u32) -> u32 {
        scramble(scramble(index ^ self.key[0]).wrapping_add(self.key[1]))
    }

    /// A number in `0..1`, a multiple of 2⁻²⁴.
    pub fn uniform(self, index: u32) -> f32 {
        (self.bits(index) >> 8) as f32 * (1.0 / (1 << 24) as f32)
    }

    /// A normally distributed number of mean 0 and variance 1 (Box and Muller's method).
    pub fn normal(self, index: u32) -> f32 {
        let open = (self.split(1).bits(index) as f64 + 0.5) / (1u64 << 32) as f64;
        let angle = self.split(2).bits(index) as f64 / (1u64 << 32) as f64 * std::f64::consts::TAU;
        ((-2.0 * open.ln()).sqrt() * angle.cos()) as f32
    }

    /// Other bits of element `index`, for dropout, which needs most of the random bits. They are scrambled once, with one word of the key
    /// before and the other in the middle.
    fn quick_bits(self, index: u32) -> u32 {
        scramble_with(index ^ self.key[0], self.key[1])
    }

    /// [`quick_bits`](Random::quick_bits) of the elements `index`, `index + 1`, ….
    #[inline(always)]
    fn quick_vector<S: Simd>(self, s: S, index: u32) -> S::U {
        let counter = s.add_u(s.splat_u(index), s.iota());
        let x = s.xor_u(counter, s.splat_u(self.key[0]));
        let x = s.mul_u(s.xor_u(x, s.shr_u::<16>(x)), s.splat_u(FACTORS[0]));
        let x = s.xor_u(x, s.splat_u(self.key[1]));
        let x = s.mul_u(s.xor_u(x, s.shr_u::<15>(x)), s.splat_u(FACTORS[1]));
        s.xor_u(x, s.shr_u::<15>(x))
    }
}

const FACTORS: [u32; 2] = [0x21f0_aaad, 0xd35a_2d97];

/// A bijection of 32 bits in which every bit of the input moves every bit of the output with a probability near
/// one half: xor-shift and multiply, with the constants that Chris Wellons' search found to be the least biased.
fn scramble(x: u32) -> u32 {
    scramble_with(x, 0)
}

/// [`scramble`] with a word that goes in after the first multiplication.
fn scramble_with(mut x: u32, word: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(FACTORS[0]) ^ word;
    x = (x ^ x >> 15).wrapping_mul(FACTORS[1]);
    x ^ x >> 15
}

/// The output function of SplitMix64.
fn mix(seed: u64) -> u64 {
    let x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Dropout: an element is zero with probability `p`, and else scaled by `1 / (1 - p)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The probability that an element is dropped, in `0..1`.
    pub p: f32,
    /// Where the random numbers come from.
    pub random: Random,
}

impl Dropout {
    /// What a kept element is multiplied by.
    pub fn scale(self) -> f32 {
        1.0 / (1.0 - self.p)
    }

    /// 31 random bits below this mean that an element is dropped.
    fn threshold(self) -> u32 {
        (self.p as f64 * (1u64 << 31) as f64).round() as u32
    }

    /// What element `index` is multiplied by.
    pub fn factor(self, index: u32) -> f32 {
        if self.random.quick_bits(index) >> 1 < self.threshold() { 0.0 } else { self.scale() }
    }

    /// What the elements `index`, `index + 1`, … are multiplied by.
    #[inline(always)]
    pub(crate) fn factors<S: Simd>(self, s: S, index: u32) -> S::F {
        let bits = s.shr_u::<1>(self.random.quick_vector(s, index));
        s.select(s.lt_u(bits, s.splat_u(self.threshold())), s.splat(0.0), s.splat(self.scale()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Isa, Kernel};

    struct Factors<'a>(Dropout, &'a mut [f32]);

    impl Kernel for Factors<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            crate::simd::for_vectors(
                s,
                self.1.len(),
                #[inline(always)]
                |at, n| crate::simd::store(s, self.1, at, n, self.0.factors(s, at as u32)),
            );
        }
    }

    #[test]
    fn every_instruction_set_draws_the_same_numbers() {
        let dropout = Dropout { p: 0.3, random: Random::new(7) };
        let expected: Vec<f32> = (0..1003).map(|i| dropout.factor(i)).collect();
        for isa in Isa::present() {
            let mut factors = vec![0.0; 1003];
            isa.dispatch(Factors(dropout, &mut factors));
            assert_eq!(factors, expected, "{isa}");
        }
    }

    #[test]
    fn dropout_drops_the_share_it_should_and_keeps_the_mean() {
        for (seed, p) in [(1, 0.1), (2, 0.5), (3, 0.9)] {
            let dropout = Dropout { p, random: Random::new(seed) };
            let n = 200_000;
            let dropped = (0..n).filter(|&i| dropout.factor(i) == 0.0).count() as f32 / n as f32;
            assert!((dropped - p).abs() < 0.005, "{dropped} of {p}");
            assert!((dropout.scale() * (1.0 - p) - 1.0).abs() < 1e-6);
        }
    }

    /// Neither are elements below each other in rows of a power of two, nor the bits of dropout.
    #[test]
    fn neighbouring_seeds_and_elements_are_not_correlated() {
        let n = 100_000u32;
        let ways: [fn(Random, u32) -> u32; 2] = [Random::bits, Random::quick_bits];
        for (way, bits) in ways.into_iter().enumerate() {
            let value = |seed, i| bits(Random::new(seed), i) as f64 / (1u64 << 32) as f64 - 0.5;
            for (seed, apart) in [(2, 0), (3, 0), (1, 1), (1, 2), (1, 16), (1, 512), (1, 1024), (2, 1)] {
                let sum: f64 = (0..n).map(|i| value(1, i) * value(seed, i + apart)).sum();
                let correlation = sum / n as f64 * 12.0;
                assert!(correlation.abs() < 0.012, "{way}, {seed}, {apart}: {correlation}");
            }
        }
    }

    /// Rows differ in how many of their elements are dropped, no more and no less than rows of coins do.
    #[test]
    fn what_is_dropped_of_a_row_has_the_variance_of_independent_coins() {
        let (width, rows, p) = (64u32, 20_000, 0.1);
        let variances = (0..4).map(|seed| {
            let dropout = Dropout { p, random: Random::new(seed) };
            let dropped =
                |row| (row * width..(row + 1) * width).filter(|&i| dropout.factor(i) == 0.0).count();
            let expected = width as f64 * p as f64;
            (0..rows).map(|row| (dropped(row) as f64 - expected).powi(2)).sum::<f64>() / rows as f64
        });
        let expected = width as f64 * p as f64 * (1.0 - p as f64);
        for variance in variances {
            assert!((variance / expected - 1.0).abs() < 0.04, "{variance} {expected}");
        }
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let random = Random::new(11);
        let x: Vec<f64> = (0..100_000).map(|i| random.normal(i) as f64).collect();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
