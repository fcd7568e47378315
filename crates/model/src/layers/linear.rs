//! The dense layer.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Activation, Parameter, Tape, Var};

/// `y = activation(x · Wᵀ + b)`, with or without `b`.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
}

impl Linear {
    /// A dense layer of `inputs` to `outputs` numbers: Xavier's weights, a bias that starts as zeros.
    pub fn new(builder: &Builder, inputs: usize, outputs: usize) -> Result<Linear, Error> {
        let linear = Linear::without_bias(builder, inputs, outputs)?;
        Ok(Linear { bias: Some(builder.product_parameter("bias", [outputs], Init::Zeros)?), ..linear })
    }

    /// The same without a bias.
    pub fn without_bias(builder: &Builder, inputs: usize, outputs: usize) -> Result<Linear, Error> {
        let weight = builder.product_parameter("weight", [outputs, inputs], Init::Xavier)?;
        Ok(Linear { weight, bias: None })
    }

    /// Either of the two, as a family says.
    pub fn with_or_without_bias(
        builder: &Builder,
        inputs: usize,
        outputs: usize,
        bias: bool,
    ) -> Result<Linear, Error> {
        if bias {
            Linear::new(builder, inputs, outputs)
        } else {
            Linear::without_bias(builder, inputs, outputs)
        }
    }

    /// `[tokens, inputs]` to `[tokens, outputs]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        self.forward_with(tape, x, None)
    }

    /// [`Linear::forward`] with an activation at the end, in the same pass.
    pub fn forward_with(&self, tape: &Tape, x: &Var, activation: Option<Activation>) -> Var {
        let bias = self.bias.as_ref().map(|bias| tape.parameter(bias));
        tape.linear(x, &tape.parameter(&self.weight), bias.as_ref(), activation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_bias_nothing_is_added_and_nothing_else_is_learned() {
        let backend = attentive_tensor::check::backend();
        let builder = Builder::random(&backend, 1);
        let with = Linear::new(&builder.at("with"), 3, 2).unwrap();
        let without = Linear::without_bias(&builder.at("without"), 3, 2).unwrap();
        let names: Vec<_> = builder.parameters().iter().map(|p| p.name().to_owned()).collect();
        assert_eq!(names, ["with.weight", "with.bias", "without.weight"]);
        let tape = Tape::inference(&backend);
        let zeros = tape.constant(backend.upload_f32(&[0.0; 3], [1, 3]));
        builder.parameters()[1].update(|_| backend.upload_f32(&[5.0, 6.0], [2]));
        assert_eq!(backend.download_f32(with.forward(&tape, &zeros).value()), [5.0, 6.0]);
        assert_eq!(backend.download_f32(without.forward(&tape, &zeros).value()), [0.0, 0.0]);
    }
}
