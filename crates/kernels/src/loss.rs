//! Label-smoothed cross-entropy over rows of logits.
//!
//! With `p = softmax(x)`, `C` classes, the target `t` and the smoothing `ε`, as in PyTorch:
//!
//! ```text
//! loss  = -(1-ε)·ln p[t] - ε/C · Σ ln p[c]
//! dx[c] = p[c] - (1-ε)·[c = t] - ε/C
//! ```
//!
//! With `s = Σ e^(x[c] - m)` and `m` the greatest logit, `-ln p[c] = ln s - (x[c] - m)`: a row is walked for
//! `m`, for the two sums, and, where the gradient is wanted, to write it in place of the logits.

use crate::isa::Kernel;
use crate::math::exp;
use crate::pass::{first_lanes, rows_of, rows_per_piece, sum_of};
use crate::scratch::Scratch;
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// `losses[r] = scale · loss` of each row, and with `gradient` the logits are replaced by `scale · dx`:
/// `logits: [rows, classes]`, `targets, losses: [rows]`.
///
/// A row whose target is negative is ignored: its loss and its gradient are zero.
pub fn cross_entropy<T: Real>(
    cpu: &Cpu,
    logits: &mut [T],
    classes: usize,
    targets: &[i32],
    smoothing: f32,
    scale: f32,
    losses: &mut [f32],
    gradient: bool,
) {
    let rows = rows_of("cross_entropy", logits, classes);
    assert!(
        targets.len() == rows && losses.len() == rows,
        "cross_entropy: {} targets and {} losses for {rows} rows",
        targets.len(),
        losses.len()
    );
    for &target in targets {
        assert!(
            (target as i64) < classes as i64,
            "cross_entropy: there is no class {target} among {classes}"
        );
    }
    let block = rows_per_piece(classes);
    let logits = Shared::new(logits);
    cpu.threads.for_pieces(losses, block, |i, losses| {
        let targets = &targets[i * block..][..losses.len()];
        // Safety: the rows of this piece, which no other task has.
        let logits = unsafe { logits.slice(i * block * classes, losses.len() * classes) };
        let mut exponentials = Scratch::take(if gradient { classes } else { 0 });
        cpu.isa.dispatch(CrossEntropy {
            logits,
            classes,
            targets,
            smoothing,
            scale,
            losses,
            exponentials: gradient.then_some(&mut exponentials),
        });
    });
}

struct CrossEntropy<'a, T> {
    logits: &'a mut [T],
    classes: usize,
    targets: &'a [i32],
    smoothing: f32,
    scale: f32,
    losses: &'a mut [f32],
    /// The exponentials of a row, kept from the sum to the gradient, if that is wanted. Stored in place of logits in bf16 they would be
    /// rounded twice, and computing them again takes longer.
    exponentials: Option<&'a mut [f32]>,
}

impl<T: Real> Kernel for CrossEntropy<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let spread = self.smoothing / self.classes as f32;
        let rows = self.logits.chunks_exact_mut(self.classes).zip(self.targets);
        for ((x, &target), loss) in rows.zip(self.losses) {
            let Ok(target) = usize::try_from(target) else {
                *loss = 0.0;
                if self.exponentials.is_some() {
                    x.fill(T::from_f32(0.0));
                }
                continue;
            };
            let greatest = greatest(s, x);
            let above_target = greatest - x[target].to_f32();
            let wide_greatest = s.splat(greatest);
            let [sum, differences] = sum_of(
                s,
                self.classes,
                #[inline(always)]
                |at, n| {
                    let difference = s.sub(load(s, x, at, n), wide_greatest);
                    let e = exp(s, difference);
                    if let Some(exponentials) = &mut self.exponentials {
                        store(s, exponentials, at, n, e);
                    }
                    [e, difference]
                },
            );
            // Without smoothing a logit may be -∞ to rule out a class, and zero times infinity is NaN.
            let others = if spread == 0.0 { 0.0 } else { spread * -differences };
            *loss = self.scale * (sum.ln() + (1.0 - self.smoothing) * above_target + others);
            if let Some(exponentials) = &self.exponentials {
                let (share, spread) = (s.splat(self.scale / sum), s.splat(-self.scale * spread));
                // All lanes are the target's. Its gradient is rounded only once, after the hit was subtracted.
                let e = exp(s, s.splat(-above_target));
                let missed = s.greatest(s.fma(e, share, spread)) - self.scale * (1.0 - self.smoothing);
                for_vectors(
                    s,
                    self.classes,
                    #[inline(always)]
                    |at, n| {
                        let e = load(s, exponentials, at, n);
                        store(s, x, at, n, s.fma(e, share, spread));
                    },
                );
                x[target] = T::from_f32(missed);
            }
        }
    }
}

