//! Adam and AdamW, and the norm that clipping needs.
//!
//! ```text
//! m = β₁·m + (1-β₁)·g,    v = β₂·v + (1-β₂)·g²
//! p = p - rate·decay·p - rate · (m / (1-β₁ᵗ)) / (√(v / (1-β₂ᵗ)) + ε)
//! ```

use crate::Cpu;
use crate::aligned::ALIGNMENT;
use crate::gemm::{BothWays, Matrix, PackingTargets};
use crate::isa::Kernel;
use crate::pass::{Map, PIECE, assert_same_length, reduce};
use crate::scratch::Scratch;
use crate::simd::{Real, Simd, for_vectors, load, prefetch, store};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// Elements of a task that does not pack, if there are enough for all threads. The processor prefetches memory that is read in order,
/// and starts again with each piece: so pieces are large.
const LARGE_PIECE: usize = 8 * PIECE;
/// How many elements ahead to prefetch. A step waits mostly for what it reads from memory, and the processor alone does not prefetch
/// far enough.
const PREFETCH_DISTANCE: usize = 512;

/// Numbers of bf16 in a cache line.
const LINE: usize = ALIGNMENT / size_of::<bf16>();

/// The settings of a step of Adam.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// The learning rate.
    pub rate: f32,
    /// How much of the mean of gradients stays from one step to the next.
    pub beta1: f32,
    /// How much of the mean of squared gradients stays.
    pub beta2: f32,
    /// What keeps the division from zero.
    pub epsilon: f32,
    /// The share of a parameter that is taken away in each step, times the rate: AdamW's, which does not pass
    /// through the means. Zero is plain Adam.
    pub weight_decay: f32,
}

/// One step, the `step`-th from 1 on, with the gradient `factor · g`: `p, g, m, v` of one length.
///
/// The factor is for averaging and clipping, so that neither needs a pass of its own. If `p` are weights that are also packed, `packed`
/// is updated with them.
pub fn adam<G: Real>(
    cpu: &Cpu,
    hyper: &Adam,
    step: u32,
    factor: f32,
    p: &mut [f32],
    g: &[G],
    m: &mut [f32],
    v: &mut [f32],
    packed: Option<&mut BothWays>,
) {
    assert!(step > 0, "adam: steps are counted from 1");
    assert_same_length("adam", g, p);
    assert_same_length("adam", m, p);
    assert_same_length("adam", v, p);
    let coefficients = Coefficients::new(hyper, step, factor);
    let (p, m, v) = (Shared::new(p), Shared::new(m), Shared::new(v));
    let part = |range: Range<usize>| {
        let (start, len) = (range.start, range.len());
        // Safety: a piece, or a group of rows, belongs to one task.
        let (p, m, v) = unsafe { (p.slice(start, len), m.slice(start, len), v.slice(start, len)) };
        Step { coefficients, p, g: &g[range], m, v }
    };
    match packed {
        None => {
            let piece =
                p.len().div_ceil(4 * cpu.threads.count()).next_multiple_of(PIECE).clamp(PIECE, LARGE_PIECE);
            cpu.threads.run(p.len().div_ceil(piece), |i| {
                cpu.isa.dispatch(part(i * piece..p.len().min((i + 1) * piece)));
            });
        }
        Some(packed) => {
            let [n, k] = packed.shape();
            assert_eq!(p.len(), n * k, "adam: {} weights that are packed as [{n}, {k}]", p.len());
            let targets = packed.targets();
            cpu.threads.run(targets.groups(), |group| {
                let Range { start, end } = targets.rows(group);
                cpu.isa.dispatch(StepAndPack { rows: part(start * k..end * k), targets, group });
            });
        }
    }
}

/// `Σ g²`, added in an order that depends on the number of elements alone.
pub fn squared_norm<G: Real>(cpu: &Cpu, g: &[G]) -> f64 {
    reduce(cpu, Square, g)
}

#[derive(Clone, Copy)]
struct Square;

impl Map<1> for Square {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, _: usize, [x]: [S::F; 1]) -> S::F {
        s.mul(x, x)
    }
}

