//! The position-wise feed-forward network.

use super::Linear;
use crate::builder::Builder;
use crate::error::Error;
use attentive_tensor::{Activation, Tape, Var};

/// `FFN(x) = activation(x·W₁ + b₁)·W₂ + b₂`, the same for every position.
#[derive(Debug, Clone)]
pub struct FeedForward {
    inner: Linear,
    outer: Linear,
    activation: Activation,
}

impl FeedForward {
    /// From `d_model` to `d_ff` and back.
    pub fn new(
        builder: &Builder,
        d_model: usize,
        d_ff: usize,
        activation: Activation,
    ) -> Result<Self, Error> {
        Ok(FeedForward {
            inner: Linear::new(&builder.at("fc1"), d_model, d_ff)?,
            outer: Linear::new(&builder.at("fc2"), d_ff, d_model)?,
            activation,
        })
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        let hidden = self.inner.forward_with(tape, x, Some(self.activation));
        self.outer.forward(tape, &hidden)
    }
}
