//! Layer normalisation with residual and dropout.
//!
//! For each row `z` of width `d`, with `μ` its mean and `σ² = Σ (z - μ)² / d + ε`:
//!
//! ```text
//! ẑ = (z - μ) / σ,    y = γ·ẑ + β
//! g = γ·dy,           dz = (g - mean(g) - ẑ·mean(g·ẑ)) / σ
//! dγ = Σ dy·ẑ,        dβ = Σ dy          over the rows, in their order
//! ```
//!
//! A row stays in the first cache while it is walked, so the variance is that of the differences from the
//! mean, which loses no digits, and memory is still read once. `μ` and `1/σ` are kept for the way back.
//!
//! Activations are stored as [`Real`]s, parameters, their gradients and statistics as `f32`. Everything is
//! computed from `z` as it is stored, so that the way back sees the same `z`; likewise `dr` from `dz` as it
//! is stored.

use crate::elementwise::{AddDropout, Drop};
use crate::isa::Kernel;
use crate::pass::{COLUMNS, add_rows, assert_same_length, map_vectors, rows_of, rows_per_piece, sum_of};
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Dropout, Real};

/// `y = norm(x)`: `x, y: [rows, d]`, `gamma, beta: [d]`, `stats: [rows, 2]` (`μ` and `1/σ`).
pub fn layer_norm<T: Real>(
    cpu: &Cpu,
    x: &[T],
    gamma: &[f32],
    beta: &[f32],
    eps: f32,
    y: &mut [T],
    stats: &mut [f32],
) {
    normalise(cpu, "layer_norm", x, None, gamma, beta, eps, y, stats);
}

/// `z = x + dropout(r)` and `y = norm(z)` in one pass: `x, r, z, y: [rows, d]`, the rest as in
/// [`layer_norm`].
///
/// The element index of dropout is the flat one.
pub fn residual_layer_norm<T: Real>(
    cpu: &Cpu,
    x: &[T],
    r: &[T],
    dropout: Option<Dropout>,
    gamma: &[f32],
    beta: &[f32],
    eps: f32,
    z: &mut [T],
    y: &mut [T],
    stats: &mut [f32],
) {
    let residual = Residual { r, dropout, z };
    normalise(cpu, "residual_layer_norm", x, Some(residual), gamma, beta, eps, y, stats);
}

/// The gradient of [`layer_norm`], from its input `z`; `dgamma` and `dbeta` are added to with `accumulate`,
/// and else overwritten: `z, dy, dz: [rows, d]`, `stats: [rows, 2]`, `gamma, dgamma, dbeta: [d]`.
///
/// It is that of [`residual_layer_norm`] without dropout too: then `dz` is both `dx` and `dr`.
pub fn layer_norm_backward<T: Real>(
    cpu: &Cpu,
    z: &[T],
    gamma: &[f32],
    stats: &[f32],
    dy: &[T],
    dz: &mut [T],
    dgamma: &mut [f32],
    dbeta: &mut [f32],
    accumulate: bool,
) {
    normalise_backward(cpu, "layer_norm_backward", z, gamma, stats, dy, dz, None);
    sum_backward(cpu, z, stats, dy, dgamma, dbeta, accumulate);
}

/// The gradient of [`residual_layer_norm`] with dropout: `dz`, which is `dx` as well, and `dr = dropout(dz)`;
/// the rest as in [`layer_norm_backward`].
pub fn residual_layer_norm_backward<T: Real>(
    cpu: &Cpu,
    z: &[T],
    dropout: Dropout,
    gamma: &[f32],
    stats: &[f32],
    dy: &[T],
    dz: &mut [T],
    dr: &mut [T],
    dgamma: &mut [f32],
    dbeta: &mut [f32],
    accumulate: bool,
) {
    let dropped = Some(Dropped { dropout, dr });
    normalise_backward(cpu, "residual_layer_norm_backward", z, gamma, stats, dy, dz, dropped);
    sum_backward(cpu, z, stats, dy, dgamma, dbeta, accumulate);
}

/// What is added to the input before it is normalised, and where the sum goes.
struct Residual<'a, T> {
    r: &'a [T],
    dropout: Option<Dropout>,
    z: &'a mut [T],
}