/// The formula's constants, found in double precision: `1 - βᵗ` has few digits while `t` is small.
#[derive(Clone, Copy)]
struct Coefficients {
    factor: f32,
    beta1: f32,
    rest1: f32,
    beta2: f32,
    rest2: f32,
    /// `1 - rate·decay`.
    keep: f32,
    /// `-rate / (1-β₁ᵗ)`.
    stride: f32,
    /// `1 / √(1-β₂ᵗ)`.
    widen: f32,
    epsilon: f32,
}

impl Coefficients {
    fn new(hyper: &Adam, step: u32, factor: f32) -> Coefficients {
        let (rate, beta1, beta2) = (hyper.rate as f64, hyper.beta1 as f64, hyper.beta2 as f64);
        let correction = |beta: f64| 1.0 - beta.powf(step as f64);
        Coefficients {
            factor,
            beta1: hyper.beta1,
            rest1: (1.0 - beta1) as f32,
            beta2: hyper.beta2,
            rest2: (1.0 - beta2) as f32,
            keep: (1.0 - rate * hyper.weight_decay as f64) as f32,
            stride: (-rate / correction(beta1)) as f32,
            widen: (1.0 / correction(beta2).sqrt()) as f32,
            epsilon: hyper.epsilon,
        }
    }
}

struct Step<'a, G> {
    coefficients: Coefficients,
    p: &'a mut [f32],
    g: &'a [G],
    m: &'a mut [f32],
    v: &'a mut [f32],
}

impl<G: Real> Kernel for Step<'_, G> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.make(
            s,
            #[inline(always)]
            |_, _, _| {},
        );
    }
}

impl<G: Real> Step<'_, G> {
    /// Makes the step, and calls `changed(index, lanes, vector)` for each vector of changed parameters.
    #[inline(always)]
    fn make<S: Simd>(self, s: S, mut changed: impl FnMut(usize, usize, S::F)) {
        let c = self.coefficients;
        for_vectors(
            s,
            self.p.len(),
            #[inline(always)]
            |at, n| {
                for x in [&*self.p, self.m, self.v] {
                    prefetch(x.as_ptr().wrapping_add(at + PREFETCH_DISTANCE));
                }
                prefetch(self.g.as_ptr().wrapping_add(at + PREFETCH_DISTANCE));
                let g = s.mul(load(s, self.g, at, n), s.splat(c.factor));
                let m = s.fma(load(s, self.m, at, n), s.splat(c.beta1), s.mul(g, s.splat(c.rest1)));
                let v = s.fma(load(s, self.v, at, n), s.splat(c.beta2), s.mul(s.mul(g, g), s.splat(c.rest2)));
                let root = s.fma(s.sqrt(v), s.splat(c.widen), s.splat(c.epsilon));
                let kept = s.mul(load(s, self.p, at, n), s.splat(c.keep));
                let p = s.fma(s.div(m, root), s.splat(c.stride), kept);
                store(s, self.m, at, n, m);
                store(s, self.v, at, n, v);
                store(s, self.p, at, n, p);
                changed(at, n, p);
            },
        );
    }
}

/// The step of a group of rows, and their packing. They are packed from a rounded copy, whose rows are an odd number of cache lines
/// apart: rows whose distance is a power of two would drive each other out of the L1 cache.
struct StepAndPack<'a, G> {
    rows: Step<'a, G>,
    targets: PackingTargets<'a>,
    group: usize,
}

