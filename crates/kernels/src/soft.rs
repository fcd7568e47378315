//! Softmax, and the cross-entropy against classes that are right in part, over rows of logits: a student learns the probabilities that a
//! teacher gives (Hinton et al. 2015).
//!
//! With `p = softmax(f·x)`, the factor `f` of the logits (one over a temperature) and targets `t`, whose sum in a row is `w`:
//!
//! ```text
//! loss  = -Σ t[c] · ln p[c] = Σ t[c] · (ln s - (f·x[c] - m)),    s = Σ e^(f·x[c] - m),  m = max f·x[c]
//! dx[c] = f · (w · p[c] - t[c])
//! ```
//!
//! A row is walked for `m`, for the sums, and, where the gradient is wanted, to write it in place of the logits.

use crate::isa::Kernel;
use crate::math::exp;
use crate::pass::{assert_same_length, first_lanes, rows_of, rows_per_piece, sum_of};
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// `y = softmax(factor · (x - shift))`, row by row: `x, y: [rows, classes]`, `shift: [classes]`.
pub fn softmax<T: Real>(cpu: &Cpu, x: &[T], shift: &[f32], factor: f32, y: &mut [f32]) {
    let classes = shift.len();
    rows_of("softmax", x, classes);
    assert_same_length("softmax", x, y);
    let piece = rows_per_piece(classes) * classes;
    cpu.threads.for_pieces(y, piece, |i, y| {
        cpu.isa.dispatch(Softmax { x: &x[i * piece..][..y.len()], shift, factor, y });
    });
}

/// `losses[r] = scale · loss` of each row, and with `gradient` the logits are replaced by `scale · dx`:
/// `logits, targets: [rows, classes]`, `losses: [rows]`.
pub fn soft_cross_entropy<T: Real>(
    cpu: &Cpu,
    logits: &mut [T],
    targets: &[f32],
    factor: f32,
    scale: f32,
    losses: &mut [f32],
    gradient: bool,
) {
    assert_same_length("soft_cross_entropy", targets, logits);
    let classes = logits.len() / losses.len().max(1);
    assert!(
        logits.len() == classes * losses.len() && (classes > 0 || logits.is_empty()),
        "soft_cross_entropy: {} logits for {} losses",
        logits.len(),
        losses.len()
    );
    let block = rows_per_piece(classes.max(1));
    let logits = Shared::new(logits);
    cpu.threads.for_pieces(losses, block, |i, losses| {
        let here = i * block * classes..(i * block + losses.len()) * classes;
        // Safety: the rows of this piece, which no other task has.
        let logits = unsafe { logits.slice(here.start, here.len()) };
        cpu.isa.dispatch(SoftCrossEntropy {
            logits,
            targets: &targets[here],
            classes,
            factor,
            scale,
            losses,
            gradient,
        });
    });
}

struct Softmax<'a, T> {
    x: &'a [T],
    shift: &'a [f32],
    factor: f32,
    y: &'a mut [f32],
}

impl<T: Real> Kernel for Softmax<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (classes, factor) = (self.shift.len(), s.splat(self.factor));
        for (x, y) in self.x.chunks_exact(classes).zip(self.y.chunks_exact_mut(classes)) {
            let mut most = s.splat(f32::NEG_INFINITY);
            for_vectors(
                s,
                classes,
                #[inline(always)]
                |at, n| {
                    let logit = s.mul(s.sub(load(s, x, at, n), load(s, self.shift, at, n)), factor);
                    store(s, y, at, n, logit);
                    most = s.max(first_lanes(s, n, logit, f32::NEG_INFINITY), most);
                },
            );
            let most = s.splat(s.greatest(most));
            let [sum] = sum_of(
                s,
                classes,
                #[inline(always)]
                |at, n| {
                    let e = exp(s, s.sub(load(s, y, at, n), most));
                    store(s, y, at, n, e);
                    [e]
                },
            );
            let share = s.splat(1.0 / sum);
            for_vectors(
                s,
                classes,
                #[inline(always)]
                |at, n| {
                    let e = load(s, y, at, n);
                    store(s, y, at, n, s.mul(e, share));
                },
            );
        }
    }
}

struct SoftCrossEntropy<'a, T> {
    logits: &'a mut [T],
    targets: &'a [f32],
    classes: usize,
    factor: f32,
    scale: f32,
    losses: &'a mut [f32],
    gradient: bool,
}

