//! Patches of pictures: a convolution whose kernel and stride are one patch, which is an unfolding and a product.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Parameter, Tape, Var};

/// `W·patch + b` for each patch of a picture: `[patches, channels · height · width]` to `[patches, d_model]`.
///
/// The weights are a kernel in files, `[d_model, channels, height, width]`.
#[derive(Debug, Clone)]
pub struct Patches {
    kernel: Parameter,
    /// The kernel as a product takes it, where it is not to be learned.
    packed: Option<Parameter>,
    bias: Parameter,
}

impl Patches {
    /// Patches of `channels` planes, of this height and width.
    pub fn new(
        builder: &Builder,
        channels: usize,
        [height, width]: [usize; 2],
        d_model: usize,
    ) -> Result<Patches, Error> {
        let kernel = builder.parameter("weight", [d_model, channels, height, width], Init::Xavier)?;
        let matrix =
            || Parameter::new(kernel.name(), kernel.value().reshape([d_model, channels * height * width]));
        // Pixels in int8 would lose more than the product gains: it is one of some fifty.
        let precise = builder.precise();
        let packed = builder.is_packed().then(|| precise.product_weights(matrix()));
        let bias = precise.product_parameter("bias", [d_model], Init::Zeros)?;
        Ok(Patches { packed: packed.transpose()?, kernel, bias })
    }

    /// `[patches, channels · height · width]` to `[patches, d_model]`.
    pub fn forward(&self, tape: &Tape, patches: &Var) -> Var {
        let weight = match &self.packed {
            Some(packed) => tape.parameter(packed),
            None => {
                let kernel = tape.parameter(&self.kernel);
                let (rows, len) = (kernel.shape()[0], kernel.shape().len());
                tape.reshape(&kernel, [rows, len / rows])
            }
        };
        tape.linear(patches, &weight, Some(&tape.parameter(&self.bias)), None)
    }
}

/// The patches of a picture, row by row; pixels on the right and below that do not fill a patch are left out.
///
/// `numbers: [channels, height, width]` to `[patches, channels, patch height, patch width]`.
///
/// # Panics
/// If there are not as many numbers as the size says.
pub fn unfold(numbers: &[f32], channels: usize, [height, width]: [usize; 2], patch: [usize; 2]) -> Vec<f32> {
    assert_eq!(numbers.len(), channels * height * width, "a picture of {channels} × {height} × {width}");
    let [rows, columns] = [height / patch[0], width / patch[1]];
    let mut patches = Vec::with_capacity(channels * rows * patch[0] * columns * patch[1]);
    for row in 0..rows {
        for column in 0..columns {
            for channel in 0..channels {
                for y in 0..patch[0] {
                    let from = (channel * height + row * patch[0] + y) * width + column * patch[1];
                    patches.extend_from_slice(&numbers[from..from + patch[1]]);
                }
            }
        }
    }
    patches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_its_channels_row_by_row() {
        // Two channels of 3 × 5, in patches of 2 × 2: one row of two patches, without the last row and column.
        let numbers: Vec<f32> = (0..30).map(|x| x as f32).collect();
        let expected = [
            [[0.0, 1.0, 5.0, 6.0], [15.0, 16.0, 20.0, 21.0]],
            [[2.0, 3.0, 7.0, 8.0], [17.0, 18.0, 22.0, 23.0]],
        ];
        assert_eq!(unfold(&numbers, 2, [3, 5], [2, 2]), expected.as_flattened().as_flattened());
    }
}
