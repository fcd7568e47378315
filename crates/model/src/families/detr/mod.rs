//! DETR: a convolutional backbone, and a Transformer from a picture to a set of boxes.
//!
//! ```text
//! pixels ─► backbone ─► projection ─► encoder ─► decoder ─► class, box
//!           a ResNet     + positions              ▲          of each query
//!                                          object queries
//! ```
//!
//! Pictures of a batch are packed like the sequences of other families: each has its own size, and none is padded. The backbone turns a
//! picture into a feature map, whose cells are the tokens of the encoder.

mod backbone;
mod boxes;
mod config;
mod decoder;
mod folder;
mod guide;
mod loss;
mod matching;
mod names;
mod norm;
mod position;

pub use boxes::LocatedBox;
pub use config::{BackboneConfig, BackboneNames, BlockKind, DetrConfig, LossWeights, PictureNorm};
pub(super) use folder::tensors;
pub use loss::{MatchedLoss, Targets};
pub use matching::assign;

use crate::builder::{Builder, Init};
use crate::error::Error;
use crate::layers::{Convolution, EPSILON, EncoderLayer, LayerNorm, Linear};
use crate::names::Unused;
use crate::sequences::Sequences;
use attentive_tensor::{Activation, Backend, DType, Parameter, Pictures, Tape, Tensor, Var, Window};
use backbone::Backbone;
use decoder::{DecoderLayer, Memory};

/// Pictures as a DETR reads them.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Normalised numbers, `[pixels, 3]`.
    pixels: Tensor,
    pictures: Pictures,
}

impl Batch {
    /// Pictures of these heights and widths, each with red, green and blue of a pixel after those of the one before, row by row.
    ///
    /// # Panics
    /// If there are not three numbers for each pixel.
    pub fn new(backend: &dyn Backend, pictures: &[([usize; 2], &[f32])]) -> Batch {
        let sizes = Pictures::new(pictures.iter().map(|(size, _)| *size));
        let numbers: Vec<f32> = pictures.iter().flat_map(|(_, numbers)| *numbers).copied().collect();
        let pixels = backend.upload_f32(&numbers, [sizes.lengths().sum(), 3]);
        Batch { pixels: backend.cast(&pixels, backend.activations()), pictures: sizes }
    }

