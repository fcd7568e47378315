//! The residual connection around a sublayer, with its norm.

use super::Norm;
use attentive_tensor::{Tape, Var};

/// Where the norm stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NormPlacement {
    /// `norm(x + sublayer(x))`, as in the paper.
    #[default]
    Post,
    /// `x + sublayer(norm(x))`: easier to train deep. A stack of these ends with one more norm.
    Pre,
}

/// A residual connection with dropout and a norm.
#[derive(Debug, Clone)]
pub struct Residual {
    norm: Norm,
    placement: NormPlacement,
    dropout: f32,
}

impl Residual {
    /// A connection around a sublayer, with its norm.
    pub fn new(norm: Norm, placement: NormPlacement, dropout: f32) -> Residual {
        Residual { norm, placement, dropout }
    }

    /// `x` and what `sublayer` makes of it, `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var, sublayer: impl FnOnce(&Var) -> Var) -> Var {
        match self.placement {
            NormPlacement::Post => self.norm.forward_residual(tape, x, &sublayer(x), self.dropout),
            NormPlacement::Pre => tape.residual(x, &sublayer(&self.norm.forward(tape, x)), self.dropout),
        }
    }
}
