//! Numbers in f32 as sums of bf16, for products in f32 on the tile unit.
//!
//! An f32 has 24 bits, a bf16 has 8. So an f32 is exactly the sum of three parts: the nearest bf16, the nearest bf16 to the rest, and
//! what is left then. (Unless the last part is below the smallest normal number, which the unit takes for zero.) Of the nine products
//! of the parts of two numbers, the three smallest are at most 2⁻²³ of the whole, of either sign, and mostly far less: a product in f32
//! rounds that away. The other six are products of bf16, which the unit computes sixteen times as fast as vectors compute those of
//! f32. It adds up 32 products before it adds to a sum, so that a long sum is rounded less often than a chain of multiply-adds, and its
//! error is smaller (see the tests).
//!
//! Only the gradients of weights and of rows are computed like this. In the forward pass a model must give the same bits whether its
//! weights are packed for decoding or not, and packed weights in three parts would be half as large again.
//!
//! A number that is not finite, or that would be infinite as a bf16, makes the product NaN or infinite.

use super::pack::{Left, Right};
use super::{Epilogue, Matrix, better_transposed, multiply, whole_steps};
use crate::Cpu;
use crate::simd::{Real, Simd};

/// How many bf16 an f32 is.
pub(super) const PARTS: usize = 3;

/// `C = activation(A·B + bias)` in f32 on the tile unit: `A: [m, k]`, `B: [k, n]`, `C: [m, n]`.
///
/// # Panics
/// If there is none.
pub(in crate::gemm) fn gemm_in_parts(cpu: &Cpu, a: Matrix, b: Matrix, c: &mut [f32], epilogue: Epilogue) {
    assert!(cpu.isa.amx().is_some(), "gemm: {} has no tiles", cpu.isa);
    crate::gemm::check((a.rows, a.cols), (b.rows, b.cols), c.len(), epilogue);
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    let transposed_result = better_transposed(a, b);
    let (left, right) = if transposed_result { (b.t(), a.t()) } else { (a, b) };
    let left = Left::<PARTS>::tiles(cpu, left, whole_steps(left.cols));
    multiply(cpu, left, Right::F32(right), right.cols, c, epilogue, transposed_result);
}

/// The `N` parts of each lane. The last part is not rounded yet. A NaN is a NaN in the last part.
#[inline(always)]
fn split<S: Simd, const N: usize>(s: S, x: S::F) -> [S::F; N] {
    let mut parts = [x; N];
    for i in 1..N {
        let left = parts[i - 1];
        parts[i - 1] = s.nearest_bf16(left);
        parts[i] = s.sub(left, parts[i - 1]);
    }
    parts
}

/// The parts of two vectors, paired lane by lane; see [`Simd::pair`].
#[inline(always)]
pub(crate) fn pairs<S: Simd, const N: usize>(s: S, low: S::F, high: S::F) -> [S::U; N] {
    let (low, high) = (split::<S, N>(s, low), split::<S, N>(s, high));
    let mut pairs = [s.splat_u(0); N];
    for i in 0..N {
        pairs[i] = s.pair(low[i], high[i]);
    }
    pairs
}

/// The parts of two vectors, one vector behind the other; see [`Simd::row`].
#[inline(always)]
pub(crate) fn row<S: Simd, const N: usize>(s: S, first: S::F, second: S::F) -> [S::U; N] {
    let (first, second) = (split::<S, N>(s, first), split::<S, N>(s, second));
    let mut row = [s.splat_u(0); N];
    for i in 0..N {
        row[i] = s.row(first[i], second[i]);
    }
    row
}

/// [`pairs`] from memory.
///
/// # Safety
/// Both must be valid for reading [`Simd::LANES`] values.
#[inline(always)]
pub(super) unsafe fn load_pairs<S: Simd, T: Real, const N: usize>(
    s: S,
    low: *const T,
    high: *const T,
) -> [S::U; N] {
    // Safety: the caller's promise.
    unsafe {
        if N == 1 { [T::load_pair(s, low, high); N] } else { pairs(s, T::load(s, low), T::load(s, high)) }
    }
}

