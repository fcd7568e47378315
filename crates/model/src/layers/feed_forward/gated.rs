//! The gated feed-forward network.

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::Linear;
use attentive_tensor::{Activation, Tape, Var};

/// `GLU(x) = (activation(x·W₀) ⊙ x·W₁)·W_o` (Shazeer 2020), the same for every position: with GELU in T5 v1.1, with SiLU in Llama.
#[derive(Debug, Clone)]
pub struct GatedFeedForward {
    gate: Linear,
    inner: Linear,
    outer: Linear,
    activation: Activation,
    dropout: f32,
}

impl GatedFeedForward {
    /// From `d_model` twice to `d_ff` and back.
    pub fn new(
        builder: &Builder,
        d_model: usize,
        d_ff: usize,
        activation: Activation,
        bias: bool,
    ) -> Result<Self, Error> {
        let linear =
            |name, inputs, outputs| Linear::with_or_without_bias(&builder.at(name), inputs, outputs, bias);
        Ok(GatedFeedForward {
            gate: linear("wi_0", d_model, d_ff)?,
            inner: linear("wi_1", d_model, d_ff)?,
            outer: linear("wo", d_ff, d_model)?,
            activation,
            dropout: 0.0,
        })
    }

    /// The same with dropout of the inner numbers, as T5 has it.
    pub fn with_dropout(self, dropout: f32) -> Self {
        GatedFeedForward { dropout, ..self }
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        let gate = self.gate.forward_with(tape, x, Some(self.activation));
        let hidden = tape.mul(&gate, &self.inner.forward(tape, x));
        self.outer.forward(tape, &tape.dropout(&hidden, self.dropout))
    }
}
