//! The dense layer.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Activation, Parameter, Tape, Var};

/// `y = activation(x · Wᵀ + b)`.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: Parameter,
    bias: Parameter,
}

impl Linear {
    /// A dense layer of `inputs` to `outputs` numbers: Xavier's weights, no bias at first.
    pub fn new(builder: &Builder, inputs: usize, outputs: usize) -> Result<Linear, Error> {
        Ok(Linear {
            weight: builder.product_parameter("weight", [outputs, inputs], Init::Xavier)?,
            bias: builder.product_parameter("bias", [outputs], Init::Zeros)?,
        })
    }

    /// `[tokens, inputs]` to `[tokens, outputs]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        self.forward_with(tape, x, None)
    }

    /// [`Linear::forward`] with an activation at the end, in the same pass.
    pub fn forward_with(&self, tape: &Tape, x: &Var, activation: Option<Activation>) -> Var {
        tape.linear(x, &tape.parameter(&self.weight), Some(&tape.parameter(&self.bias)), activation)
    }
}
