//! Group norm over the pixels of each picture.

use super::norm::NormVars;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

impl Tape {
    /// `γ · (x - μ) / √(σ² + ε) + β` with the mean and the variance of each group of channels over the rows of each sequence:
    /// `[rows, channels]` to the same. Sequence `s` has the rows `offsets[s]..offsets[s + 1]`.
    pub fn group_norm(&self, x: &Var, weights: &NormVars, groups: usize, offsets: &Tensor) -> Var {
        let norm = self.backend().group_norm(&weights.values(), groups, x.value(), offsets);
        let (x_var, vars, offsets) = (x.clone(), weights.clone(), offsets.clone());
        self.record(norm.y.clone(), &weights.with(&[x]), move |back, dy| {
            let beta = vars.beta.as_ref().expect("a group norm has a shift");
            let into = (back.take(&vars.gamma), back.take(beta));
            let g = back.backend.group_norm_backward(&vars.values(), groups, &offsets, &norm, &dy, into);
            back.put(&vars.gamma, g.dgamma);
            back.put(beta, g.dbeta.expect("a group norm has a shift"));
            back.add(&x_var, g.dz);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_gradients;
    use attentive_kernels::norm::NormKind;

    #[test]
    fn gradients_match_differences() {
        check_gradients("group norm", &[&[11, 6], &[6], &[6]], |tape, v| {
            let (gamma, beta) = (v[1].clone(), Some(v[2].clone()));
            let weights = NormVars { kind: NormKind::Layer, gamma, beta, epsilon: 1e-5 };
            tape.group_norm(&v[0], &weights, 2, &tape.backend().upload_i32(&[0, 4, 11]))
        });
    }
}
