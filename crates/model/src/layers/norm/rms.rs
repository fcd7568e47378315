//! RMS norm.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{NormKind, NormVars, Parameter, Tape, Var};

/// `γ · x / √(mean(x²) + ε)` over each token (Zhang and Sennrich 2019): layer norm without a mean and without a shift, as in T5 and
/// Llama.
#[derive(Debug, Clone)]
pub struct RmsNorm {
    gamma: Parameter,
    epsilon: f32,
}

impl RmsNorm {
    /// A norm over rows of `d_model` numbers.
    pub fn new(builder: &Builder, d_model: usize, epsilon: f32) -> Result<RmsNorm, Error> {
        Ok(RmsNorm { gamma: builder.parameter("weight", [d_model], Init::Ones)?, epsilon })
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
        let gamma = tape.parameter(&self.gamma);
        NormVars { kind: NormKind::Rms, gamma, beta: None, epsilon: self.epsilon }
    }
}
