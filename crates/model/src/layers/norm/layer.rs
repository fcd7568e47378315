//! Layer norm.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{NormKind, NormVars, Parameter, Tape, Var};

/// `γ · (x - mean) / √(variance + ε) + β` over each token.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    gamma: Parameter,
    beta: Parameter,
    epsilon: f32,
}

impl LayerNorm {
    /// A norm over rows of `d_model` numbers.
    pub fn new(builder: &Builder, d_model: usize, epsilon: f32) -> Result<LayerNorm, Error> {
        Ok(LayerNorm {
            gamma: builder.parameter("weight", [d_model], Init::Ones)?,
            beta: builder.parameter("bias", [d_model], Init::Zeros)?,
            epsilon,
        })
    }

    /// The norm of `x`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        tape.norm(x, &self.weights(tape))
    }

    /// The norm of `x + dropout(r)`, in one pass.
    pub fn forward_residual(&self, tape: &Tape, x: &Var, r: &Var, dropout: f32) -> Var {
        tape.residual_norm(x, r, dropout, &self.weights(tape))
    }

    fn weights(&self, tape: &Tape) -> NormVars {
        let (gamma, beta) = (tape.parameter(&self.gamma), Some(tape.parameter(&self.beta)));
        NormVars { kind: NormKind::Layer, gamma, beta, epsilon: self.epsilon }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x / √(x² + ε)` for a row `x, -x`: ε is seen where x² is not large beside it.
    #[test]
    fn epsilon_is_the_one_that_was_asked_for() {
        let backend = attentive_tensor::check::backend();
        for epsilon in [1e-12, 1e-5, 0.1] {
            let norm = LayerNorm::new(&Builder::random(&backend, 1), 2, epsilon).unwrap();
            let tape = Tape::inference(&backend);
            let x = 1e-3f32;
            let y = norm.forward(&tape, &tape.constant(backend.upload_f32(&[x, -x], [1, 2])));
            let (found, expected) = (backend.download_f32(y.value())[0], x / (x * x + epsilon).sqrt());
            assert!((found - expected).abs() < 1e-4 * expected, "{epsilon}: {found}, not {expected}");
        }
    }
}