impl<G: Real> Kernel for StepAndPack<'_, G> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let StepAndPack { rows: Step { coefficients, p, g, m, v }, targets, group } = self;
        let (rows, k) = (targets.rows(group).len(), targets.k());
        // An odd number of cache lines: no power of two.
        let stride = (k.div_ceil(LINE) | 1) * LINE;
        let mut copy = Scratch::<bf16>::take(rows * stride);
        for (i, copy) in copy.chunks_exact_mut(stride).enumerate() {
            let row = i * k..(i + 1) * k;
            let (p, g) = (&mut p[row.clone()], &g[row.clone()]);
            let step = Step { coefficients, p, g, m: &mut m[row.clone()], v: &mut v[row] };
            step.make(
                s,
                #[inline(always)]
                |at, n, p| store(s, copy, at, n, p),
            );
            copy[k..].fill(bf16::ZERO);
        }
        // Safety: a task has its own group.
        unsafe { targets.pack(s, group, Matrix::new(&copy, rows, stride)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threads;
    use crate::gemm::{Epilogue, Operand};
    use crate::testing::{LENGTHS, bits, check, cpus, normal, normals, wide};

    const HYPER: Adam = Adam { rate: 0.01, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };

    /// The formula as it stands; returns p, m, v.
    fn reference(hyper: &Adam, steps: u32, factor: f32, p: &[f32], g: &[f32]) -> Vec<f64> {
        let [rate, beta1, beta2, epsilon, decay] =
            [hyper.rate, hyper.beta1, hyper.beta2, hyper.epsilon, hyper.weight_decay].map(f64::from);
        let (mut p, mut m, mut v) = (wide(p), vec![0.0; p.len()], vec![0.0; p.len()]);
        for step in 1..=steps as i32 {
            for i in 0..p.len() {
                let g = g[i] as f64 * factor as f64 * step as f64;
                m[i] = beta1 * m[i] + (1.0 - beta1) * g;
                v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
                p[i] -= rate * decay * p[i];
                let (mean, square) = (m[i] / (1.0 - beta1.powi(step)), v[i] / (1.0 - beta2.powi(step)));
                p[i] -= rate * mean / (square.sqrt() + epsilon);
            }
        }
        [p, m, v].concat()
    }

    /// The kernel with the same gradients: step after step a greater multiple of `g`.
    fn run(cpu: &Cpu, hyper: &Adam, steps: u32, factor: f32, p: &[f32], g: &[f32]) -> Vec<f32> {
        let (mut p, mut m, mut v) = (p.to_vec(), vec![0.0; p.len()], vec![0.0; p.len()]);
        for step in 1..=steps {
            adam(cpu, hyper, step, factor * step as f32, &mut p, g, &mut m, &mut v, None);
        }
        [p, m, v].concat()
    }

    #[test]
    fn five_steps_match_double_precision() {
        for len in LENGTHS.into_iter().chain([3 * LARGE_PIECE + 5]) {
            let (p, g) = (normal(1, len), normal(2, len));
            for weight_decay in [0.0, 0.1] {
                let hyper = Adam { weight_decay, ..HYPER };
                let expected = reference(&hyper, 5, 0.5, &p, &g);
                check(&expected, 2e-6, |cpu| run(cpu, &hyper, 5, 0.5, &p, &g));
            }
        }
    }

    /// To the bit, and so are the weights that were packed on the way; gradients in bf16 are as good as the same numbers in f32.
    #[test]
    fn a_step_of_packed_weights_is_that_of_others() {
        let cpus =
            || cpus().flat_map(|cpu| [1, 2, 3, 7].map(|n| Cpu { isa: cpu.isa, threads: Threads::new(n) }));
        let shapes = [[70, 1100], [1, 33], [64, 96], [96, 64], [0, 5], [5, 0]];
        for ([n, k], cpu) in shapes.into_iter().flat_map(|shape| cpus().map(move |cpu| (shape, cpu))) {
            let (p, narrow) = (normal(1, n * k), normals::<bf16>(2, n * k));
            let g: Vec<f32> = narrow.iter().map(|g| g.to_f32()).collect();
            let x = normals::<bf16>(3, 3 * k);
            let (mut plain, mut other) = (p.clone(), p.clone());
            let [mut m, mut v, mut other_m, mut other_v] = [(); 4].map(|()| vec![0.0; n * k]);
            let mut packed = BothWays::new(&cpu, &p, n, k);
            for step in 1..=2 {
                adam(&cpu, &HYPER, step, 0.5, &mut plain, &g, &mut m, &mut v, None);
                let (m, v) = (&mut other_m, &mut other_v);
                adam(&cpu, &HYPER, step, 0.5, &mut other, &narrow, m, v, Some(&mut packed));
            }
            let all = |p: &[f32], m: &[f32], v: &[f32]| bits(&[p, m, v].concat());
            assert_eq!(all(&plain, &m, &v), all(&other, &other_m, &other_v), "{}", cpu.isa);
            let fresh = BothWays::new(&cpu, &plain, n, k);
            let products = |packed: &BothWays| {
                let (mut y, mut dx) = (vec![bf16::NAN; 3 * n], vec![bf16::NAN; 3 * k]);
                let plain = Epilogue::default;
                bf16::times_weights(
                    &cpu,
                    Matrix::new(&x, 3, k),
                    packed.forward().unwrap().all(),
                    &mut y,
                    plain(),
                );
                bf16::times_weights(
                    &cpu,
                    Matrix::new(&y, 3, n),
                    packed.back().unwrap().all(),
                    &mut dx,
                    plain(),
                );
                [bits(&y), bits(&dx)]
            };
            assert_eq!(products(&packed), products(&fresh), "{}", cpu.isa);
        }
    }

    /// The first step of torch.optim.Adam moves each parameter by the rate against the sign of its gradient,
    /// and torch.optim.AdamW takes rate · decay of it away first.
    #[test]
    fn the_first_step_is_as_long_as_the_rate() {
        let (p, g) = ([1.0, 1.0], [5.0, -0.001]);
        for cpu in cpus() {
            for (weight_decay, start) in [(0.0, 1.0), (0.5, 0.995)] {
                let after = run(&cpu, &Adam { weight_decay, ..HYPER }, 1, 1.0, &p, &g);
                assert!((after[0] - (start - 0.01)).abs() < 2e-7, "{}: {after:?}", cpu.isa);
                assert!((after[1] - (start + 0.01)).abs() < 2e-7, "{}: {after:?}", cpu.isa);
            }
        }
    }

    #[test]
    fn a_parameter_without_gradient_stays_to_the_bit() {
        for cpu in cpus() {
            let after = run(&cpu, &HYPER, 3, 1.0, &[0.1; 19], &[0.0; 19]);
            assert_eq!(after[..19], [0.1; 19], "{}", cpu.isa);
        }
    }

    #[test]
    fn late_steps_have_no_correction_left() {
        for cpu in cpus() {
            let (mut p, mut m, mut v) = ([1.0], [0.0], [0.0]);
            adam(&cpu, &HYPER, u32::MAX, 1.0, &mut p, &[1.0], &mut m, &mut v, None);
            let expected = 1.0 - 0.01 * 0.1 / 0.02f32.sqrt();
            assert!((p[0] - expected).abs() < 2e-7, "{}: {p:?}", cpu.isa);
        }
    }

    #[test]
    fn what_is_not_a_number_comes_through() {
        for cpu in cpus() {
            let mut g = [1.0; 19];
            g[18] = f32::NAN;
            let after = run(&cpu, &HYPER, 1, 1.0, &[1.0; 19], &g);
            assert!(after[18].is_nan() && after[17].is_finite(), "{}: {after:?}", cpu.isa);
            assert!(squared_norm(&cpu, &g).is_nan(), "{}", cpu.isa);
        }
    }

    #[test]
    fn the_squared_norm_is_that_of_double_precision() {
        for len in LENGTHS.into_iter().chain([1_100_003]) {
            let (g, narrow) = (normal(1, len), normals::<bf16>(1, len));
            let norm = |g: Vec<f64>| g.iter().map(|g| g * g).sum::<f64>().sqrt();
            check(&[norm(wide(&g))], 1e-6, |cpu| vec![squared_norm(cpu, &g).sqrt() as f32]);
            check(&[norm(wide(&narrow))], 1e-6, |cpu| vec![squared_norm(cpu, &narrow).sqrt() as f32]);
        }
    }

    #[test]
    #[should_panic(expected = "adam: an input of 2 elements for an output of 3")]
    fn lengths_that_differ_are_refused() {
        let cpu = cpus().next().unwrap();
        adam(&cpu, &HYPER, 1, 1.0, &mut [0.0; 3], &[0.0; 2], &mut [0.0; 3], &mut [0.0; 3], None);
    }
}
