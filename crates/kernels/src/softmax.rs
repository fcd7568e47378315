//! Softmax over rows.
//!
//! `y[j] = e^(x[j] - m) / Σ e^(x[k] - m)` with `m` the greatest of the row, and `dx = y · (dy - Σ y·dy)`. A
//! row that is -∞ throughout has nothing to choose from and gives zeros.

use crate::isa::Kernel;
use crate::math::exp;
use crate::pass::{assert_same_length, first_lanes, rows_of, rows_per_piece, sum_of};
use crate::simd::{Simd, for_vectors, load, store};
use crate::{Cpu, Real};

/// The softmax of each row: `x, y: [rows, cols]`.
pub fn softmax<T: Real>(cpu: &Cpu, x: &[T], cols: usize, y: &mut [T]) {
    rows_of("softmax", x, cols);
    assert_same_length("softmax", x, y);
    let size = rows_per_piece(cols) * cols;
    cpu.threads.for_pieces(y, size, |i, y| {
        cpu.isa.dispatch(Softmax { x: &x[i * size..][..y.len()], cols, y });
    });
}

/// Its gradient, from its output: `y, dy, dx: [rows, cols]`.
pub fn softmax_backward<T: Real>(cpu: &Cpu, y: &[T], dy: &[T], cols: usize, dx: &mut [T]) {
    rows_of("softmax_backward", y, cols);
    assert_same_length("softmax_backward", y, dx);
    assert_same_length("softmax_backward", dy, dx);
    let size = rows_per_piece(cols) * cols;
    cpu.threads.for_pieces(dx, size, |i, dx| {
        let rows = i * size..i * size + dx.len();
        cpu.isa.dispatch(SoftmaxBackward { y: &y[rows.clone()], dy: &dy[rows], cols, dx });
    });
}

/// The greatest element of a row, a NaN not counted; -∞ for an empty row.
#[inline(always)]
pub(crate) fn greatest<S: Simd, T: Real>(s: S, x: &[T]) -> f32 {
    let mut greatest = s.splat(f32::NEG_INFINITY);
    for_vectors(
        s,
        x.len(),
        #[inline(always)]
        |at, n| {
            greatest = s.max(first_lanes(s, n, load(s, x, at, n), f32::NEG_INFINITY), greatest);
        },
    );
    s.greatest(greatest)
}

struct Softmax<'a, T> {
    x: &'a [T],
    cols: usize,
    y: &'a mut [T],
}

impl<T: Real> Kernel for Softmax<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (x, y) in self.x.chunks_exact(self.cols).zip(self.y.chunks_exact_mut(self.cols)) {
            // Without anything above -∞, differences would be NaN; a NaN itself still gets into the sum.
            let greatest = greatest(s, x);
            let shift = s.splat(if greatest == f32::NEG_INFINITY { 0.0 } else { greatest });
            let [sum] = sum_of(
                s,
                x.len(),
                #[inline(always)]
                |at, n| {
                    let e = exp(s, s.sub(load(s, x, at, n), shift));
                    if T::EXACT {
                        store(s, y, at, n, e);
                    }
                    [e]
                },
            );
            let share = s.splat(if sum == 0.0 { 0.0 } else { 1.0 / sum });
            for_vectors(
                s,
                y.len(),
                #[inline(always)]
                |at, n| {
                    // Rounded on the way to the result they would be rounded twice, and there is no room for them elsewhere.
                    let e =
                        if T::EXACT { load(s, y, at, n) } else { exp(s, s.sub(load(s, x, at, n), shift)) };
                    store(s, y, at, n, s.mul(e, share));
                },
            );
        }
    }
}

struct SoftmaxBackward<'a, T> {
    y: &'a [T],
    dy: &'a [T],
    cols: usize,
    dx: &'a mut [T],
}

