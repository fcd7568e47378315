//! Adam and AdamW over a list of parameters.

use crate::backend::Backend;
use crate::parameter::{Gradients, Parameter};
use crate::shape::Shape;
use crate::tensor::{DType, Tensor};
use attentive_kernels::optimizer::Adam as Rule;

/// The moments of each parameter, and how many steps were made.
#[derive(Debug)]
pub struct Adam {
    parameters: Vec<Parameter>,
    moments: Vec<[Tensor; 2]>,
    /// For each parameter, the number of steps at the beginning in which it is frozen.
    waits: Vec<u32>,
    step: u32,
}

impl Adam {
    /// An optimizer that has not made a step yet.
    pub fn new(backend: &dyn Backend, parameters: &[Parameter]) -> Adam {
        let zeros = |parameter: &Parameter| {
            let shape = parameter.value().shape();
            [backend.zeros(shape, DType::F32), backend.zeros(shape, DType::F32)]
        };
        Adam {
            parameters: parameters.to_vec(),
            moments: parameters.iter().map(zeros).collect(),
            waits: vec![0; parameters.len()],
            step: 0,
        }
    }

    /// Freezes each parameter for so many steps. The bias correction of its moments begins after them.
    pub fn waiting(self, waits: Vec<u32>) -> Adam {
        assert_eq!(waits.len(), self.parameters.len(), "adam: waits of other parameters");
        Adam { waits, ..self }
    }

    /// For how many steps each parameter is frozen.
    pub fn waits(&self) -> &[u32] {
        &self.waits
    }

    /// Steps made so far.
    pub fn steps(&self) -> u32 {
        self.step
    }

    /// The moving averages of the gradients and of their squares, for each parameter in order. A checkpoint needs them and [`Adam::steps`].
    pub fn moments(&self) -> &[[Tensor; 2]] {
        &self.moments
    }

    /// Restores [`Adam::steps`] and [`Adam::moments`] of a checkpoint.
    ///
    /// # Panics
    /// If these are not the moments of the same parameters.
    pub fn restore(&mut self, step: u32, moments: Vec<[Tensor; 2]>) {
        let shapes = |moments: &[[Tensor; 2]]| -> Vec<[Shape; 2]> {
            moments.iter().map(|pair| pair.each_ref().map(Tensor::shape)).collect()
        };
        assert_eq!(shapes(&moments), shapes(&self.moments), "adam: moments of other parameters");
        (self.step, self.moments) = (step, moments);
    }

    /// One step. Gradients are scaled down if their global norm exceeds `clip`. A parameter without a gradient does not change. Weight
    /// decay applies to matrices only: zero is no sensible value for the scale of a norm.
    pub fn step(&mut self, backend: &dyn Backend, rule: &Rule, clip: Option<f32>, gradients: &Gradients) {
        self.step += 1;
        let factor = clip.map(|limit| {
            let all = gradients.of(&self.parameters);
            backend.clip_factor(&backend.squared_norm(&all), limit)
        });
        for ((parameter, [m, v]), waits) in self.parameters.iter().zip(&mut self.moments).zip(&self.waits) {
            let Some(gradient) = gradients.get(parameter) else { continue };
            let step = self.step.saturating_sub(*waits).max(1);
            let is_matrix = parameter.value().shape()[..].len() > 1;
            let rule = Rule { weight_decay: if is_matrix { rule.weight_decay } else { 0.0 }, ..*rule };
            parameter.update(|value| {
                let mut value = backend.own(value);
                backend.adam(&rule, step, factor.as_ref(), &mut value, gradient, [m, v]);
                value
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tape;
    use crate::check::backend;
    use std::sync::Arc;

    const RULE: Rule = Rule { rate: 0.1, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };

    /// A step with the gradient of `|w|²`.
    fn descend(backend: &Arc<dyn Backend>, w: &Parameter, adam: &mut Adam) {
        let tape = Tape::training(backend, 0);
        let x = tape.parameter(w);
        let loss = tape.sum(&tape.mul(&x, &x));
        let mut gradients = Gradients::default();
        drop(x);
        tape.backward(&loss, &mut gradients);
        adam.step(&**backend, &RULE, Some(1.0), &gradients);
    }

    #[test]
    fn adam_finds_the_minimum_of_a_parabola() {
        let backend = backend();
        let w = Parameter::new("w", backend.upload_f32(&[3.0, -2.0], [1, 2]));
        let mut adam = Adam::new(&*backend, std::slice::from_ref(&w));
        for _ in 0..300 {
            descend(&backend, &w, &mut adam);
        }
        let w = backend.download_f32(&w.value());
        assert!(w.iter().all(|w| w.abs() < 0.01), "{w:?}");
    }

    #[test]
    fn matrices_decay_and_vectors_do_not() {
        let backend = backend();
        let numbers = [1.0, -2.0];
        let matrix = Parameter::new("weight", backend.upload_f32(&numbers, [1, 2]));
        let vector = Parameter::new("bias", backend.upload_f32(&numbers, [2]));
        let both = [matrix.clone(), vector.clone()];
        let tape = Tape::training(&backend, 0);
        let [x, y] = both.each_ref().map(|parameter| tape.parameter(parameter));
        let loss = tape.add(&tape.sum(&tape.scale(&x, 0.0)), &tape.sum(&tape.scale(&y, 0.0)));
        let mut gradients = Gradients::default();
        drop((x, y));
        tape.backward(&loss, &mut gradients);
        Adam::new(&*backend, &both).step(&*backend, &Rule { weight_decay: 0.5, ..RULE }, None, &gradients);
        assert_eq!(backend.download_f32(&matrix.value()), [0.95, -1.9]);
        assert_eq!(backend.download_f32(&vector.value()), numbers);
    }

    #[test]
    fn a_restored_optimizer_continues_with_the_same_bits() {
        let backend = backend();
        let w = Parameter::new("w", backend.upload_f32(&[3.0, -2.0], [1, 2]));
        let mut adam = Adam::new(&*backend, std::slice::from_ref(&w));
        for _ in 0..5 {
            descend(&backend, &w, &mut adam);
        }
        let numbers = |x: &Tensor| backend.download_f32(x);
        let again = Parameter::new("w", backend.upload_f32(&numbers(&w.value()), [1, 2]));
        let mut resumed = Adam::new(&*backend, std::slice::from_ref(&again));
        let moments = adam
            .moments()
            .iter()
            .map(|pair| pair.each_ref().map(|moment| backend.upload_f32(&numbers(moment), moment.shape())));
        resumed.restore(adam.steps(), moments.collect());
        for _ in 0..5 {
            descend(&backend, &w, &mut adam);
            descend(&backend, &again, &mut resumed);
        }
        assert_eq!(numbers(&w.value()), numbers(&again.value()));
    }
}