/// Where the gradient of what was dropped from goes.
struct Dropped<'a, T> {
    dropout: Dropout,
    dr: &'a mut [T],
}

fn normalise<T: Real>(
    cpu: &Cpu,
    op: &str,
    x: &[T],
    residual: Option<Residual<T>>,
    gamma: &[f32],
    beta: &[f32],
    eps: f32,
    y: &mut [T],
    stats: &mut [f32],
) {
    let d = gamma.len();
    let rows = rows_of(op, x, d);
    assert_same_length(op, beta, gamma);
    assert_same_length(op, x, y);
    assert_stats(op, stats, rows);
    let residual = residual.map(|Residual { r, dropout, z }| {
        assert_same_length(op, r, y);
        assert_same_length(op, z, y);
        (r, dropout, Shared::new(z))
    });
    let stats = Shared::new(stats);
    let size = rows_per_piece(d) * d;
    cpu.threads.for_pieces(y, size, |i, y| {
        let (start, len) = (i * size, y.len());
        let residual = residual.map(|(r, dropout, z)| {
            // Safety: the same elements as `y` has, which no other task has.
            Residual { r: &r[start..][..len], dropout, z: unsafe { z.slice(start, len) } }
        });
        // Safety: two for each row of this piece.
        let stats = unsafe { stats.slice(2 * start / d, 2 * len / d) };
        cpu.isa.dispatch(Forward { start, x: &x[start..][..len], residual, gamma, beta, eps, y, stats });
    });
}

fn normalise_backward<T: Real>(
    cpu: &Cpu,
    op: &str,
    z: &[T],
    gamma: &[f32],
    stats: &[f32],
    dy: &[T],
    dz: &mut [T],
    dropped: Option<Dropped<T>>,
) {
    let d = gamma.len();
    let rows = rows_of(op, z, d);
    assert_same_length(op, z, dz);
    assert_same_length(op, dy, dz);
    assert_stats(op, stats, rows);
    let dropped = dropped.map(|Dropped { dropout, dr }| {
        assert_same_length(op, dr, dz);
        (dropout, Shared::new(dr))
    });
    let size = rows_per_piece(d) * d;
    cpu.threads.for_pieces(dz, size, |i, dz| {
        let (start, len) = (i * size, dz.len());
        let dropped = dropped.map(|(dropout, dr)| {
            // Safety: the same elements as `dz` has, which no other task has.
            Dropped { dropout, dr: unsafe { dr.slice(start, len) } }
        });
        let stats = &stats[2 * start / d..][..2 * len / d];
        let (z, dy) = (&z[start..][..len], &dy[start..][..len]);
        cpu.isa.dispatch(Backward { start, z, gamma, stats, dy, dz, dropped });
    });
}

/// The gradients of `gamma` and `beta`: down the columns, so that sums are in the order of rows without
/// scratch.
fn sum_backward<T: Real>(
    cpu: &Cpu,
    z: &[T],
    stats: &[f32],
    dy: &[T],
    dgamma: &mut [f32],
    dbeta: &mut [f32],
    accumulate: bool,
) {
    let d = dgamma.len();
    assert!(
        dbeta.len() == d && d * stats.len() == 2 * z.len(),
        "layer_norm_backward: dgamma of {d} and dbeta of {} elements for {} rows in {} elements",
        dbeta.len(),
        stats.len() / 2,
        z.len(),
    );
    let dbeta = Shared::new(dbeta);
    cpu.threads.for_pieces(dgamma, COLUMNS, |i, dgamma| {
        let column = i * COLUMNS;
        // Safety: the same elements as `dgamma` has, which no other task has.
        let dbeta = unsafe { dbeta.slice(column, dgamma.len()) };
        if !accumulate {
            dgamma.fill(0.0);
            dbeta.fill(0.0);
        }
        cpu.isa.dispatch(SumBackward { z, stats, dy, d, column, dgamma, dbeta });
    });
}

fn assert_stats(op: &str, stats: &[f32], rows: usize) {
    assert!(stats.len() == 2 * rows, "{op}: stats of {} elements for {rows} rows", stats.len());
}

struct Forward<'a, T> {
    /// The flat index of the first element.
    start: usize,
    x: &'a [T],
    residual: Option<Residual<'a, T>>,
    gamma: &'a [f32],
    beta: &'a [f32],
    eps: f32,
    y: &'a mut [T],
    stats: &'a mut [f32],
}

