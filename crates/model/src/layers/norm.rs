//! Layer norm.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Parameter, Tape, Var};

/// What is added to the variance: PyTorch's default, which the checkpoints of the family expect.
const EPSILON: f32 = 1e-5;

/// `γ · (x - mean) / √(variance + ε) + β` over each token.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    gamma: Parameter,
    beta: Parameter,
}

impl LayerNorm {
    /// A norm over rows of `d_model` numbers.
    pub fn new(builder: &Builder, d_model: usize) -> Result<LayerNorm, Error> {
        Ok(LayerNorm {
            gamma: builder.parameter("weight", [d_model], Init::Ones)?,
            beta: builder.parameter("bias", [d_model], Init::Zeros)?,
        })
    }

    /// The norm of `x`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        tape.layer_norm(x, &tape.parameter(&self.gamma), &tape.parameter(&self.beta), EPSILON)
    }

    /// The norm of `x + dropout(r)`, in one pass.
    pub fn forward_residual(&self, tape: &Tape, x: &Var, r: &Var, dropout: f32) -> Var {
        let (gamma, beta) = (tape.parameter(&self.gamma), tape.parameter(&self.beta));
        tape.residual_layer_norm(x, r, dropout, &gamma, &beta, EPSILON)
    }
}