    /// How many pictures there are.
    pub fn len(&self) -> usize {
        self.pictures.sizes().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The predictions of a DETR: a row for each query of each picture, in f32.
#[derive(Debug, Clone)]
pub struct Found {
    /// The logits of the classes, the last of which is "no object": `[pictures · queries, classes + 1]`.
    pub classes: Var,
    /// Centre, width and height before the sigmoid, which makes them relative to the picture: `[pictures · queries, 4]`.
    pub boxes: Var,
}

/// The hidden states of a DETR.
#[derive(Debug, Clone)]
pub struct States {
    /// The input of the encoder, and the output of each of its layers: `[cells, d_model]`.
    pub encoder: Vec<Var>,
    /// The output of each layer of the decoder, normed: `[pictures · queries, d_model]`.
    pub decoder: Vec<Var>,
    /// The rows and columns of each picture's feature map.
    maps: Pictures,
}

/// A DETR.
#[derive(Debug)]
pub struct Detr {
    config: DetrConfig,
    backbone: Backbone,
    projection: Convolution,
    encoder: Vec<EncoderLayer>,
    queries: Parameter,
    decoder: Vec<DecoderLayer>,
    norm: LayerNorm,
    classes: Linear,
    boxes: [Linear; 3],
    parameters: Vec<Parameter>,
    unused: Unused,
}

impl Detr {
    /// A model with the parameters that `builder` gives it.
    pub fn new(builder: &Builder, config: &DetrConfig) -> Result<Detr, Error> {
        Detr::with_classes(builder, builder, config)
    }

    /// [`Detr::new`] with another builder for the class head.
    fn with_classes(builder: &Builder, classes: &Builder, config: &DetrConfig) -> Result<Detr, Error> {
        config.check()?;
        let d = config.d_model;
        let width = config.backbone.widths.last().copied().unwrap_or_default();
        let (encoder, decoder) = config.stacks()?;
        let layers = |count: usize, part: &str| {
            (0..count).map(|n| builder.at(part).at("layers").at(n)).collect::<Vec<_>>()
        };
        let of_encoder = layers(encoder.layers, "encoder");
        let of_decoder = layers(decoder.layers, "decoder");
        // Heads compute in f32, whatever the type of activations: the eight significant bits of bf16 are too few for a coordinate.
        let boxes = builder.unprepared().at("boxes").at("layers");
        let classes = classes.unprepared();
        Ok(Detr {
            config: config.clone(),
            backbone: Backbone::new(&builder.at("backbone"), &config.backbone)?,
            projection: Convolution::new(&builder.at("projection"), Window::square(1, 1), width, d)?,
            encoder: of_encoder.iter().map(|at| EncoderLayer::new(at, &encoder)).collect::<Result<_, _>>()?,
            queries: builder.at("queries").parameter("weight", [config.queries, d], Init::Normal(1.0))?,
            decoder: of_decoder.iter().map(|at| DecoderLayer::new(at, &decoder)).collect::<Result<_, _>>()?,
            norm: LayerNorm::new(&builder.at("decoder.layer_norm"), d, EPSILON)?,
            classes: Linear::new(&classes.at("classes"), d, config.labels.len() + 1)?,
            boxes: [
                Linear::new(&boxes.at(0), d, d)?,
                Linear::new(&boxes.at(1), d, d)?,
                Linear::new(&boxes.at(2), d, 4)?,
            ],
            parameters: builder.parameters(),
            unused: Unused::default(),
        })
    }

    /// What it was made from.
    pub fn config(&self) -> &DetrConfig {
        &self.config
    }

    /// Everything that its folder has: what is learned, and the statistics of frozen norms.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// How many numbers that is.
    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(|parameter| parameter.value().shape().len()).sum()
    }

    /// The tensors of its folder that it did not take.
    pub fn unused(&self) -> &Unused {
        &self.unused
    }

    /// The hidden states behind each layer.
    pub fn states(&self, tape: &Tape, batch: &Batch) -> States {
        let backend = &**tape.backend();
        let (features, maps) =
            self.backbone.forward(tape, &tape.constant(batch.pixels.clone()), &batch.pictures);
        let (x, maps) = self.projection.forward(tape, &features, &maps);
        let of_picture = Sequences::new(maps.lengths());
        let positions = backend.upload_f32(&position::positions(&maps, self.config.d_model), x.shape());
        let positions = tape.constant(backend.cast(&positions, x.value().dtype()));
        let within = of_picture.attending(backend, &of_picture);
        let mut encoder = vec![x];
        for layer in &self.encoder {
            let x = encoder.last().expect("the input is there");
            let y = layer.forward_with(tape, x, |attention, x| {
                let placed = tape.add(x, &positions);
                attention.forward_apart(tape, [&placed, &placed, x], &within, None)
            });
            encoder.push(y);
        }
        let output = encoder.last().expect("the input is there");
        let queries = Sequences::new(std::iter::repeat_n(self.config.queries, batch.len()));
        let memory = Memory {
            keys: &tape.add(output, &positions),
            values: output,
            own: queries.attending(backend, &queries),
            cross: queries.attending(backend, &of_picture),
        };
        let rows = backend.upload_i32(&queries.positions());
        let of_queries = tape.embedding(&tape.parameter(&self.queries), &rows, 1.0, None);
        let mut x = tape.constant(backend.zeros(of_queries.shape(), of_queries.value().dtype()));
        let mut decoder = Vec::new();
        for layer in &self.decoder {
            x = layer.forward(tape, &x, &of_queries, &memory);
            let normed = self.norm.forward(tape, &x);
            if self.config.normed_between {
                x = normed.clone();
            }
            decoder.push(normed);
        }
        if let Some(last) = decoder.last_mut().filter(|_| self.config.normed_between) {
            *last = self.norm.forward(tape, last);
        }
        States { encoder, decoder, maps }
    }

    /// The predictions of the heads from normed hidden states, a row for each of them.
    pub fn heads(&self, tape: &Tape, hidden: &Var) -> Found {
        let hidden = tape.cast(hidden, DType::F32);
        let classes = self.classes.forward(tape, &hidden);
        let relu = Some(Activation::Relu);
        let [first, second, third] = &self.boxes;
        let inner = second.forward_with(tape, &first.forward_with(tape, &hidden, relu), relu);
        Found { classes, boxes: third.forward(tape, &inner) }
    }

    /// The predictions for pictures, by the last layer of the decoder.
    pub fn forward(&self, tape: &Tape, batch: &Batch) -> Found {
        let states = self.states(tape, batch);
        self.heads(tape, states.decoder.last().expect("a decoder has layers"))
    }

    /// The loss of a batch, and its terms. The terms of the boxes are divided by `boxes`: the number of objects in the batch, at least 1.
    ///
    /// # Panics
    /// If there are not as many targets as pictures.
    pub fn loss(&self, tape: &Tape, batch: &Batch, targets: &[Targets], boxes: f32) -> (Var, MatchedLoss) {
        let (_, loss, parts) = self.found_and_loss(tape, batch, targets, boxes);
        (loss, parts)
    }

    /// [`Detr::forward`] and [`Detr::loss`] in one pass.
    ///
    /// # Panics
    /// If there are not as many targets as pictures.
    pub fn found_and_loss(
        &self,
        tape: &Tape,
        batch: &Batch,
        targets: &[Targets],
        boxes: f32,
    ) -> (Found, Var, MatchedLoss) {
        let states = self.states(tape, batch);
        let (mut found, loss, parts) = self.matched(tape, &states, targets, &self.config.loss, boxes);
        (found.pop().expect("a decoder has layers"), loss, parts)
    }

    /// [`Detr::loss`] for a model with random weights, plus the guide: the loss of the heads' predictions from the cells of the encoder's
    /// output. The class loss has four times its weight in both.
    ///
    /// # Panics
    /// If there are not as many targets as pictures.
    pub fn guided_loss(&self, tape: &Tape, batch: &Batch, targets: &[Targets], boxes: f32) -> Var {
        let states = self.states(tape, batch);
        let weights = LossWeights { class_loss: guide::CLASS_LOSS, ..self.config.loss };
        let (_, loss, _) = self.matched(tape, &states, targets, &weights, boxes);
        let output = states.encoder.last().expect("the input is there");
        let of_cells = self.heads(tape, &self.norm.forward(tape, output));
        let cell_targets = guide::cell_targets(&states.maps, targets);
        tape.add(&loss, &loss::assigned(tape, &of_cells, &cell_targets, &weights))
    }

    /// The predictions of each layer of the decoder, and their matched loss.
    fn matched(
        &self,
        tape: &Tape,
        states: &States,
        targets: &[Targets],
        weights: &LossWeights,
        boxes: f32,
    ) -> (Vec<Found>, Var, MatchedLoss) {
        let pictures = states.maps.sizes().len();
        assert_eq!(targets.len(), pictures, "targets for {} of {pictures} pictures", targets.len());
        let found: Vec<Found> = states.decoder.iter().map(|x| self.heads(tape, x)).collect();
        let (loss, parts) = loss::matched(tape, &found, targets, weights, boxes);
        (found, loss, parts)
    }
}