/// The greatest element of a row, a NaN not counted; -∞ for an empty row.
#[inline(always)]
fn greatest<S: Simd, T: Real>(s: S, x: &[T]) -> f32 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SHAPES, bits, check, cpus, gradient, normal, normals, wide};
    use half::bf16;

    const SCALE: f32 = 0.6;

    fn reference(x: &[f64], target: i32, smoothing: f32) -> f64 {
        if target < 0 {
            return 0.0;
        }
        let smoothing = smoothing as f64;
        let greatest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = greatest + x.iter().map(|x| (x - greatest).exp()).sum::<f64>().ln();
        let mean = x.iter().map(|x| log_sum - x).sum::<f64>() / x.len() as f64;
        SCALE as f64 * ((1.0 - smoothing) * (log_sum - x[target as usize]) + smoothing * mean)
    }

    /// Every fifth row is ignored.
    fn some_targets(rows: usize, classes: usize) -> Vec<i32> {
        (0..rows).map(|r| if r % 5 == 4 { -100 } else { (r * 31 % classes) as i32 }).collect()
    }

    /// The losses, and the logits as the call left them.
    fn run<T: Real>(
        cpu: &Cpu,
        x: &[T],
        targets: &[i32],
        smoothing: f32,
        scale: f32,
        gradient: bool,
    ) -> (Vec<f32>, Vec<T>) {
        let (mut x, mut losses) = (x.to_vec(), vec![f32::NAN; targets.len()]);
        let classes = x.len().checked_div(targets.len()).unwrap_or(3);
        cross_entropy(cpu, &mut x, classes, targets, smoothing, scale, &mut losses, gradient);
        (losses, x)
    }

    #[test]
    fn losses_match_double_precision_and_leave_the_logits_alone() {
        fn test<T: Real>() {
            for (rows, classes) in SHAPES {
                let x: Vec<T> =
                    normal(1, rows * classes).iter().map(|x| T::from_f32(4.0 * x + 1.0)).collect();
                let targets = some_targets(rows, classes);
                for smoothing in [0.0, 0.1] {
                    let rows = x.chunks(classes).zip(&targets);
                    let losses: Vec<f64> = rows.map(|(x, &t)| reference(&wide(x), t, smoothing)).collect();
                    check(&losses, 2e-6, |cpu| {
                        let (losses, after) = run(cpu, &x, &targets, smoothing, SCALE, false);
                        assert_eq!(bits(&after), bits(&x), "{}", cpu.isa);
                        losses
                    });
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        fn test<T: Real>() {
            for (rows, classes) in [(0, 3), (1, 1), (300, 33), (2, 130)] {
                let x: Vec<T> = normal(1, rows * classes).iter().map(|x| T::from_f32(2.0 * x)).collect();
                let targets = some_targets(rows, classes);
                for smoothing in [0.0, 0.1] {
                    let rows = || x.chunks(classes).zip(&targets);
                    let losses: Vec<f64> = rows().map(|(x, &t)| reference(&wide(x), t, smoothing)).collect();
                    let dx: Vec<f64> = rows()
                        .flat_map(|(x, &t)| gradient(&wide(x), |x| reference(x, t, smoothing)))
                        .collect();
                    check(&losses, 1e-6, |cpu| run(cpu, &x, &targets, smoothing, SCALE, true).0);
                    check(&dx, 1e-6, |cpu| run(cpu, &x, &targets, smoothing, SCALE, true).1);
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    /// torch.nn.functional.cross_entropy(torch.tensor([[1., 2., 3.]]), torch.tensor([0]), label_smoothing=…),
    /// and the gradient of the first.
    #[test]
    fn known_values_are_those_of_pytorch() {
        let x = [1.0, 2.0, 3.0];
        check(&[2.407_605_9], 5e-7, |cpu| run(cpu, &x, &[0], 0.0, 1.0, true).0);
        check(&[-0.909_969_43, 0.244_728_47, 0.665_240_96], 5e-7, |cpu| run(cpu, &x, &[0], 0.0, 1.0, true).1);
        check(&[2.307_605_9], 5e-7, |cpu| run(cpu, &x, &[0], 0.1, 1.0, false).0);
    }

    #[test]
    fn a_class_may_be_ruled_out_by_an_infinite_logit() {
        let x = [0.0, f32::NEG_INFINITY, 0.0];
        check(&[2f64.ln()], 1e-6, |cpu| run(cpu, &x, &[0], 0.0, 1.0, true).0);
        check(&[-0.5, 0.0, 0.5], 1e-6, |cpu| run(cpu, &x, &[0], 0.0, 1.0, true).1);
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_a_spoiled_one_does_not_spread() {
        fn test<T: Real>() {
            let (rows, classes) = (300, 33);
            let mut x = normals::<T>(1, rows * classes);
            x[6 * classes + 5] = T::from_f32(f32::NAN);
            let targets = some_targets(rows, classes);
            for cpu in cpus() {
                let (losses, dx) = run(&cpu, &x, &targets, 0.1, SCALE, true);
                for row in [0, 5, 7, 298] {
                    let at = row * classes..(row + 1) * classes;
                    let (loss, alone) = run(&cpu, &x[at.clone()], &targets[row..=row], 0.1, SCALE, true);
                    assert_eq!(bits(&loss), bits(&losses[row..=row]), "{}", cpu.isa);
                    assert_eq!(bits(&alone), bits(&dx[at]), "{}", cpu.isa);
                }
                let spoiled = dx[6 * classes..7 * classes].iter().all(|dx| dx.to_f32().is_nan());
                assert!(losses[6].is_nan() && spoiled, "{}", cpu.isa);
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    #[should_panic(expected = "there is no class 3 among 3")]
    fn a_target_that_is_no_class_is_refused() {
        run(&cpus().next().unwrap(), &[0.0; 3], &[3], 0.0, 1.0, false);
    }
}
