//! The output projection fused with its loss, and the cross-entropy with soft targets.
//!
//! Logits are `hidden · tableᵀ + bias`; not every model has the bias. The forward pass computes loss and gradients together, some tokens at
//! a time; the backward pass only scales the gradients. A matrix of tokens × vocabulary never exists.

use crate::backend::{Binary, Learned, ProjectionTarget};
use crate::shape::Shape;
use crate::tape::{Backward, Tape, Var};
use crate::tensor::Tensor;

impl Tape {
    /// The label-smoothed cross-entropy of `hidden · tableᵀ + bias`, a scalar: `hidden: [tokens, d]`, `table: [vocabulary, d]`,
    /// `bias: [vocabulary]`.
    pub fn projection_loss(
        &self,
        hidden: &Var,
        table: &Var,
        bias: Option<&Var>,
        target: &ProjectionTarget,
    ) -> Var {
        let inputs: Vec<&Var> = [hidden, table].into_iter().chain(bias).collect();
        let wanted = self.is_training() && inputs.iter().any(|input| input.wants_gradient());
        let learned = match wanted {
            false => Learned::Nothing,
            true if bias.is_some_and(Var::wants_gradient) => Learned::TableAndBias,
            true => Learned::Table,
        };
        let (x, w) = (hidden.value(), table.value());
        let result = self.backend().projection_loss(x, w, bias.map(Var::value), target, learned);
        let Some((dhidden, dtable)) = result.gradients else { return self.constant(result.loss) };
        let computed = [(hidden.clone(), dhidden), (table.clone(), dtable)];
        let computed: Vec<_> = computed.into_iter().chain(bias.cloned().zip(result.dbias)).collect();
        self.record(result.loss, &inputs, move |back, dy| hand_on(back, computed, &dy))
    }

    /// `scale` times the sum over all rows of the cross-entropy of `softmax(factor · logits)` against `targets`, of the shape of the
    /// logits and in f32: `-Σ t · ln p`. The targets of a row need not add up to one.
    ///
    /// The gradient is `factor · scale · (Σt · p - t)`. The forward pass computes it.
    pub fn soft_loss(&self, logits: &Var, targets: &Tensor, factor: f32, scale: f32) -> Var {
        let learned = self.is_training() && logits.wants_gradient();
        let (loss, gradient) = self.backend().soft_loss(logits.value(), targets, factor, scale, learned);
        let Some(gradient) = gradient else { return self.constant(loss) };
        let computed = vec![(logits.clone(), gradient)];
        self.record(loss, &[logits], move |back, dy| hand_on(back, computed, &dy))
    }

    /// A scalar loss that the caller has computed, together with its gradients: for losses that the host computes, such as one with a
    /// bipartite matching. Each gradient has the shape and the type of its variable.
    pub fn given_loss(&self, loss: f32, gradients: Vec<(Var, Tensor)>) -> Var {
        let loss = self.backend().upload_f32(&[loss], Shape::SCALAR);
        let inputs: Vec<Var> = gradients.iter().map(|(var, _)| var.clone()).collect();
        let inputs: Vec<&Var> = inputs.iter().collect();
        self.record(loss, &inputs, move |back, dy| hand_on(back, gradients, &dy))
    }
}

/// Adds gradients of a scalar, times its own gradient, to those of the variables.
fn hand_on(back: &mut Backward, gradients: Vec<(Var, Tensor)>, dy: &Tensor) {
    let one = back.is_one(dy);
    for (var, gradient) in gradients {
        let gradient = if one { gradient } else { back.backend.binary(Binary::Mul, &gradient, dy) };
        back.add(&var, gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{backend, check_gradients};

    #[test]
    fn gradients_match_differences() {
        for (smoothing, classes) in [(0.0, 11), (0.1, 11), (0.3, 10)] {
            check_gradients(&format!("loss {smoothing} {classes}"), &[&[5, 6], &[11, 6]], |tape, v| {
                let tokens = tape.backend().upload_i32(&[3, 0, -1, 9, 3]);
                let bias: [f32; 11] = std::array::from_fn(|class| 0.1 * class as f32);
                let bias = tape.constant(tape.backend().upload_f32(&bias, [11]));
                let bias = (classes == 10).then_some(&bias);
                let target = ProjectionTarget { tokens: &tokens, classes, smoothing, scale: 0.25 };
                tape.projection_loss(&v[0], &v[1], bias, &target)
            });
            let shapes: [&[usize]; 3] = [&[5, 6], &[11, 6], &[11]];
            check_gradients(&format!("loss {smoothing} {classes}, a learned bias"), &shapes, |tape, v| {
                let tokens = tape.backend().upload_i32(&[3, 0, -1, 9, 3]);
                let target = ProjectionTarget { tokens: &tokens, classes, smoothing, scale: 0.25 };
                tape.projection_loss(&v[0], &v[1], Some(&v[2]), &target)
            });
        }
    }

    #[test]
    fn gradients_of_soft_targets_match_differences() {
        check_gradients("a soft loss", &[&[5, 7]], |tape, v| {
            let targets: Vec<f32> = (0..35).map(|i| 0.02 * (i * 13 % 17) as f32).collect();
            tape.soft_loss(&v[0], &tape.backend().upload_f32(&targets, [5, 7]), 1.7, 0.3)
        });
    }

    #[test]
    fn equal_logits_give_the_logarithm_of_the_number_of_classes() {
        let backend = backend();
        let tape = Tape::inference(&backend);
        let hidden = tape.constant(backend.upload_f32(&[0.0; 12], [4, 3]));
        let table = tape.constant(backend.upload_f32(&[1.0; 30], [10, 3]));
        let tokens = backend.upload_i32(&[1, 2, 3, 4]);
        let target = ProjectionTarget { tokens: &tokens, classes: 10, smoothing: 0.1, scale: 0.25 };
        let loss = backend.download_f32(tape.projection_loss(&hidden, &table, None, &target).value())[0];
        assert!((loss - 10f32.ln()).abs() < 1e-6, "{loss}");
    }

    #[test]
    fn a_given_loss_hands_its_gradients_on() {
        check_gradients("a given loss", &[&[3, 2]], |tape, v| {
            let x = tape.backend().download_f32(v[0].value());
            let slope: Vec<f32> = x.iter().map(|x| 2.0 * x).collect();
            let gradient = tape.backend().upload_f32(&slope, [3, 2]);
            tape.given_loss(x.iter().map(|x| x * x).sum(), vec![(v[0].clone(), gradient)])
        });
    }
}
