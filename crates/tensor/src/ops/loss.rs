//! The output projection and its loss, as one operation.
//!
//! Logits are `hidden · tableᵀ`, and a bias that is not learned where a model has one. Loss and gradients are computed
//! together, some tokens at a time, on the way forward; the way back only hands the gradients on. A matrix of tokens ×
//! vocabulary never exists.

use crate::backend::{Binary, ProjectionTarget};
use crate::tape::{Tape, Var};

impl Tape {
    /// The label-smoothed cross-entropy of `hidden · tableᵀ`, a scalar; `hidden: [tokens, d]`, `table: [vocabulary, d]`.
    pub fn projection_loss(&self, hidden: &Var, table: &Var, target: &ProjectionTarget) -> Var {
        let gradient = self.is_training() && (hidden.wants_gradient() || table.wants_gradient());
        let result = self.backend().projection_loss(hidden.value(), table.value(), target, gradient);
        let Some((mut dhidden, mut dtable)) = result.gradients else { return self.constant(result.loss) };
        let (hidden_var, table_var) = (hidden.clone(), table.clone());
        self.record(result.loss, &[hidden, table], move |back, dy| {
            if !back.is_one(&dy) {
                dhidden = back.backend.binary(Binary::Mul, &dhidden, &dy);
                dtable = back.backend.binary(Binary::Mul, &dtable, &dy);
            }
            back.add(&hidden_var, dhidden);
            back.add(&table_var, dtable);
        })
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
                let bias = tape.backend().upload_f32(&bias, [11]);
                let bias = (classes == 10).then_some(&bias);
                let target = ProjectionTarget { tokens: &tokens, classes, bias, smoothing, scale: 0.25 };
                tape.projection_loss(&v[0], &v[1], &target)
            });
        }
    }

    #[test]
    fn equal_logits_give_the_logarithm_of_the_number_of_classes() {
        let backend = backend();
        let tape = Tape::inference(&backend);
        let hidden = tape.constant(backend.upload_f32(&[0.0; 12], [4, 3]));
        let table = tape.constant(backend.upload_f32(&[1.0; 30], [10, 3]));
        let tokens = backend.upload_i32(&[1, 2, 3, 4]);
        let target =
            ProjectionTarget { tokens: &tokens, classes: 10, bias: None, smoothing: 0.1, scale: 0.25 };
        let loss = backend.download_f32(tape.projection_loss(&hidden, &table, &target).value())[0];
        assert!((loss - 10f32.ln()).abs() < 1e-6, "{loss}");
    }
}