impl<T: Real> Kernel for SoftmaxBackward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = self.y.chunks_exact(self.cols).zip(self.dy.chunks_exact(self.cols));
        for ((y, dy), dx) in rows.zip(self.dx.chunks_exact_mut(self.cols)) {
            let [sum] = sum_of(
                s,
                y.len(),
                #[inline(always)]
                |at, n| [s.mul(load(s, y, at, n), load(s, dy, at, n))],
            );
            let sum = s.splat(sum);
            for_vectors(
                s,
                dx.len(),
                #[inline(always)]
                |at, n| {
                    store(s, dx, at, n, s.mul(load(s, y, at, n), s.sub(load(s, dy, at, n), sum)));
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        SHAPES, bits, check, cpus, dot, gradient, normal, normals, rounding, stored, wide, written,
    };
    use half::bf16;

    fn reference(x: &[f64]) -> Vec<f64> {
        let greatest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let e: Vec<f64> = x.iter().map(|x| (x - greatest).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.iter().map(|e| e / sum).collect()
    }

    #[test]
    fn rows_match_double_precision() {
        fn test<T: Real>() {
            for (rows, cols) in SHAPES {
                let x: Vec<T> = normal(1, rows * cols).iter().map(|x| T::from_f32(5.0 * x)).collect();
                let expected: Vec<f64> = x.chunks(cols).flat_map(|x| reference(&wide(x))).collect();
                check(&expected, 1e-6, |cpu| written(x.len(), |y| softmax(cpu, &x, cols, y)));
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        fn test<T: Real>() {
            for (rows, cols) in [(0, 3), (1, 1), (300, 33), (2, 130)] {
                let (x, dy) = (normals::<T>(1, rows * cols), normals(2, rows * cols));
                let rows = x.chunks(cols).zip(dy.chunks(cols));
                let expected: Vec<f64> =
                    rows.flat_map(|(x, dy)| gradient(&wide(x), |x| dot(&reference(x), &wide(dy)))).collect();
                // The gradient is that of the output as it is stored.
                check(&expected, 1e-6 + rounding::<T>(), |cpu| {
                    let y = written(x.len(), |y| softmax(cpu, &x, cols, y));
                    written(x.len(), |dx| softmax_backward(cpu, &y, &dy, cols, dx))
                });
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    /// torch.softmax(torch.tensor([1., 2., 3.]), 0).
    #[test]
    fn known_values_are_those_of_pytorch() {
        let expected = [0.090_030_57, 0.244_728_47, 0.665_240_96];
        check(&expected, 2e-7, |cpu| written(3, |y| softmax(cpu, &[1.0, 2.0, 3.0], 3, y)));
        check(&expected, 2e-7, |cpu| written(3, |y| softmax(cpu, &[1001.0, 1002.0, 1003.0], 3, y)));
    }

    #[test]
    fn what_is_masked_out_gets_nothing_and_nothing_to_choose_from_gives_zeros() {
        const OUT: f32 = f32::NEG_INFINITY;
        for cpu in cpus() {
            assert_eq!(written(3, |y| softmax(&cpu, &[OUT, 0.0, 0.0], 3, y)), [0.0, 0.5, 0.5]);
            assert_eq!(written(19, |y| softmax(&cpu, &[OUT; 19], 19, y)), [0.0; 19]);
        }
    }

    #[test]
    fn what_is_not_a_number_spoils_its_row_and_no_other() {
        fn test<T: Real>() {
            for cpu in cpus() {
                for fill in [1.0, f32::NEG_INFINITY, f32::NAN] {
                    let mut x = [fill; 57];
                    x[..19].fill(1.0);
                    x[20] = f32::NAN;
                    x[38..].fill(2.0);
                    let y = wide(&written(57, |y| softmax(&cpu, &stored::<T>(&x), 19, y)));
                    assert!(y[19..38].iter().all(|y| y.is_nan()), "{}: {y:?}", cpu.isa);
                    let near = |y: &f64| (y * 19.0 - 1.0).abs() < 1e-5 + rounding::<T>();
                    assert!(y[..19].iter().chain(&y[38..]).all(near), "{}: {y:?}", cpu.isa);
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn a_row_has_the_same_bits_alone() {
        fn test<T: Real>() {
            let (rows, cols) = (300, 33);
            let x = normals::<T>(1, rows * cols);
            for cpu in cpus() {
                let y = written(x.len(), |y| softmax(&cpu, &x, cols, y));
                for row in [0, 1, 250, 299] {
                    let row = row * cols..(row + 1) * cols;
                    let alone = written(cols, |y| softmax(&cpu, &x[row.clone()], cols, y));
                    assert_eq!(bits(&alone), bits(&y[row]), "{}", cpu.isa);
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }
}
