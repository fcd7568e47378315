//! Norms against double precision, their gradients against finite differences, and the promises about bits.

use super::*;
use crate::elementwise::add_dropout;
use crate::testing::{
    SHAPES, a_dropout, bits, check, cpus, dot, gradient, normal, normals, rounding, wide, written,
};
use half::bf16;

const EPS: f32 = 1e-5;

/// Layer norm with `β`, and RMS norm without.
const KINDS: [NormKind; 2] = [NormKind::Layer, NormKind::Rms];

fn weights<'a>(kind: NormKind, gamma: &'a [f32], beta: &'a [f32]) -> Weights<'a> {
    Weights { kind, gamma, beta: (kind == NormKind::Layer).then_some(beta), epsilon: EPS }
}

fn reference(kind: NormKind, z: &[f64], gamma: &[f64], beta: &[f64]) -> Vec<f64> {
    let d = gamma.len();
    let zeros = vec![0.0; d];
    let beta = if kind == NormKind::Layer { beta } else { &zeros };
    let row = |z: &[f64]| {
        let mean = if kind == NormKind::Layer { z.iter().sum::<f64>() / d as f64 } else { 0.0 };
        let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / d as f64;
        let unit = |j: usize| (z[j] - mean) / (variance + EPS as f64).sqrt();
        (0..d).map(|j| gamma[j] * unit(j) + beta[j]).collect::<Vec<f64>>()
    };
    z.chunks(d).flat_map(row).collect()
}

fn forward<T: Real>(cpu: &Cpu, weights: Weights, x: &[T]) -> (Vec<T>, Vec<f32>) {
    let mut stats = vec![f32::NAN; 2 * x.len() / weights.gamma.len()];
    (written(x.len(), |y| norm(cpu, weights, x, None, y, &mut stats)), stats)
}

