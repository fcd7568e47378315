//! Layer norm, alone or around a residual connection.

use crate::backend::Norm;
use crate::tape::{Backward, Tape, Var};
use crate::tensor::Tensor;
use attentive_kernels::Dropout;

impl Tape {
    /// `γ · (x - mean) / √(variance + ε) + β`, row by row.
    pub fn layer_norm(&self, x: &Var, gamma: &Var, beta: &Var, epsilon: f32) -> Var {
        let norm = self.backend().layer_norm(x.value(), gamma.value(), beta.value(), epsilon);
        let (x_var, gamma_var, beta_var) = (x.clone(), gamma.clone(), beta.clone());
        self.record(norm.y.clone(), &[x, gamma, beta], move |back, dy| {
            let (dx, _) = layer_norm_backward(back, &norm, None, &gamma_var, &beta_var, &dy);
            back.add(&x_var, dx);
        })
    }

    /// Layer norm of `x + dropout(r)`: the paper's `LayerNorm(x + Sublayer(x))` in one pass.
    pub fn residual_layer_norm(
        &self,
        x: &Var,
        r: &Var,
        p: f32,
        gamma: &Var,
        beta: &Var,
        epsilon: f32,
    ) -> Var {
        let dropout = self.draw(p);
        let (g, b) = (gamma.value(), beta.value());
        let norm = self.backend().residual_layer_norm(x.value(), r.value(), dropout, g, b, epsilon);
        let (x_var, r_var, gamma_var, beta_var) = (x.clone(), r.clone(), gamma.clone(), beta.clone());
        self.record(norm.y.clone(), &[x, r, gamma, beta], move |back, dy| {
            let (dx, dr) = layer_norm_backward(back, &norm, dropout, &gamma_var, &beta_var, &dy);
            back.add(&r_var, dr);
            back.add(&x_var, dx);
        })
    }
}

/// `dγ` and `dβ` go to their variables; `dx` and `dr` are handed back.
fn layer_norm_backward(
    back: &mut Backward,
    norm: &Norm,
    dropout: Option<Dropout>,
    gamma: &Var,
    beta: &Var,
    dy: &Tensor,
) -> (Tensor, Tensor) {
    let into = (back.take(gamma), back.take(beta));
    let gradients = back.backend.layer_norm_backward(norm, dropout, gamma.value(), dy, into);
    back.put(gamma, gradients.dgamma);
    back.put(beta, gradients.dbeta);
    (gradients.dz, gradients.dr)
}

#[cfg(test)]
mod tests {
    use crate::check::check_gradients;

    #[test]
    fn gradients_match_differences() {
        check_gradients("layer norm", &[&[6, 9], &[9], &[9]], |tape, v| {
            tape.layer_norm(&v[0], &v[1], &v[2], 1e-5)
        });
        for p in [0.0, 0.3] {
            check_gradients(
                &format!("residual layer norm {p}"),
                &[&[6, 9], &[6, 9], &[9], &[9]],
                |tape, v| tape.residual_layer_norm(&v[0], &v[1], p, &v[2], &v[3], 1e-5),
            );
        }
    }
}
