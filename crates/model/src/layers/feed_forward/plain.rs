//! The position-wise feed-forward network.

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::Linear;
use attentive_tensor::{Activation, Tape, Var};

/// `FFN(x) = activation(x·W₁ + b₁)·W₂ + b₂`, the same for every position, with or without the biases.
#[derive(Debug, Clone)]
pub struct FeedForward {
    inner: Linear,
    outer: Linear,
    activation: Activation,
    dropout: f32,
}

impl FeedForward {
    /// From `d_model` to `d_ff` and back.
    pub fn new(
        builder: &Builder,
        d_model: usize,
        d_ff: usize,
        activation: Activation,
        bias: bool,
    ) -> Result<Self, Error> {
        Ok(FeedForward {
            inner: Linear::with_or_without_bias(&builder.at("fc1"), d_model, d_ff, bias)?,
            outer: Linear::with_or_without_bias(&builder.at("fc2"), d_ff, d_model, bias)?,
            activation,
            dropout: 0.0,
        })
    }

    /// The same with dropout of the inner numbers, as T5 has it.
    pub fn with_dropout(self, dropout: f32) -> Self {
        FeedForward { dropout, ..self }
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        let hidden = self.inner.forward_with(tape, x, Some(self.activation));
        self.outer.forward(tape, &tape.dropout(&hidden, self.dropout))
    }
}
