//! The residual connection around a sublayer, with its norm.

use super::{LayerScale, Norm};
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

/// A residual connection with dropout and a norm, and with layer scale if a family has it.
#[derive(Debug, Clone)]
pub struct Residual {
    norm: Norm,
    placement: NormPlacement,
    dropout: f32,
    scale: Option<LayerScale>,
}

impl Residual {
    /// A connection around a sublayer, with its norm.
    pub fn new(norm: Norm, placement: NormPlacement, dropout: f32) -> Residual {
        Residual { norm, placement, dropout, scale: None }
    }

    /// The same with factors for what the sublayer adds.
    pub fn with_scale(self, scale: Option<LayerScale>) -> Residual {
        Residual { scale, ..self }
    }

    /// `x` and what `sublayer` makes of it, `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var, sublayer: impl FnOnce(&Var) -> Var) -> Var {
        let sublayer = |x: &Var| {
            let y = sublayer(x);
            self.scale.as_ref().map_or(y.clone(), |scale| scale.forward(tape, &y))
        };
        let y = match self.placement {
            NormPlacement::Post => self.norm.forward_residual(tape, x, &sublayer(x), self.dropout),
            NormPlacement::Pre => tape.residual(x, &sublayer(&self.norm.forward(tape, x)), self.dropout),
        };
        tape.watch_state(y)
    }
}
