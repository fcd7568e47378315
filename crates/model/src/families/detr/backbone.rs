//! The backbone, a ResNet: blocks of convolutions with a residual connection. Its feature map is 16 or 32 times smaller than the picture.
//!
//! ```text
//! stem:        relu(norm(7 × 7 convolution, stride 2)) → maximum of 3 × 3, stride 2
//! basic:       relu(x' + norm(3 × 3(relu(norm(3 × 3(x))))))
//! bottleneck:  relu(x' + norm(1 × 1(relu(norm(3 × 3(relu(norm(1 × 1(x)))))))))
//! ```
//!
//! `x'` is `x`, or a normed 1 × 1 convolution of it where its size or its width changes. The first block of each stage but the first
//! halves the picture. Names are those of torchvision and timm.

use super::config::{BackboneConfig, BlockKind, PictureNorm};
use super::norm::NormedConvolution;
use crate::builder::Builder;
use crate::error::Error;
use attentive_tensor::{Activation, Pictures, Tape, Var, Window};

const RELU: Option<Activation> = Some(Activation::Relu);
const POOL: Window = Window { kernel: [3; 2], stride: [2; 2], padding: [1; 2] };

/// Stem and stages.
#[derive(Debug)]
pub(super) struct Backbone {
    stem: NormedConvolution,
    blocks: Vec<Block>,
}

/// A path of convolutions, and the shortcut around them: the identity if there is no convolution for it.
#[derive(Debug)]
struct Block {
    path: Vec<NormedConvolution>,
    shortcut: Option<NormedConvolution>,
}

impl Backbone {
    pub fn new(builder: &Builder, config: &BackboneConfig) -> Result<Backbone, Error> {
        // As in DETR, the stem and the first stage of a pretrained backbone stay frozen.
        let learns_all = config.norm != PictureNorm::Frozen;
        let ends = (config.channels, config.stem_width);
        let stem = ["conv1", "bn1"];
        let stem =
            NormedConvolution::new(builder, stem, config.norm, Window::square(7, 2), ends, learns_all)?;
        let (mut blocks, mut width) = (Vec::new(), config.stem_width);
        for (stage, (&depth, &outputs)) in config.depths.iter().zip(&config.widths).enumerate() {
            let builder = builder.at(format_args!("layer{}", stage + 1));
            for number in 0..depth {
                let stride = if number == 0 && stage > 0 { 2 } else { 1 };
                let learned = learns_all || stage > 0;
                blocks.push(Block::new(&builder.at(number), config, (width, outputs), stride, learned)?);
                width = outputs;
            }
        }
        Ok(Backbone { stem, blocks })
    }

    /// `[pixels, channels]` to the feature maps `[cells, width of the last stage]`, and the sizes of these maps.
    pub fn forward(&self, tape: &Tape, x: &Var, pictures: &Pictures) -> (Var, Pictures) {
        let (x, pictures) = self.stem.forward(tape, x, pictures, RELU);
        let pooled = (tape.max_pool(&x, &pictures, &POOL), pictures.under(&POOL));
        self.blocks.iter().fold(pooled, |(x, pictures), block| block.forward(tape, &x, &pictures))
    }
}

impl Block {
    fn new(
        builder: &Builder,
        config: &BackboneConfig,
        (inputs, outputs): (usize, usize),
        stride: usize,
        learned: bool,
    ) -> Result<Block, Error> {
        let convolution = |names, size, stride, ends| {
            NormedConvolution::new(builder, names, config.norm, Window::square(size, stride), ends, learned)
        };
        let (first, second, third) = (["conv1", "bn1"], ["conv2", "bn2"], ["conv3", "bn3"]);
        let path = match config.block {
            BlockKind::Basic => vec![
                convolution(first, 3, stride, (inputs, outputs))?,
                convolution(second, 3, 1, (outputs, outputs))?,
            ],
            BlockKind::Bottleneck => {
                let narrow = outputs / 4;
                let strides = if config.early_stride { [stride, 1] } else { [1, stride] };
                vec![
                    convolution(first, 1, strides[0], (inputs, narrow))?,
                    convolution(second, 3, strides[1], (narrow, narrow))?,
                    convolution(third, 1, 1, (narrow, outputs))?,
                ]
            }
        };
        let changes = stride != 1 || inputs != outputs;
        let shortcut = || convolution(["downsample.0", "downsample.1"], 1, stride, (inputs, outputs));
        Ok(Block { path, shortcut: changes.then(shortcut).transpose()? })
    }

    fn forward(&self, tape: &Tape, x: &Var, pictures: &Pictures) -> (Var, Pictures) {
        let (last, first) = self.path.split_last().expect("a block has convolutions");
        let inner = first.iter().fold((x.clone(), pictures.clone()), |(x, pictures), convolution| {
            convolution.forward(tape, &x, &pictures, RELU)
        });
        let (y, smaller) = last.forward(tape, &inner.0, &inner.1, None);
        let kept = self.shortcut.as_ref().map(|shortcut| shortcut.forward(tape, x, pictures, None).0);
        let sum = tape.add(&y, kept.as_ref().unwrap_or(x));
        (tape.activate(Activation::Relu, &sum), smaller)
    }
}