impl<T: Real> Kernel for Forward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let d = self.gamma.len();
        for (row, (y, stats)) in self.y.chunks_exact_mut(d).zip(self.stats.chunks_exact_mut(2)).enumerate() {
            let at = row * d..(row + 1) * d;
            let x = &self.x[at.clone()];
            let z = match &mut self.residual {
                Some(Residual { r, dropout, z }) => {
                    let z = &mut z[at.clone()];
                    map_vectors(s, AddDropout(*dropout), self.start + at.start, [x, &r[at]], z);
                    &*z
                }
                None => x,
            };
            let [sum] = sum_of(
                s,
                d,
                #[inline(always)]
                |at, n| [load(s, z, at, n)],
            );
            let mean = sum / d as f32;
            let wide_mean = s.splat(mean);
            let [squares] = sum_of(
                s,
                d,
                #[inline(always)]
                |at, n| {
                    let difference = s.sub(load(s, z, at, n), wide_mean);
                    [s.mul(difference, difference)]
                },
            );
            let inverse = 1.0 / (squares / d as f32 + self.eps).sqrt();
            let wide_inverse = s.splat(inverse);
            for_vectors(
                s,
                d,
                #[inline(always)]
                |at, n| {
                    let unit = s.mul(s.sub(load(s, z, at, n), wide_mean), wide_inverse);
                    store(s, y, at, n, s.fma(unit, load(s, self.gamma, at, n), load(s, self.beta, at, n)));
                },
            );
            (stats[0], stats[1]) = (mean, inverse);
        }
    }
}

struct Backward<'a, T> {
    /// The flat index of the first element.
    start: usize,
    z: &'a [T],
    gamma: &'a [f32],
    stats: &'a [f32],
    dy: &'a [T],
    dz: &'a mut [T],
    dropped: Option<Dropped<'a, T>>,
}

impl<T: Real> Kernel for Backward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let d = self.gamma.len();
        for (row, (dz, stats)) in self.dz.chunks_exact_mut(d).zip(self.stats.chunks_exact(2)).enumerate() {
            let at = row * d..(row + 1) * d;
            let (z, dy) = (&self.z[at.clone()], &self.dy[at.clone()]);
            let (mean, inverse) = (s.splat(stats[0]), s.splat(stats[1]));
            let sums = sum_of(
                s,
                d,
                #[inline(always)]
                |at, n| {
                    let g = s.mul(load(s, self.gamma, at, n), load(s, dy, at, n));
                    let unit = s.mul(s.sub(load(s, z, at, n), mean), inverse);
                    [g, s.mul(g, unit)]
                },
            );
            let [mean_g, mean_g_unit] = [s.splat(sums[0] / d as f32), s.splat(sums[1] / d as f32)];
            for_vectors(
                s,
                d,
                #[inline(always)]
                |at, n| {
                    let g = s.mul(load(s, self.gamma, at, n), load(s, dy, at, n));
                    let unit = s.mul(s.sub(load(s, z, at, n), mean), inverse);
                    let rest = s.sub(s.sub(g, mean_g), s.mul(unit, mean_g_unit));
                    store(s, dz, at, n, s.mul(rest, inverse));
                },
            );
            if let Some(Dropped { dropout, dr }) = &mut self.dropped {
                let start = self.start + at.start;
                map_vectors(s, Drop(*dropout), start, [&*dz], &mut dr[at]);
            }
        }
    }
}

struct SumBackward<'a, T> {
    z: &'a [T],
    stats: &'a [f32],
    dy: &'a [T],
    d: usize,
    column: usize,
    dgamma: &'a mut [f32],
    dbeta: &'a mut [f32],
}

