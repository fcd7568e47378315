//! Convolution over packed pictures.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Parameter, Pictures, Tape, Var, Window};

/// `y = Σ W[pixel] · x[place + pixel] + b` over the pixels of a window.
///
/// ```
/// use attentive_model::{Builder, layers::Convolution};
/// use attentive_tensor::{CpuBackend, Pictures, Tape, Window};
///
/// let backend = CpuBackend::from_env()?.shared();
/// let convolution = Convolution::new(&Builder::random(&backend, 1), Window::square(3, 2), 3, 8)?;
///
/// let pictures = Pictures::new([[4, 6]]); // one picture, 4 pixels high and 6 wide
/// let tape = Tape::inference(&backend);
/// let x = tape.constant(backend.upload_f32(&[0.5; 4 * 6 * 3], [4 * 6, 3]));
/// let (y, smaller) = convolution.forward(&tape, &x, &pictures);
/// assert_eq!((y.shape().to_string(), smaller.sizes()), ("[6, 8]".to_owned(), &[[2, 3]][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Convolution {
    /// `[outputs, height, width, inputs]`
    weight: Parameter,
    bias: Parameter,
    window: Window,
    outputs: usize,
}

impl Convolution {
    /// A convolution from so many channels to so many, with a bias of zeros.
    pub fn new(
        builder: &Builder,
        window: Window,
        inputs: usize,
        outputs: usize,
    ) -> Result<Convolution, Error> {
        let weight = Convolution::weight(builder, window, inputs, outputs)?;
        let matrix = || weight.value().reshape([outputs, window.pixels() * inputs]);
        let prepared = builder.prepared_as(&weight, matrix);
        let bias = builder.product_parameter("bias", [outputs], Init::Zeros)?;
        Ok(Convolution { weight: prepared.unwrap_or(weight), bias, window, outputs })
    }

    /// The weights alone, `[outputs, height, width, inputs]`: from N(0, 2 / (outputs · height · width)), as ResNet draws them (He et al.
    /// 2015), which keeps the size of gradients behind a ReLU.
    pub(crate) fn weight(
        builder: &Builder,
        window: Window,
        inputs: usize,
        outputs: usize,
    ) -> Result<Parameter, Error> {
        let deviation = (2.0 / (outputs * window.pixels()) as f32).sqrt();
        let shape = [outputs, window.kernel[0], window.kernel[1], inputs];
        builder.parameter("weight", shape, Init::Normal(deviation))
    }

    /// `[pixels, inputs]` to `[places, outputs]`, and the pictures that these are.
    pub fn forward(&self, tape: &Tape, x: &Var, pictures: &Pictures) -> (Var, Pictures) {
        let weight = as_matrix(tape, &tape.parameter(&self.weight), self.outputs);
        let bias = tape.parameter(&self.bias);
        let y = tape.convolution(x, pictures, &self.window, (&weight, Some(&bias)), None);
        (y, pictures.under(&self.window))
    }
}

/// Weights as products take them, `[outputs, height · width · inputs]`.
pub(crate) fn as_matrix(tape: &Tape, weight: &Var, outputs: usize) -> Var {
    let shape = weight.shape();
    if shape[..].len() == 2 { weight.clone() } else { tape.reshape(weight, [outputs, shape.len() / outputs]) }
}
