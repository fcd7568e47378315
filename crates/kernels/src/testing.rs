//! What the tests of kernels share: numbers, sizes, references, and the run over instruction sets and threads.

use crate::pass::PIECE;
use crate::{Aligned, Cpu, Dropout, Isa, Random, Real, Threads};
use half::bf16;

/// Normally distributed numbers.
pub(crate) fn normal(seed: u64, len: usize) -> Vec<f32> {
    (0..len as u32).map(|i| Random::new(seed).normal(i)).collect()
}

/// The numbers as they are stored in a type.
pub(crate) fn stored<T: Real>(x: &[f32]) -> Vec<T> {
    x.iter().map(|&x| T::from_f32(x)).collect()
}

/// Normally distributed numbers as they are stored in a type.
pub(crate) fn normals<T: Real>(seed: u64, len: usize) -> Vec<T> {
    stored(&normal(seed, len))
}

/// Normally distributed numbers rounded to bf16, at the start of a cache line.
pub(crate) fn rounded(seed: u64, len: usize) -> Aligned<bf16> {
    let mut x = Aligned::zeros(len);
    x.iter_mut().zip(normal(seed, len)).for_each(|(x, y)| *x = bf16::from_f32(y));
    x
}

pub(crate) fn wide<T: Real>(x: &[T]) -> Vec<f64> {
    x.iter().map(|&x| x.to_f32() as f64).collect()
}

/// How far a number may be from its expected value because of how it is stored, relative to it. That of `f32`
/// is part of what computing with it may cost.
pub(crate) fn rounding<T: Real>() -> f64 {
    if T::EXACT { 0.0 } else { 1.0 / 256.0 }
}

/// Every instruction set, each on one thread.
pub(crate) fn cpus() -> impl Iterator<Item = Cpu> {
    Isa::present().into_iter().map(|isa| Cpu { isa, threads: Threads::new(1) })
}

/// Runs an operation on every instruction set: near what is expected, but for the rounding of the results,
/// and the same bits on 1, 2, 3, 7 threads.
pub(crate) fn check<T: Real>(expected: &[f64], tolerance: f64, run: impl Fn(&Cpu) -> Vec<T>) {
    for cpu in cpus() {
        let alone = run(&cpu);
        assert_eq!(alone.len(), expected.len());
        for (i, (y, expected)) in wide(&alone).iter().zip(expected).enumerate() {
            let allowed = tolerance * expected.abs().max(1.0) + rounding::<T>() * expected.abs();
            let near = (y - expected).abs() <= allowed;
            assert!(near, "{}: element {i} is {y}, not {expected}", cpu.isa);
        }
        for count in [2, 3, 7] {
            let shared = run(&Cpu { isa: cpu.isa, threads: Threads::new(count) });
            assert_eq!(bits(&shared), bits(&alone), "{} on {count} threads", cpu.isa);
        }
    }
}

pub(crate) fn bits<T: Real>(x: &[T]) -> Vec<u32> {
    x.iter().map(|x| x.to_f32().to_bits()).collect()
}

/// The gradient of `f` at `x` by central differences.
pub(crate) fn gradient(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let moved = |i: usize, by: f64| {
        let mut x = x.to_vec();
        x[i] += by;
        f(&x)
    };
    (0..x.len()).map(|i| (moved(i, STEP) - moved(i, -STEP)) / (2.0 * STEP)).collect()
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// None, one, a tail, several pieces with a tail.
pub(crate) const LENGTHS: [usize; 4] = [0, 1, 37, 3 * PIECE + 5];
/// Rows and columns: none, one of each, many of each, rows longer than a piece.
pub(crate) const SHAPES: [(usize, usize); 7] =
    [(0, 5), (1, 1), (9, 1), (1, 70), (300, 33), (17, 513), (3, PIECE + 3)];

pub(crate) fn a_dropout() -> Dropout {
    Dropout { p: 0.3, random: Random::new(99) }
}

/// The output of an operation that must write all of it.
pub(crate) fn written<T: Real>(len: usize, write: impl FnOnce(&mut [T])) -> Vec<T> {
    let mut y = vec![T::from_f32(f32::NAN); len];
    write(&mut y);
    y
}

/// erf by its series, for |x| < 4.
pub(crate) fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / n as f64;
        sum += term / (2 * n + 1) as f64;
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}