impl<T: Real> Kernel for SumBackward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        add_rows(
            s,
            self.stats.len() / 2,
            [self.dgamma, self.dbeta],
            #[inline(always)]
            |row, at, n| {
                let (mean, inverse) = (self.stats[2 * row], self.stats[2 * row + 1]);
                let at = row * self.d + self.column + at;
                let unit = s.mul(s.sub(load(s, self.z, at, n), s.splat(mean)), s.splat(inverse));
                let dy = load(s, self.dy, at, n);
                [s.mul(dy, unit), dy]
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::add_dropout;
    use crate::testing::{
        SHAPES, a_dropout, bits, check, cpus, dot, gradient, normal, normals, rounding, wide, written,
    };
    use half::bf16;

    const EPS: f32 = 1e-5;

    fn reference(z: &[f64], gamma: &[f64], beta: &[f64]) -> Vec<f64> {
        let d = gamma.len();
        let row = |z: &[f64]| {
            let mean = z.iter().sum::<f64>() / d as f64;
            let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / d as f64;
            let unit = |j: usize| (z[j] - mean) / (variance + EPS as f64).sqrt();
            (0..d).map(|j| gamma[j] * unit(j) + beta[j]).collect::<Vec<f64>>()
        };
        z.chunks(d).flat_map(row).collect()
    }

    fn forward<T: Real>(cpu: &Cpu, x: &[T], gamma: &[f32], beta: &[f32]) -> (Vec<T>, Vec<f32>) {
        let mut stats = vec![f32::NAN; 2 * x.len() / gamma.len()];
        (written(x.len(), |y| layer_norm(cpu, x, gamma, beta, EPS, y, &mut stats)), stats)
    }

    #[test]
    fn rows_match_double_precision() {
        fn test<T: Real>() {
            for (rows, d) in SHAPES {
                let x: Vec<T> = normal(1, rows * d).iter().map(|x| T::from_f32(3.0 * x + 2.0)).collect();
                let (gamma, beta) = (normal(2, d), normal(3, d));
                let expected = reference(&wide(&x), &wide(&gamma), &wide(&beta));
                check(&expected, 5e-6, |cpu| forward(cpu, &x, &gamma, &beta).0);
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn the_residual_form_has_the_bits_of_the_sum_followed_by_the_norm() {
        fn test<T: Real>() {
            for (rows, d) in SHAPES {
                let (x, r) = (normals::<T>(1, rows * d), normals(2, rows * d));
                let (wide_x, wide_r) = (wide(&x), wide(&r));
                let (gamma, beta) = (normal(3, d), normal(4, d));
                for dropout in [None, Some(a_dropout())] {
                    let factor = |i| dropout.map_or(1.0, |dropout| dropout.factor(i as u32) as f64);
                    let z: Vec<f64> = (0..x.len()).map(|i| wide_x[i] + wide_r[i] * factor(i)).collect();
                    check(&z, 5e-6, |cpu| {
                        let (mut y, mut stats) = (x.clone(), vec![f32::NAN; 2 * rows]);
                        let z = written(x.len(), |z| {
                            residual_layer_norm(
                                cpu, &x, &r, dropout, &gamma, &beta, EPS, z, &mut y, &mut stats,
                            );
                        });
                        let sum = written(x.len(), |z| add_dropout(cpu, &x, &r, dropout, z));
                        let (apart, apart_stats) = forward(cpu, &sum, &gamma, &beta);
                        assert_eq!(
                            [bits(&z), bits(&y), bits(&stats)],
                            [bits(&sum), bits(&apart), bits(&apart_stats)],
                            "{}",
                            cpu.isa
                        );
                        z
                    });
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn gradients_match_finite_differences() {
        fn test<T: Real>() {
            for (rows, d) in [(0, 3), (1, 1), (9, 1), (300, 33), (2, 130)] {
                let (z, dy) = (normals::<T>(1, rows * d), normals(2, rows * d));
                let (gamma, beta) = (normal(3, d), normal(4, d));
                let (wide_z, wide_dy, wide_gamma, wide_beta) =
                    (wide(&z), wide(&dy), wide(&gamma), wide(&beta));
                let dz: Vec<f64> = wide_z
                    .chunks(d)
                    .zip(wide_dy.chunks(d))
                    .flat_map(|(z, dy)| gradient(z, |z| dot(&reference(z, &wide_gamma, &wide_beta), dy)))
                    .collect();
                let dr: Vec<f64> =
                    dz.iter().enumerate().map(|(i, dz)| dz * a_dropout().factor(i as u32) as f64).collect();
                let dgamma =
                    gradient(&wide_gamma, |gamma| dot(&reference(&wide_z, gamma, &wide_beta), &wide_dy));
                let dbeta =
                    gradient(&wide_beta, |beta| dot(&reference(&wide_z, &wide_gamma, beta), &wide_dy));
                let once = |cpu: &Cpu| {
                    let (_, stats) = forward(cpu, &z, &gamma, &beta);
                    let (mut dgamma, mut dbeta) = (vec![f32::NAN; d], vec![f32::NAN; d]);
                    let dz = written(z.len(), |dz| {
                        layer_norm_backward(cpu, &z, &gamma, &stats, &dy, dz, &mut dgamma, &mut dbeta, false);
                    });
                    (dz, [dgamma, dbeta].concat())
                };
                check(&dz, 1e-5, |cpu| once(cpu).0);
                check(&[&*dgamma, &dbeta].concat(), 1e-5, |cpu| once(cpu).1);
                let twice = |cpu: &Cpu| {
                    let (_, stats) = forward(cpu, &z, &gamma, &beta);
                    let (mut dz, mut dr) = (z.clone(), z.clone());
                    let (mut dgamma, mut dbeta) = (vec![f32::NAN; d], vec![f32::NAN; d]);
                    for accumulate in [false, true] {
                        residual_layer_norm_backward(
                            cpu,
                            &z,
                            a_dropout(),
                            &gamma,
                            &stats,
                            &dy,
                            &mut dz,
                            &mut dr,
                            &mut dgamma,
                            &mut dbeta,
                            accumulate,
                        );
                    }
                    (dz, dr, [dgamma, dbeta].concat())
                };
                let doubled: Vec<f64> = dgamma.iter().chain(&dbeta).map(|x| 2.0 * x).collect();
                check(&dz, 1e-5, |cpu| twice(cpu).0);
                // Rounded once as `dz` and once as itself.
                check(&dr, 1e-5 + rounding::<T>(), |cpu| twice(cpu).1);
                check(&doubled, 3e-5, |cpu| twice(cpu).2);
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    /// torch.nn.functional.layer_norm(torch.tensor([1., 2., 3., 4.]), [4]).
    #[test]
    fn known_values_are_those_of_pytorch() {
        let expected = [-1.341_635_4, -0.447_211_8, 0.447_211_8, 1.341_635_4];
        check(&expected, 1e-6, |cpu| forward(cpu, &[1.0, 2.0, 3.0, 4.0], &[1.0; 4], &[0.0; 4]).0);
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_a_spoiled_one_does_not_spread() {
        fn test<T: Real>() {
            let (rows, d) = (300, 33);
            let (mut x, gamma, beta) = (normals::<T>(1, rows * d), normal(2, d), normal(3, d));
            x[7 * d + 5] = T::from_f32(f32::NAN);
            for cpu in cpus() {
                let (y, stats) = forward(&cpu, &x, &gamma, &beta);
                for row in [0, 6, 8, 299] {
                    let at = row * d..(row + 1) * d;
                    let (alone, alone_stats) = forward(&cpu, &x[at.clone()], &gamma, &beta);
                    assert_eq!(bits(&alone), bits(&y[at]), "{}", cpu.isa);
                    assert_eq!(bits(&alone_stats), bits(&stats[2 * row..][..2]), "{}", cpu.isa);
                }
                assert!(y[7 * d..8 * d].iter().all(|y| y.to_f32().is_nan()), "{}", cpu.isa);
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn a_large_mean_does_not_drown_the_variance() {
        let x: Vec<f32> = normal(1, 512).iter().map(|x| 4096.0 + (x * 64.0).round() / 64.0).collect();
        let (gamma, beta) = (vec![1.0; 512], vec![0.0; 512]);
        let expected = reference(&wide(&x), &wide(&gamma), &wide(&beta));
        check(&expected, 1e-3, |cpu| forward(cpu, &x, &gamma, &beta).0);
    }

    #[test]
    #[should_panic(expected = "layer_norm: stats of 3 elements for 2 rows")]
    fn statistics_of_the_wrong_length_are_refused() {
        let cpu = cpus().next().unwrap();
        layer_norm(&cpu, &[0.0; 4], &[1.0; 2], &[0.0; 2], EPS, &mut [0.0; 4], &mut [0.0; 3]);
    }
}
