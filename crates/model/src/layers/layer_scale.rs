//! Layer scale: a learned factor for each dimension of what a sublayer adds.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Parameter, Tape, Var};

/// `λ ⊙ x` (Touvron et al. 2021), with `λ: [d_model]`.
#[derive(Debug, Clone)]
pub struct LayerScale {
    lambda: Parameter,
}

impl LayerScale {
    /// Factors that are all `initial` at first.
    pub fn new(builder: &Builder, d_model: usize, initial: f32) -> Result<LayerScale, Error> {
        let lambda = builder.parameter("weight", [d_model], Init::Ones)?;
        if builder.is_random() {
            lambda.update(|ones| builder.backend().scale(&ones, initial));
        }
        Ok(LayerScale { lambda })
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        let lambda = tape.reshape(&tape.parameter(&self.lambda), [1, x.shape().cols()]);
        // The same row for each token.
        let rows = tape.backend().upload_i32(&vec![0; x.shape().rows()]);
        tape.mul(x, &tape.embedding(&lambda, &rows, 1.0, None))
    }
}
