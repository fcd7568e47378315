//! The convolution of large DeBERTas: a token sees its neighbours in the embedded text.
//!
//! `y_i = norm(r_i + activation(dropout(Σ_t W_t · x_(i+t) + b)))`, with `t` from `-width/2` to `width/2` and zeros beyond the ends of a text.

use crate::builder::{Builder, Init};
use crate::error::Error;
use crate::layers::LayerNorm;
use crate::sequences::Sequences;
use attentive_tensor::{Activation, Parameter, Rectangle, Tape, Var};

/// A convolution over tokens, its activation, and the norm around it.
#[derive(Debug, Clone)]
pub(super) struct Convolution {
    /// `[d_model, d_model, width]`, as PyTorch has it.
    weight: Parameter,
    bias: Parameter,
    norm: LayerNorm,
    activation: Activation,
    dropout: f32,
}

impl Convolution {
    /// A convolution of this width, which is odd.
    pub fn new(
        builder: &Builder,
        [d_model, width]: [usize; 2],
        activation: Activation,
        (epsilon, dropout): (f32, f32),
    ) -> Result<Convolution, Error> {
        Ok(Convolution {
            weight: builder.parameter("weight", [d_model, d_model, width], Init::Xavier)?,
            bias: builder.parameter("bias", [d_model], Init::Zeros)?,
            norm: LayerNorm::new(&builder.at("layer_norm"), d_model, epsilon)?,
            activation,
            dropout,
        })
    }

    /// `x` is what is convolved, and `residual` what it is added to: `[tokens, d_model]` each.
    pub fn forward(&self, tape: &Tape, x: &Var, residual: &Var, sequences: &Sequences) -> Var {
        let weight = tape.parameter(&self.weight);
        let &[outputs, inputs, width] = &weight.shape()[..] else { panic!("a convolution has three axes") };
        let taps = tape.reshape(&weight, [outputs * inputs, width]);
        let mut sum: Option<Var> = None;
        for tap in 0..width {
            let Some(neighbours) = shifted(tape, x, sequences, tap, width / 2) else { continue };
            let matrix = tape.reshape(&tape.slice_columns(&taps, tap..tap + 1), [outputs, inputs]);
            let bias = sum.is_none().then(|| tape.parameter(&self.bias));
            let product = tape.linear(&neighbours, &matrix, bias.as_ref(), None);
            sum = Some(sum.map_or(product.clone(), |sum| tape.add(&sum, &product)));
        }
        let Some(sum) = sum else { return residual.clone() };
        let activated = tape.activate(self.activation, &tape.dropout(&sum, self.dropout));
        self.norm.forward(tape, &tape.add(residual, &activated))
    }
}

/// The row that stands `tap - middle` behind each, zeros where its text has none; none if no text is so long.
fn shifted(tape: &Tape, x: &Var, sequences: &Sequences, tap: usize, middle: usize) -> Option<Var> {
    let (after, before) = (tap.saturating_sub(middle), middle.saturating_sub(tap));
    let d = x.shape().cols();
    let place = |rows: std::ops::Range<usize>| {
        let count = rows.len().checked_sub(after + before).filter(|count| *count > 0)?;
        let rectangle =
            Rectangle { from: [rows.start + after, 0], to: [rows.start + before, 0], size: [count, d] };
        Some((x, rectangle))
    };
    let places: Vec<_> = sequences.ranges().filter_map(place).collect();
    (!places.is_empty()).then(|| tape.assemble(x.shape(), &places))
}
