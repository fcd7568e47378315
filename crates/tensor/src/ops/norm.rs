//! Layer norm and RMS norm, alone or around a residual connection.

use crate::backend::{Norm, NormWeights};
use crate::tape::{Backward, Tape, Var};
use crate::tensor::Tensor;
use attentive_kernels::Dropout;
use attentive_kernels::norm::NormKind;

/// The weights of a norm, on a tape.
#[derive(Debug, Clone)]
pub struct NormVars {
    /// Which norm it is.
    pub kind: NormKind,
    /// The scale `γ: [d]`.
    pub gamma: Var,
    /// The shift `β: [d]`, if there is one.
    pub beta: Option<Var>,
    /// ε, which is added to the mean of the squares.
    pub epsilon: f32,
}

impl NormVars {
    pub(super) fn values(&self) -> NormWeights<'_> {
        let NormVars { kind, gamma, beta, epsilon } = self;
        let beta = beta.as_ref().map(Var::value);
        NormWeights { kind: *kind, gamma: gamma.value(), beta, epsilon: *epsilon }
    }

    /// The inputs of a norm: these and the weights.
    pub(super) fn with<'a>(&'a self, inputs: &[&'a Var]) -> Vec<&'a Var> {
        inputs.iter().copied().chain([&self.gamma]).chain(&self.beta).collect()
    }
}

impl Tape {
    /// `γ · (x - μ) / √(mean((x - μ)²) + ε) + β`, row by row; `μ` is the mean of the row in layer norm, and zero in RMS norm.
    pub fn norm(&self, x: &Var, weights: &NormVars) -> Var {
        let norm = self.backend().norm(&weights.values(), x.value(), None);
        let (x_var, vars) = (x.clone(), weights.clone());
        self.record(norm.y.clone(), &weights.with(&[x]), move |back, dy| {
            let (dx, _) = norm_backward(back, &vars, &norm, None, &dy);
            back.add(&x_var, dx);
        })
    }

    /// The norm of `x + dropout(r)`: the paper's `LayerNorm(x + Sublayer(x))` in one pass.
    pub fn residual_norm(&self, x: &Var, r: &Var, p: f32, weights: &NormVars) -> Var {
        let dropout = self.draw(p);
        let norm = self.backend().norm(&weights.values(), x.value(), Some((r.value(), dropout)));
        let (x_var, r_var, vars) = (x.clone(), r.clone(), weights.clone());
        self.record(norm.y.clone(), &weights.with(&[x, r]), move |back, dy| {
            let (dx, dr) = norm_backward(back, &vars, &norm, dropout, &dy);
            back.add(&r_var, dr);
            back.add(&x_var, dx);
        })
    }
}

/// `dγ` and `dβ` go to their variables; `dx` and `dr` are handed back.
fn norm_backward(
    back: &mut Backward,
    vars: &NormVars,
    norm: &Norm,
    dropout: Option<Dropout>,
    dy: &Tensor,
) -> (Tensor, Tensor) {
    let into = (back.take(&vars.gamma), vars.beta.as_ref().and_then(|beta| back.take(beta)));
    let gradients = back.backend.norm_backward(&vars.values(), norm, dropout, dy, into);
    back.put(&vars.gamma, gradients.dgamma);
    if let Some((beta, dbeta)) = vars.beta.as_ref().zip(gradients.dbeta) {
        back.put(beta, dbeta);
    }
    (gradients.dz, gradients.dr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_gradients;

    #[test]
    fn gradients_match_differences() {
        // The last shape is that of `β`.
        let cases: [(NormKind, &[&[usize]]); 3] =
            [(NormKind::Layer, &[&[9], &[9]]), (NormKind::Layer, &[&[9]]), (NormKind::Rms, &[&[9]])];
        for (kind, weights) in cases {
            let vars =
                |v: &[Var]| NormVars { kind, gamma: v[0].clone(), beta: v.get(1).cloned(), epsilon: 1e-5 };
            let name = format!("{kind:?} norm of {weights:?}");
            let rows: &[usize] = &[6, 9];
            check_gradients(&name, &[&[rows], weights].concat(), |tape, v| tape.norm(&v[0], &vars(&v[1..])));
            for p in [0.0, 0.3] {
                check_gradients(
                    &format!("{name}, residual {p}"),
                    &[&[rows, rows], weights].concat(),
                    |tape, v| tape.residual_norm(&v[0], &v[1], p, &vars(&v[2..])),
                );
            }
        }
    }
}