impl<T: Real> Kernel for SoftCrossEntropy<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let SoftCrossEntropy { classes, scale, .. } = self;
        let factor = s.splat(self.factor);
        let rows = self.logits.chunks_exact_mut(classes).zip(self.targets.chunks_exact(classes));
        for ((x, t), loss) in rows.zip(self.losses) {
            let mut most = s.splat(f32::NEG_INFINITY);
            for_vectors(
                s,
                classes,
                #[inline(always)]
                |at, n| {
                    let logit = s.mul(load(s, x, at, n), factor);
                    most = s.max(first_lanes(s, n, logit, f32::NEG_INFINITY), most);
                },
            );
            let most = s.splat(s.greatest(most));
            let [sum, weight, dot] = sum_of(
                s,
                classes,
                #[inline(always)]
                |at, n| {
                    let (difference, t) = (s.sub(s.mul(load(s, x, at, n), factor), most), load(s, t, at, n));
                    [exp(s, difference), t, s.mul(t, difference)]
                },
            );
            *loss = scale * (weight * sum.ln() - dot);
            if self.gradient {
                let (share, minus) =
                    (s.splat(self.factor * scale * weight / sum), s.splat(-self.factor * scale));
                for_vectors(
                    s,
                    classes,
                    #[inline(always)]
                    |at, n| {
                        let e = exp(s, s.sub(s.mul(load(s, x, at, n), factor), most));
                        let d = s.fma(e, share, s.mul(load(s, t, at, n), minus));
                        store(s, x, at, n, d);
                    },
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SHAPES, bits, check, cpus, gradient, normal, normals, wide, written};
    use half::bf16;

    const FACTOR: f32 = 2.5;
    const SCALE: f32 = 0.6;

    fn reference_softmax(x: &[f64]) -> Vec<f64> {
        let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|x| (x - most).exp()).sum();
        x.iter().map(|x| (x - most).exp() / sum).collect()
    }

    fn reference_loss(x: &[f64], t: &[f64]) -> f64 {
        let scaled: Vec<f64> = x.iter().map(|x| FACTOR as f64 * x).collect();
        let most = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = most + scaled.iter().map(|x| (x - most).exp()).sum::<f64>().ln();
        SCALE as f64 * scaled.iter().zip(t).map(|(x, t)| t * (log_sum - x)).sum::<f64>()
    }

    /// Targets whose sum is not one in most rows.
    fn targets(rows: usize, classes: usize) -> Vec<f32> {
        normal(3, rows * classes).iter().map(|x| x.abs() / classes as f32).collect()
    }

    fn run<T: Real>(cpu: &Cpu, x: &[T], t: &[f32], rows: usize, gradient: bool) -> (Vec<f32>, Vec<T>) {
        let (mut x, mut losses) = (x.to_vec(), vec![f32::NAN; rows]);
        soft_cross_entropy(cpu, &mut x, t, FACTOR, SCALE, &mut losses, gradient);
        (losses, x)
    }

    #[test]
    fn probabilities_match_double_precision() {
        fn test<T: Real>() {
            for (rows, classes) in SHAPES {
                let (x, shift) = (normals::<T>(1, rows * classes), normal(2, classes));
                let expected: Vec<f64> = wide(&x)
                    .chunks(classes)
                    .flat_map(|row| {
                        let moved = row.iter().zip(&shift).map(|(x, c)| FACTOR as f64 * (x - *c as f64));
                        reference_softmax(&moved.collect::<Vec<_>>())
                    })
                    .collect();
                check(&expected, 2e-6, |cpu| written(x.len(), |y| softmax(cpu, &x, &shift, FACTOR, y)));
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn losses_match_double_precision_and_leave_the_logits_alone() {
        fn test<T: Real>() {
            for (rows, classes) in SHAPES {
                let (x, t) = (normals::<T>(1, rows * classes), targets(rows, classes));
                let rows_of = wide(&x);
                let losses: Vec<f64> = rows_of
                    .chunks(classes)
                    .zip(wide(&t).chunks(classes))
                    .map(|(x, t)| reference_loss(x, t))
                    .collect();
                check(&losses, 5e-6, |cpu| {
                    let (losses, after) = run(cpu, &x, &t, rows, false);
                    assert_eq!(bits(&after), bits(&x), "{}", cpu.isa);
                    losses
                });
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        fn test<T: Real>() {
            for (rows, classes) in [(0, 3), (1, 1), (300, 33), (2, 130)] {
                let (x, t) = (normals::<T>(1, rows * classes), targets(rows, classes));
                let (wide_x, wide_t) = (wide(&x), wide(&t));
                let dx: Vec<f64> = wide_x
                    .chunks(classes)
                    .zip(wide_t.chunks(classes))
                    .flat_map(|(x, t)| gradient(x, |x| reference_loss(x, t)))
                    .collect();
                check(&dx, 2e-6, |cpu| run(cpu, &x, &t, rows, true).1);
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn a_target_of_one_class_is_the_usual_cross_entropy() {
        // As in `loss`: torch.nn.functional.cross_entropy(torch.tensor([[1., 2., 3.]]), torch.tensor([0])).
        for cpu in cpus() {
            let (mut x, mut loss) = ([1.0f32, 2.0, 3.0], [0.0]);
            soft_cross_entropy(&cpu, &mut x, &[1.0, 0.0, 0.0], 1.0, 1.0, &mut loss, true);
            let near = |found: f32, expected: f32| (found - expected).abs() < 1e-6;
            assert!(near(loss[0], 2.407_606) && near(x[0], -0.909_969_43) && near(x[2], 0.665_240_96));
        }
    }

    #[test]
    fn a_row_has_the_same_bits_alone() {
        let (rows, classes) = (300, 33);
        let (x, t, shift) = (normals::<f32>(1, rows * classes), targets(rows, classes), normal(2, classes));
        for cpu in cpus() {
            let (losses, dx) = run(&cpu, &x, &t, rows, true);
            let y = written(x.len(), |y| softmax(&cpu, &x, &shift, FACTOR, y));
            for row in [0, 7, 299] {
                let at = row * classes..(row + 1) * classes;
                let (loss, alone) = run(&cpu, &x[at.clone()], &t[at.clone()], 1, true);
                assert_eq!((bits(&loss), bits(&alone)), (bits(&losses[row..=row]), bits(&dx[at.clone()])));
                let alone = written(classes, |y| softmax(&cpu, &x[at.clone()], &shift, FACTOR, y));
                assert_eq!(bits(&alone), bits(&y[at]));
            }
        }
    }
}