/// [`row`] from memory.
///
/// # Safety
/// `at` must be valid for reading twice [`Simd::LANES`] values.
#[inline(always)]
pub(super) unsafe fn load_row<S: Simd, T: Real, const N: usize>(s: S, at: *const T) -> [S::U; N] {
    // Safety: the caller's promise.
    unsafe {
        if N == 1 { [T::load_row(s, at); N] } else { row(s, T::load(s, at), T::load(s, at.add(S::LANES))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::Activation;
    use crate::gemm::{gemm, gemm_for_gradients};
    use crate::isa::Kernel;
    use crate::testing::{bits, normal};
    use crate::{Aligned, Isa, Random, Threads};
    use half::bf16;

    /// The three parts of some numbers.
    struct Split<'a>(&'a [f32]);

    impl Kernel for Split<'_> {
        type Output = Vec<[f32; PARTS]>;
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Self::Output {
            let mut parts = vec![[f32::NAN; PARTS]; self.0.len()];
            for (numbers, parts) in self.0.chunks_exact(S::LANES).zip(parts.chunks_exact_mut(S::LANES)) {
                // Safety: a whole vector.
                let split = split::<S, PARTS>(s, unsafe { s.load(numbers.as_ptr()) });
                for (i, part) in split.into_iter().enumerate() {
                    let mut lanes = [0.0; 16];
                    // Safety: room for the widest vectors.
                    unsafe { s.store(lanes.as_mut_ptr(), part) }
                    parts.iter_mut().zip(lanes).for_each(|(parts, lane)| parts[i] = lane);
                }
            }
            parts
        }
    }

    #[test]
    fn three_parts_of_bf16_are_the_number() {
        let random = Random::new(5);
        // Of both signs, from 2⁻¹⁰⁰ to 2¹²⁷, and the last of all parts is above the least normal number or zero.
        let number = |i: u32| {
            let exponent = 27 + random.bits(3 * i) % 227;
            f32::from_bits(random.bits(3 * i + 1) & 0x807f_ffff | exponent << 23)
        };
        let mut numbers: Vec<f32> = (0..1 << 14).map(number).collect();
        let edges =
            [0x0000_8000, 0x0000_7fff, 0x0001_8000, 0x007f_ffff, 0x0080_8080, 0x007f_7f7f, 0x0000_8080];
        numbers.extend(edges.map(|bits| f32::from_bits(0x3f80_0000 + bits)));
        numbers.extend([0.0, 1.0, -1.0, 3.0e38, 1e-30, -0.0, 255.5, 257.0, 65537.0]);
        assert!(numbers.len().is_multiple_of(16));
        for isa in Isa::present() {
            for (x, parts) in numbers.iter().zip(isa.dispatch(Split(&numbers))) {
                assert!(
                    parts.iter().all(|&part| bf16::from_f32(part).to_f32() == part),
                    "{isa}: {x} {parts:?}"
                );
                let sum = parts.iter().map(|&part| part as f64).sum::<f64>();
                assert!(sum == *x as f64, "{isa}: {x} is not the sum of {parts:?}");
                let least = parts[0].abs() as f64 / 65536.0;
                assert!(parts[2].abs() as f64 <= least, "{isa}: {x} {parts:?}");
            }
        }
    }

    fn at(m: Matrix, i: usize, j: usize) -> f64 {
        m.data[if m.transposed { j * m.rows + i } else { i * m.cols + j }] as f64
    }

    /// The product by its definition, in double precision.
    fn reference(a: Matrix, b: Matrix) -> Vec<f64> {
        let element = |i: usize, j: usize| (0..a.cols).map(|k| at(a, i, k) * at(b, k, j)).sum();
        (0..a.rows * b.cols).map(|i| element(i / b.cols, i % b.cols)).collect()
    }

    /// Whole steps and tiles and not, one stretch of `k` and several, results that are transposed and not.
    const SIZES: [[usize; 3]; 12] = [
        [1, 1, 1],
        [70, 1, 33],
        [0, 4, 4],
        [3, 0, 5],
        [4, 7, 0],
        [1, 300, 70],
        [32, 256, 32],
        [65, 288, 50],
        [31, 700, 45],
        [176, 64, 96],
        [50, 800, 160],
        [530, 40, 300],
    ];

    #[test]
    fn products_match_the_definition_in_every_transposition_on_every_instruction_set() {
        for [m, k, n] in SIZES {
            let (a, b, before, bias) = (normal(1, m * k), normal(2, k * n), normal(4, m * n), normal(3, n));
            for transposed in 0..4 {
                let a = if transposed & 1 == 0 { Matrix::new(&a, m, k) } else { Matrix::new(&a, k, m).t() };
                let b = if transposed & 2 == 0 { Matrix::new(&b, k, n) } else { Matrix::new(&b, n, k).t() };
                let product = reference(a, b);
                for (accumulate, finish) in [(false, false), (false, true), (true, false), (true, true)] {
                    let epilogue = Epilogue {
                        accumulate,
                        bias: finish.then_some(&bias),
                        activation: finish.then_some(Activation::Relu),
                        streamed: !accumulate,
                    };
                    let expected = |i: usize| {
                        let sum = product[i] + if accumulate { before[i] as f64 } else { 0.0 };
                        if finish { (sum + bias[i % n] as f64).max(0.0) } else { sum }
                    };
                    for isa in Isa::present() {
                        let mut c = Aligned::<f32>::zeros(m * n);
                        c.copy_from_slice(&before);
                        gemm_for_gradients(&Cpu { isa, threads: Threads::new(2) }, a, b, &mut c, epilogue);
                        for (i, c) in c.iter().enumerate() {
                            let error = (*c as f64 - expected(i)).abs();
                            let near = 1e-6 * (k as f64 + 8.0);
                            assert!(
                                error < near,
                                "{isa} {m} {k} {n} {accumulate} {finish}: {c} {}",
                                expected(i)
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_error_is_not_greater_than_that_of_a_chain_of_multiply_adds() {
        let [m, k, n] = [64, 1500, 64];
        // The same exponents, and exponents far apart.
        for spread in [0.0, 3.0] {
            let numbers = |seed| {
                let (x, scale) = (normal(seed, m * k), normal(seed + 7, m * k));
                x.iter().zip(scale).map(|(x, scale)| x * (spread * scale).exp2()).collect::<Vec<f32>>()
            };
            let (a, b) = (numbers(1), numbers(2));
            let (a, b) = (Matrix::new(&a, m, k), Matrix::new(&b, n, k).t());
            let expected = reference(a, b);
            let error = |c: &[f32]| {
                c.iter()
                    .zip(&expected)
                    .map(|(&c, expected)| (c as f64 - expected).powi(2))
                    .sum::<f64>()
                    .sqrt()
            };
            for isa in Isa::present() {
                let cpu = Cpu { isa, threads: Threads::new(1) };
                let (mut chain, mut parts) = (vec![0.0; m * n], vec![0.0; m * n]);
                gemm(&cpu, a, b, &mut chain, Epilogue::default());
                gemm_for_gradients(&cpu, a, b, &mut parts, Epilogue::default());
                let (chain, parts) = (error(&chain), error(&parts));
                assert!(parts > 0.0 && parts <= chain, "{isa}, {spread}: {parts:e} and {chain:e}");
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_in_any_company_and_place_on_any_number_of_threads() {
        let [m, k, n] = [700, 300, 150];
        let (a, b) = (normal(1, m * k), normal(2, k * n));
        for isa in Isa::present() {
            let product = |threads, rows: std::ops::Range<usize>| {
                let mut c = vec![f32::NAN; rows.len() * n];
                let a = Matrix::new(&a[rows.start * k..rows.end * k], rows.len(), k);
                let cpu = Cpu { isa, threads: Threads::new(threads) };
                gemm_for_gradients(&cpu, a, Matrix::new(&b, k, n), &mut c, Epilogue::default());
                bits(&c)
            };
            let whole = product(1, 0..m);
            for threads in [2, 3, 7] {
                assert!(product(threads, 0..m) == whole, "{isa}, {threads} threads");
            }
            for rows in [0..1, 5..8, 17..50, 500..564, 699..700] {
                let part = product(2, rows.clone());
                assert!(part == whole[rows.start * n..rows.end * n], "{isa}, rows {rows:?}");
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_not_finite_in_its_row_and_nowhere_else() {
        let (m, k, n) = (40, 32, 64);
        for isa in Isa::present() {
            let cpu = Cpu { isa, threads: Threads::new(1) };
            for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::from_bits(0x7fff_ffff), f32::MAX] {
                let mut a = vec![0.5; m * k];
                (a[3 * k], a[3 * k + 1]) = (odd, odd);
                let (b, mut c) = (vec![2.0; k * n], vec![f32::NAN; m * n]);
                let (a, b) = (Matrix::new(&a, m, k), Matrix::new(&b, k, n));
                gemm_for_gradients(&cpu, a, b, &mut c, Epilogue::default());
                for (row, c) in c.chunks(n).enumerate() {
                    let fits = |c: &f32| if row == 3 { !c.is_finite() } else { *c == 32.0 };
                    assert!(c.iter().all(fits), "{isa}, {odd}, row {row}: {c:?}");
                }
            }
        }
    }
}