#[test]
fn rows_match_double_precision() {
    fn test<T: Real>() {
        for (rows, d) in SHAPES {
            let x: Vec<T> = normal(1, rows * d).iter().map(|x| T::from_f32(3.0 * x + 2.0)).collect();
            let (gamma, beta) = (normal(2, d), normal(3, d));
            for kind in KINDS {
                let expected = reference(kind, &wide(&x), &wide(&gamma), &wide(&beta));
                check(&expected, 5e-6, |cpu| forward(cpu, weights(kind, &gamma, &beta), &x).0);
            }
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
            for (kind, dropout) in
                KINDS.into_iter().flat_map(|kind| [(kind, None), (kind, Some(a_dropout()))])
            {
                let weights = weights(kind, &gamma, &beta);
                let factor = |i| dropout.map_or(1.0, |dropout| dropout.factor(i as u32) as f64);
                let z: Vec<f64> = (0..x.len()).map(|i| wide_x[i] + wide_r[i] * factor(i)).collect();
                check(&z, 5e-6, |cpu| {
                    let (mut y, mut stats) = (x.clone(), vec![f32::NAN; 2 * rows]);
                    let z = written(x.len(), |z| {
                        let residual = Some(Residual { r: &r, dropout, z });
                        norm(cpu, weights, &x, residual, &mut y, &mut stats);
                    });
                    let sum = written(x.len(), |z| add_dropout(cpu, &x, &r, dropout, z));
                    let (apart, apart_stats) = forward(cpu, weights, &sum);
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
    fn test<T: Real>(kind: NormKind) {
        for (rows, d) in [(0, 3), (1, 1), (9, 1), (300, 33), (2, 130)] {
            let (z, dy) = (normals::<T>(1, rows * d), normals(2, rows * d));
            let (gamma, beta) = (normal(3, d), normal(4, d));
            let (wide_z, wide_dy, wide_gamma, wide_beta) = (wide(&z), wide(&dy), wide(&gamma), wide(&beta));
            let dz: Vec<f64> = wide_z
                .chunks(d)
                .zip(wide_dy.chunks(d))
                .flat_map(|(z, dy)| gradient(z, |z| dot(&reference(kind, z, &wide_gamma, &wide_beta), dy)))
                .collect();
            let dr: Vec<f64> =
                dz.iter().enumerate().map(|(i, dz)| dz * a_dropout().factor(i as u32) as f64).collect();
            let dgamma =
                gradient(&wide_gamma, |gamma| dot(&reference(kind, &wide_z, gamma, &wide_beta), &wide_dy));
            let dbeta =
                gradient(&wide_beta, |beta| dot(&reference(kind, &wide_z, &wide_gamma, beta), &wide_dy));
            let dbeta = if kind == NormKind::Layer { dbeta } else { Vec::new() };
            let once = |cpu: &Cpu| {
                let (_, stats) = forward(cpu, weights(kind, &gamma, &beta), &z);
                let (mut dgamma, mut dbeta) = learned(kind, d);
                let dz = written(z.len(), |dz| {
                    let into = (&mut *dgamma, dbeta.as_deref_mut());
                    norm_backward(cpu, (kind, &gamma), &z, &stats, &dy, dz, None, into, false);
                });
                (dz, [dgamma, dbeta.unwrap_or_default()].concat())
            };
            check(&dz, 1e-5, |cpu| once(cpu).0);
            check(&[&*dgamma, &dbeta].concat(), 1e-5, |cpu| once(cpu).1);
            let twice = |cpu: &Cpu| {
                let (_, stats) = forward(cpu, weights(kind, &gamma, &beta), &z);
                let (mut dz, mut dr) = (z.clone(), z.clone());
                let (mut dgamma, mut dbeta) = learned(kind, d);
                for accumulate in [false, true] {
                    let dropped = Some(Dropped { dropout: a_dropout(), dr: &mut dr });
                    let into = (&mut *dgamma, dbeta.as_deref_mut());
                    let of = (kind, &*gamma);
                    norm_backward(cpu, of, &z, &stats, &dy, &mut dz, dropped, into, accumulate);
                }
                (dz, dr, [dgamma, dbeta.unwrap_or_default()].concat())
            };
            let doubled: Vec<f64> = dgamma.iter().chain(&dbeta).map(|x| 2.0 * x).collect();
            check(&dz, 1e-5, |cpu| twice(cpu).0);
            // Rounded once as `dz` and once as itself.
            check(&dr, 1e-5 + rounding::<T>(), |cpu| twice(cpu).1);
            check(&doubled, 3e-5, |cpu| twice(cpu).2);
        }
    }
    for kind in KINDS {
        test::<f32>(kind);
        test::<bf16>(kind);
    }
}

/// Memory for the gradients of `γ` and of `β`, if there is one.
fn learned(kind: NormKind, d: usize) -> (Vec<f32>, Option<Vec<f32>>) {
    (vec![f32::NAN; d], (kind == NormKind::Layer).then(|| vec![f32::NAN; d]))
}

/// torch.nn.functional.layer_norm(torch.tensor([1., 2., 3., 4.]), [4]).
#[test]
fn known_values_are_those_of_pytorch() {
    let expected = [-1.341_635_4, -0.447_211_8, 0.447_211_8, 1.341_635_4];
    let norm = weights(NormKind::Layer, &[1.0; 4], &[0.0; 4]);
    check(&expected, 1e-6, |cpu| forward(cpu, norm, &[1.0, 2.0, 3.0, 4.0]).0);
}

/// torch.nn.functional.rms_norm(torch.tensor([1., 2., 3., 4.]), [4], torch.tensor([1., 2., 3., 4.]), 1e-5).
#[test]
fn known_values_of_rms_norm_are_those_of_pytorch() {
    let expected = [0.365_148_13, 1.460_592_5, 3.286_333_2, 5.842_370_1];
    let norm = weights(NormKind::Rms, &[1.0, 2.0, 3.0, 4.0], &[]);
    check(&expected, 1e-6, |cpu| forward(cpu, norm, &[1.0, 2.0, 3.0, 4.0]).0);
}

#[test]
fn a_row_has_the_same_bits_alone_and_a_spoiled_one_does_not_spread() {
    fn test<T: Real>() {
        let (rows, d) = (300, 33);
        let (mut x, gamma, beta) = (normals::<T>(1, rows * d), normal(2, d), normal(3, d));
        x[7 * d + 5] = T::from_f32(f32::NAN);
        for cpu in cpus() {
            let weights = weights(NormKind::Layer, &gamma, &beta);
            let (y, stats) = forward(&cpu, weights, &x);
            for row in [0, 6, 8, 299] {
                let at = row * d..(row + 1) * d;
                let (alone, alone_stats) = forward(&cpu, weights, &x[at.clone()]);
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
    let expected = reference(NormKind::Layer, &wide(&x), &wide(&gamma), &wide(&beta));
    check(&expected, 1e-3, |cpu| forward(cpu, weights(NormKind::Layer, &gamma, &beta), &x).0);
}

#[test]
#[should_panic(expected = "norm: stats of 3 elements for 2 rows")]
fn statistics_of_the_wrong_length_are_refused() {
    let cpu = cpus().next().unwrap();
    let weights = weights(NormKind::Layer, &[1.0; 2], &[0.0; 2]);
    norm(&cpu, weights, &[0.0; 4], None, &mut [0.0; 4], &mut [0.0; 3]);
}
