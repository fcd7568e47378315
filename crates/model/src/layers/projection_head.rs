//! The projection head of DINO and iBOT, behind a backbone that learns without labels.
//!
//! ```text
//! z = W₃·gelu(W₂·gelu(W₁·x + b₁) + b₂) + b₃,   logits[c] = v_c / |v_c| · z / |z|
//! ```
//!
//! The last layer has normalised weights (Salimans and Kingma 2016): only the direction of each `v_c` counts, and a logit is a cosine.

use super::Linear;
use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Activation, DType, NormKind, NormVars, Parameter, Tape, Var};

/// The sizes of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectionSizes {
    /// Width of what goes in.
    pub d_model: usize,
    /// Width of the two layers in between.
    pub hidden: usize,
    /// Width of `z`.
    pub bottleneck: usize,
    /// How many logits come out.
    pub out: usize,
}

/// The head.
#[derive(Debug, Clone)]
pub struct ProjectionHead {
    layers: [Linear; 3],
    directions: Parameter,
}

/// Keeps the norm of a row of zeros from being divided by.
const EPSILON: f32 = 1e-12;

impl ProjectionHead {
    /// A head with the parameters that `builder` gives it, under the names of DINO's code.
    pub fn new(builder: &Builder, sizes: &ProjectionSizes) -> Result<ProjectionHead, Error> {
        let &ProjectionSizes { d_model, hidden, bottleneck, out } = sizes;
        let mlp = builder.at("mlp").with_deviation(0.02);
        let layer = |number: usize, inputs, outputs| Linear::new(&mlp.at(number), inputs, outputs);
        // Uniform in ±1/√d is what PyTorch draws; only directions count.
        let init = Init::Normal((3.0 * bottleneck as f32).powf(-0.5));
        Ok(ProjectionHead {
            layers: [layer(0, d_model, hidden)?, layer(2, hidden, hidden)?, layer(4, hidden, bottleneck)?],
            directions: builder.at("last_layer").parameter("weight_v", [out, bottleneck], init)?,
        })
    }

    /// The weights of the last layer.
    pub fn last_layer(&self) -> &Parameter {
        &self.directions
    }

    /// `[rows, d_model]` to logits in f32, `[rows, out]`. The last layer takes part in the backward pass if it `learns`.
    pub fn forward(&self, tape: &Tape, x: &Var, learns: bool) -> Var {
        let [first, second, third] = &self.layers;
        let x = first.forward_with(tape, x, Some(Activation::Gelu));
        let x = second.forward_with(tape, &x, Some(Activation::Gelu));
        // A small difference of logits counts much where they are divided by a low temperature.
        let z = tape.cast(&third.forward(tape, &x), DType::F32);
        let directions =
            if learns { tape.parameter(&self.directions) } else { tape.constant(self.directions.value()) };
        tape.linear(&unit_rows(tape, &z), &unit_rows(tape, &directions), None, None)
    }
}

/// `x / |x|` of each row: RMS norm with the scale `d^-0.5`.
fn unit_rows(tape: &Tape, x: &Var) -> Var {
    let d = x.shape().cols();
    let gamma = tape.backend().upload_f32(&vec![(d as f32).powf(-0.5); d], [d]);
    let norm = NormVars { kind: NormKind::Rms, gamma: tape.constant(gamma), beta: None, epsilon: EPSILON };
    tape.norm(x, &norm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_are_cosines_and_the_length_of_directions_does_not_count() {
        let backend = attentive_tensor::check::backend();
        let builder = Builder::random(&backend, 1);
        let sizes = ProjectionSizes { d_model: 8, hidden: 16, bottleneck: 6, out: 10 };
        let head = ProjectionHead::new(&builder, &sizes).unwrap();
        let x: Vec<f32> = (0..24).map(|i| ((i * 7 % 11) as f32) - 5.0).collect();
        let tape = Tape::inference(&backend);
        let x = tape.constant(backend.upload_f32(&x, [3, 8]));
        let logits = || backend.download_f32(head.forward(&tape, &x, true).value());
        let before = logits();
        assert!(before.iter().all(|logit| logit.abs() <= 1.0 + 1e-5), "{before:?}");
        head.directions.update(|value| backend.scale(&value, 3.0));
        assert!(before.iter().zip(logits()).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}
