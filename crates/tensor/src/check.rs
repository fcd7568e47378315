//! Gradients held against finite differences, for the tests of operations and layers.
//!
//! For a random direction `u` through all inputs at once, `⟨gradient, u⟩` must equal
//! `(f(x + εu) - f(x - εu)) / 2ε`: one number stands for every element of every gradient.

use crate::backend::Backend;
use crate::cpu::CpuBackend;
use crate::tape::{Tape, Var};
use attentive_kernels::{Cpu, Isa, Random, Threads};
use std::sync::Arc;

/// The backend that tests run on.
///
/// # Panics
/// Where `ATTENTIVE_ISA` asks for what this processor does not have.
pub fn backend() -> Arc<dyn Backend> {
    CpuBackend::from_env().unwrap_or_else(|error| panic!("{error}")).shared()
}

/// Normally distributed numbers for a test.
pub fn numbers(seed: u64, len: usize) -> Vec<f32> {
    (0..len as u32).map(|i| Random::new(seed).normal(i)).collect()
}

/// Checks the gradients of `f` with respect to inputs of the given shapes, in four random directions, on every
/// instruction set of this processor.
///
/// # Panics
/// Where they do not agree, with the name and both numbers.
pub fn check_gradients(name: &str, shapes: &[&[usize]], f: impl Fn(&Tape, &[Var]) -> Var) {
    for isa in Isa::present() {
        let backend = CpuBackend::new(Cpu { isa, threads: Threads::new(2) }).shared();
        check_on(&backend, &format!("{name} on {isa}"), shapes, &f);
    }
}

fn check_on(backend: &Arc<dyn Backend>, name: &str, shapes: &[&[usize]], f: impl Fn(&Tape, &[Var]) -> Var) {
    const EPSILON: f64 = 4e-3;
    let inputs: Vec<Vec<f32>> =
        shapes.iter().enumerate().map(|(i, shape)| numbers(i as u64, shape.iter().product())).collect();
    let run = |inputs: &[Vec<f32>]| {
        // Every run has the same seed, so that dropout drops the same.
        let tape = Tape::training(backend, 5);
        let leaf = |(x, shape): (&Vec<f32>, &&[usize])| tape.leaf(backend.upload_f32(x, *shape));
        let vars: Vec<Var> = inputs.iter().zip(shapes).map(leaf).collect();
        let y = f(&tape, &vars);
        (tape, vars, y)
    };
    for direction in 0..4 {
        let (tape, vars, y) = run(&inputs);
        let probe = numbers(100 + direction, y.shape().len());
        let seed = backend.upload_f32(&probe, y.shape());
        let gradients = tape.backward_from(&y, seed, &vars);
        let along: Vec<Vec<f32>> = inputs
            .iter()
            .enumerate()
            .map(|(i, x)| numbers(200 + 10 * direction + i as u64, x.len()))
            .collect();
        let mut expected = 0.0;
        let mut size = 0.0;
        for (i, gradient) in gradients.iter().enumerate() {
            let gradient = gradient.as_ref().unwrap_or_else(|| panic!("{name}: input {i} has no gradient"));
            for (g, u) in backend.download_f32(gradient).iter().zip(&along[i]) {
                expected += *g as f64 * *u as f64;
                size += (*g as f64).powi(2);
            }
        }
        let value = |sign: f64| {
            let shift = |(x, u): (&f32, &f32)| (*x as f64 + sign * EPSILON * *u as f64) as f32;
            let shifted: Vec<Vec<f32>> =
                inputs.iter().zip(&along).map(|(x, u)| x.iter().zip(u).map(shift).collect()).collect();
            let y = backend.download_f32(run(&shifted).2.value());
            y.iter().zip(&probe).map(|(y, p)| *y as f64 * *p as f64).sum::<f64>()
        };
        let difference = (value(1.0) - value(-1.0)) / (2.0 * EPSILON);
        let error = (difference - expected).abs();
        // Relative to the length of the gradient: a direction may happen to be almost level.
        assert!(error < 5e-3 * size.sqrt() + 1e-4, "{name}: gradient {expected}, difference {difference}");
    }
}
