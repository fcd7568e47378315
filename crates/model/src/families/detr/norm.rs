//! A convolution with its norm.
//!
//! A frozen batch norm, `γ · (x - mean) / √(variance + ε) + β` with constant numbers, scales and shifts each channel. So it is folded into
//! the convolution: the weights of the convolution are multiplied by the scale, and the shift becomes its bias.

use super::config::PictureNorm;
use crate::builder::{Builder, Init};
use crate::error::Error;
use crate::layers::{Convolution, EPSILON, as_matrix};
use attentive_tensor::{
    Activation, Backend, Binary, NormKind, NormVars, Parameter, Pictures, Tape, Tensor, Var, Window,
};
use std::sync::OnceLock;

/// `y = activation(norm(convolution(x)))`
#[derive(Debug)]
pub(super) struct NormedConvolution {
    weight: Parameter,
    window: Window,
    outputs: usize,
    norm: Norm,
    /// Whether training changes the weights. Otherwise they stay as they were read.
    learned: bool,
}

#[derive(Debug)]
enum Norm {
    /// A batch norm with the statistics that it was trained with.
    Frozen {
        gamma: Parameter,
        beta: Parameter,
        mean: Parameter,
        variance: Parameter,
        folded: OnceLock<Folded>,
    },
    /// A norm over groups of channels of each picture.
    Group { gamma: Parameter, beta: Parameter, groups: usize },
}

/// A frozen norm as a scale and a shift.
#[derive(Debug)]
struct Folded {
    /// The scale, repeated for each weight of the convolution; none if the weights have been multiplied by it.
    scale: Option<Tensor>,
    /// The shift, `[outputs]`.
    shift: Tensor,
}

impl NormedConvolution {
    /// `names` are those of the convolution and of the norm.
    pub fn new(
        builder: &Builder,
        names: [&str; 2],
        kind: PictureNorm,
        window: Window,
        (inputs, outputs): (usize, usize),
        learned: bool,
    ) -> Result<NormedConvolution, Error> {
        let weight = Convolution::weight(&builder.at(names[0]), window, inputs, outputs)?;
        let of_norm = builder.at(names[1]);
        let vector = |name: &str, init: Init| of_norm.parameter(name, [outputs], init);
        let (gamma, beta) = (vector("weight", Init::Ones)?, vector("bias", Init::Zeros)?);
        let norm = match kind {
            PictureNorm::Group(groups) => Norm::Group { gamma, beta, groups },
            PictureNorm::Frozen => Norm::Frozen {
                gamma,
                beta,
                mean: vector("running_mean", Init::Zeros)?,
                variance: vector("running_var", Init::Ones)?,
                folded: OnceLock::new(),
            },
        };
        let layer = NormedConvolution { weight, window, outputs, norm, learned };
        let backend = &**builder.backend();
        let prepared = builder.prepared_as(&layer.weight, || layer.scaled_weight(backend));
        Ok(match prepared {
            Some(weight) => NormedConvolution { weight, ..layer },
            None => layer,
        })
    }

    /// The weights as a matrix, multiplied by the scale of a frozen norm. The scale is dropped then.
    fn scaled_weight(&self, backend: &dyn Backend) -> Tensor {
        let value = self.weight.value();
        let matrix = value.reshape([self.outputs, value.shape().len() / self.outputs]);
        let Norm::Frozen { folded, .. } = &self.norm else { return matrix };
        let Folded { scale, shift } = self.fold(backend, matrix.shape().cols());
        folded.get_or_init(|| Folded { scale: None, shift });
        scale.map_or(matrix.clone(), |scale| backend.binary(Binary::Mul, &matrix, &scale))
    }

    /// The scale and the shift of a frozen norm.
    fn fold(&self, backend: &dyn Backend, width: usize) -> Folded {
        let Norm::Frozen { gamma, beta, mean, variance, .. } = &self.norm else {
            panic!("a group norm cannot be folded");
        };
        let [gamma, beta, mean, variance] =
            [gamma, beta, mean, variance].map(|parameter| backend.download_f32(&parameter.value()));
        let scale: Vec<f32> = gamma
            .iter()
            .zip(&variance)
            .map(|(gamma, variance)| gamma / (variance + EPSILON).sqrt())
            .collect();
        let shift: Vec<f32> = (0..self.outputs).map(|i| beta[i] - mean[i] * scale[i]).collect();
        let wide: Vec<f32> = scale.iter().flat_map(|&scale| std::iter::repeat_n(scale, width)).collect();
        Folded {
            scale: Some(backend.upload_f32(&wide, [self.outputs, width])),
            shift: backend.upload_f32(&shift, [self.outputs]),
        }
    }

    /// `[pixels, inputs]` to `[cells, outputs]`, and the sizes of these feature maps.
    pub fn forward(
        &self,
        tape: &Tape,
        x: &Var,
        pictures: &Pictures,
        activation: Option<Activation>,
    ) -> (Var, Pictures) {
        let variable = |parameter: &Parameter| {
            if self.learned { tape.parameter(parameter) } else { tape.constant(parameter.value()) }
        };
        let weight = as_matrix(tape, &variable(&self.weight), self.outputs);
        let smaller = pictures.under(&self.window);
        let y = match &self.norm {
            Norm::Frozen { folded, .. } => {
                let backend = &**tape.backend();
                let Folded { scale, shift } =
                    folded.get_or_init(|| self.fold(backend, weight.shape().cols()));
                let scaled = scale.as_ref().map(|scale| tape.mul(&weight, &tape.constant(scale.clone())));
                let (weight, shift) = (scaled.unwrap_or(weight), tape.constant(shift.clone()));
                tape.convolution(x, pictures, &self.window, (&weight, Some(&shift)), activation)
            }
            Norm::Group { gamma, beta, groups } => {
                let y = tape.convolution(x, pictures, &self.window, (&weight, None), None);
                let (gamma, beta) = (variable(gamma), Some(variable(beta)));
                let vars = NormVars { kind: NormKind::Layer, gamma, beta, epsilon: EPSILON };
                let y = tape.group_norm(&y, &vars, *groups, &smaller.offsets(&**tape.backend()));
                activation.map_or(y.clone(), |activation| tape.activate(activation, &y))
            }
        };
        (y, smaller)
    }
}
