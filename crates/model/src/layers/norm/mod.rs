//! Norms over each token: layer norm and RMS norm.

mod layer;
mod rms;

pub use attentive_tensor::NormKind;
pub use layer::LayerNorm;
pub use rms::RmsNorm;

use crate::builder::Builder;
use crate::error::Error;
use attentive_tensor::{Tape, Var};

/// PyTorch's default for what is added to the variance, which Marian has.
pub const EPSILON: f32 = 1e-5;

/// The norm that a family has chosen.
#[derive(Debug, Clone)]
pub enum Norm {
    /// [`NormKind::Layer`]
    Layer(LayerNorm),
    /// [`NormKind::Rms`]
    Rms(RmsNorm),
}

impl Norm {
    /// A norm of this kind over rows of `d_model` numbers.
    pub fn new(builder: &Builder, kind: NormKind, d_model: usize, epsilon: f32) -> Result<Norm, Error> {
        Ok(match kind {
            NormKind::Layer => Norm::Layer(LayerNorm::new(builder, d_model, epsilon)?),
            NormKind::Rms => Norm::Rms(RmsNorm::new(builder, d_model, epsilon)?),
        })
    }

    /// The norm of `x: [tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        match self {
            Norm::Layer(norm) => norm.forward(tape, x),
            Norm::Rms(norm) => norm.forward(tape, x),
        }
    }

    /// The norm of `x + dropout(r)`, in one pass.
    pub fn forward_residual(&self, tape: &Tape, x: &Var, r: &Var, dropout: f32) -> Var {
        match self {
            Norm::Layer(norm) => norm.forward_residual(tape, x, r, dropout),
            Norm::Rms(norm) => norm.forward_residual(tape, x, r, dropout),
        }
    }
}
