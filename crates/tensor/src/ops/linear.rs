//! The dense layer: `y = activation(x · wᵀ + bias)`.
//!
//! `x: [rows, in]`, `w: [out, in]`, `bias: [out]`, `y: [rows, out]`. Backward: `dx = dy · w`, `dw = dyᵀ · x` and `dbias` is
//! the sum of the rows of `dy`.

use crate::tape::{Backward, Tape, Var};
use crate::tensor::Tensor;
use attentive_kernels::activation::Activation;

impl Tape {
    /// `activation(x · wᵀ + bias)`.
    pub fn linear(&self, x: &Var, w: &Var, bias: Option<&Var>, activation: Option<Activation>) -> Var {
        // The gradient of ReLU follows from its output. Other functions need their input, so training keeps it and does not fuse them.
        let fused = activation.filter(|&a| a == Activation::Relu || !self.is_training());
        let y = self.backend().linear(x.value(), w.value(), bias.map(Var::value), fused);
        let (x, w, bias) = (x.clone(), w.clone(), bias.cloned());
        let inputs: Vec<&Var> = [&x, &w].into_iter().chain(bias.as_ref()).collect();
        let saved = Saved { x: x.clone(), w: w.clone(), bias: bias.clone(), y: fused.map(|_| y.clone()) };
        let y = self.record(y, &inputs, move |back, dy| linear_backward(back, &saved, dy));
        match activation {
            Some(activation) if fused.is_none() => self.activate(activation, &y),
            _ => y,
        }
    }
}

impl Tape {
    /// `x · wᵀ + bias` in f32, without a gradient. Training uses [`Tape::projection_loss`](Tape::projection_loss).
    ///
    /// # Panics
    /// If a gradient is to reach an input.
    pub fn logits(&self, x: &Var, w: &Var, bias: Option<&Var>) -> Var {
        let logits = self.backend().logits(x.value(), w.value(), bias.map(Var::value));
        let inputs: Vec<&Var> = [x, w].into_iter().chain(bias).collect();
        self.without_gradient("logits", logits, &inputs)
    }
}

struct Saved {
    x: Var,
    w: Var,
    bias: Option<Var>,
    /// The output, where a ReLU came after.
    y: Option<Tensor>,
}

fn linear_backward(back: &mut Backward, Saved { x, w, bias, y }: &Saved, dy: Tensor) {
    let dy = match y {
        Some(y) => back.backend.activate_backward(Activation::Relu, y, &dy),
        None => dy,
    };
    back.accumulate(x, |backend, into| backend.linear_backward_input(&dy, w.value(), into));
    back.accumulate(w, |backend, into| backend.linear_backward_weight(&dy, x.value(), into));
    if let Some(bias) = bias {
        back.accumulate(bias, |backend, into| backend.sum_rows(&dy, into));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_gradients;

    #[test]
    fn gradients_match_differences() {
        check_gradients("linear", &[&[5, 7], &[3, 7], &[3]], |tape, v| {
            tape.linear(&v[0], &v[1], Some(&v[2]), None)
        });
        check_gradients("linear without bias", &[&[1, 9], &[4, 9]], |tape, v| {
            tape.linear(&v[0], &v[1], None, None)
        });
        for activation in Activation::ALL {
            check_gradients(&format!("linear {activation:?}"), &[&[6, 8], &[5, 8], &[5]], |tape, v| {
                tape.linear(&v[0], &v[1], Some(&v[2]), Some(activation))
            });
        }
    }

    #[test]
    #[should_panic(expected = "logits: there is no gradient of it, but one is to reach an input")]
    fn logits_are_not_learned_from() {
        let backend = crate::check::backend();
        let tape = Tape::training(&backend, 0);
        let x = tape.constant(backend.upload_f32(&[1.0, 2.0], [1, 2]));
        let w = tape.leaf(backend.upload_f32(&[3.0, 4.0], [1, 2]));
        tape.logits(&x, &w, None);
    }

    #[test]
    fn a_weight_used_twice_gets_both_gradients() {
        check_gradients("linear twice", &[&[3, 4], &[4, 4]], |tape, v| {
            let once = tape.linear(&v[0], &v[1], None, None);
            tape.linear(&once, &v[1], None, None)
        });
    }
}
