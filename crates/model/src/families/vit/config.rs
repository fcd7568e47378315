//! The sizes of a ViT, and its `config.json`.

use super::{Relative, Task};
use crate::checkpoint::CONFIG;
use crate::checkpoint::Staged;
use crate::error::Error;
use crate::families::labels::{Problem, default_labels, labels};
use crate::families::{ConfigFile, Family};
use crate::layers::{
    FeedForwardKind, MultiHeadConfig, NormPlacement, ProjectionBiases, StackConfig, activation_named,
    name_of_activation,
};
use crate::limits::{self, MOST_LAYERS, WIDEST};
use attentive_tensor::Activation;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeMap;
use std::path::Path;

/// The longest side of a picture, in pixels.
const LONGEST: usize = 1 << 14;

/// What a ViT is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct VitConfig {
    /// The family: ViT itself, or one that shares its encoder.
    pub relative: Relative,
    /// Height and width of the pictures that it was trained with.
    pub image_size: [usize; 2],
    /// Height and width of a patch.
    pub patch_size: [usize; 2],
    /// The planes of a picture: 3 for red, green and blue.
    pub channels: usize,
    /// The width of the model.
    pub d_model: usize,
    /// The number of heads of each attention.
    pub h: usize,
    /// The width between the products of the feed-forward network.
    pub d_ff: usize,
    /// N, the number of layers.
    pub layers: usize,
    /// The function in the feed-forward network.
    pub activation: Activation,
    /// Whether the feed-forward network is gated.
    pub feed_forward: FeedForwardKind,
    /// ε of the norms.
    pub epsilon: f32,
    /// Whether queries, keys and values have biases.
    pub qkv_bias: bool,
    /// The initial value of layer scale, if the model has it.
    pub layer_scale: Option<f32>,
    /// The number of register tokens, whose outputs are not used.
    pub registers: usize,
    /// The width of the pooler and its activation.
    pub pooler: (usize, Activation),
    /// Dropout of the embedded input and, but for DINOv2, of each sublayer's output.
    pub dropout: f32,
    /// Dropout of attention weights.
    pub attention_dropout: f32,
    /// The standard deviation of random initial values.
    pub deviation: f32,
    /// The names of the classes, in order.
    pub labels: Vec<String>,
    /// The kind of classification, if the configuration has it.
    pub problem: Option<Problem>,
}

/// One length for both directions, or height and width.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Sides {
    Square(usize),
    Each([usize; 2]),
}

impl Sides {
    fn of([height, width]: [usize; 2]) -> Sides {
        if height == width { Sides::Square(height) } else { Sides::Each([height, width]) }
    }

    fn each(self) -> [usize; 2] {
        match self {
            Sides::Square(side) => [side; 2],
            Sides::Each(sides) => sides,
        }
    }
}

/// `config.json`. Missing fields have the defaults of transformers, except for sizes, which are required.
#[derive(Debug, Serialize, Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intermediate_size: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mlp_ratio: Option<Number>,
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default)]
    hidden_dropout_prob: f32,
    #[serde(default)]
    attention_probs_dropout_prob: f32,
    #[serde(default = "deviation")]
    initializer_range: f32,
    #[serde(default)]
    layer_norm_eps: Option<f32>,
    #[serde(default = "image_size")]
    image_size: Sides,
    #[serde(default)]
    patch_size: Option<Sides>,
    #[serde(default = "channels")]
    num_channels: usize,
    #[serde(default = "yes")]
    qkv_bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layerscale_value: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    use_swiglu_ffn: Option<bool>,
    /// We save no token for hidden patches.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    use_mask_token: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    num_register_tokens: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pooler_output_size: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pooler_act: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    num_labels: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id2label: Option<BTreeMap<usize, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label2id: Option<BTreeMap<String, usize>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem_type: Option<Problem>,
    #[serde(skip_deserializing)]
    dtype: Option<&'static str>,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn deviation() -> f32 {
    0.02
}

fn image_size() -> Sides {
    Sides::Square(224)
}

fn channels() -> usize {
    3
}

fn yes() -> bool {
    true
}

/// The width of DINOv2's feed-forward network from its ratio to `d_model`. A gated network has two thirds of it, rounded up to a multiple
/// of 8.
fn width_of(d_model: usize, ratio: f64, is_gated: bool) -> usize {
    let plain = (d_model as f64 * ratio) as usize;
    if is_gated { (plain * 2 / 3).next_multiple_of(8) } else { plain }
}

/// A ratio from which [`width_of`] computes `d_ff`: an integer if possible, as in the files of transformers.
fn ratio_of(d_model: usize, d_ff: usize, is_gated: bool) -> Option<Number> {
    if let Some(ratio) = (1..=16u32).find(|&ratio| width_of(d_model, f64::from(ratio), is_gated) == d_ff) {
        return Some(ratio.into());
    }
    let plain = if is_gated { d_ff * 3 / 2 } else { d_ff } as f64;
    // Readers truncate the product, which may be rounded to just below the integer.
    let ratios = [plain, plain + 0.5].map(|plain| plain / d_model as f64);
    ratios.into_iter().find(|&ratio| width_of(d_model, ratio, is_gated) == d_ff).and_then(Number::from_f64)
}

impl Config {
    /// The configuration, or an error for the first field that is not supported.
    fn read(&self) -> Result<VitConfig, Error> {
        let architecture = self.architectures.iter().flatten().next().map(String::as_str);
        let relative = Relative::find(&self.model_type, architecture).unwrap_or(Relative::Vit);
        let particulars = relative.particulars();
        let is_gated = relative.is_dinov2() && self.use_swiglu_ffn == Some(true);
        let d_ff = if relative.is_dinov2() {
            let ratio = self.mlp_ratio.as_ref().and_then(Number::as_f64).unwrap_or(4.0);
            let width = self.hidden_size as f64 * ratio;
            if !(width >= 1.0 && width <= WIDEST as f64) {
                return Err(Error::config("mlp_ratio", format!("{ratio} is not supported")));
            }
            width_of(self.hidden_size, ratio, is_gated)
        } else {
            self.intermediate_size.unwrap_or(4 * self.hidden_size.min(WIDEST))
        };
        let activation = activation_named("hidden_act", &self.hidden_act)?;
        let config = VitConfig {
            relative,
            image_size: self.image_size.each(),
            patch_size: self.patch_size.map_or([particulars.patch_size; 2], Sides::each),
            channels: self.num_channels,
            d_model: self.hidden_size,
            h: self.num_attention_heads,
            d_ff,
            layers: self.num_hidden_layers,
            activation: if is_gated { Activation::Silu } else { activation },
            feed_forward: if is_gated { FeedForwardKind::Gated } else { FeedForwardKind::Plain },
            epsilon: self.layer_norm_eps.unwrap_or(particulars.epsilon),
            qkv_bias: self.qkv_bias,
            layer_scale: relative.is_dinov2().then(|| self.layerscale_value.unwrap_or(1.0)),
            registers: match relative {
                Relative::Dinov2WithRegisters => self.num_register_tokens.unwrap_or(4),
                _ => 0,
            },
            pooler: (
                self.pooler_output_size.unwrap_or(self.hidden_size),
                self.pooler_act
                    .as_deref()
                    .map_or(Ok(Activation::Tanh), |name| activation_named("pooler_act", name))?,
            ),
            dropout: self.hidden_dropout_prob,
            attention_dropout: self.attention_probs_dropout_prob,
            deviation: self.initializer_range,
            labels: labels(self.id2label.as_ref(), self.num_labels)?,
            problem: self.problem_type,
        };
        config.check().map_err(in_their_words)?;
        Ok(config)
    }

    /// The file of a model for a task.
    fn of(config: &VitConfig, task: Task) -> Config {
        let labels = task.has_labels().then_some(&config.labels);
        let is_dinov2 = config.relative.is_dinov2();
        let is_gated = config.feed_forward == FeedForwardKind::Gated;
        let has_pooler = !is_dinov2 && task == Task::Hidden;
        Config {
            model_type: config.relative.particulars().model_type.to_owned(),
            architectures: config.relative.architecture(task).map(|class| vec![class.to_owned()]),
            hidden_size: config.d_model,
            num_hidden_layers: config.layers,
            num_attention_heads: config.h,
            intermediate_size: (!is_dinov2).then_some(config.d_ff),
            mlp_ratio: is_dinov2.then(|| ratio_of(config.d_model, config.d_ff, is_gated)).flatten(),
            hidden_act: if is_gated { gelu() } else { name_of_activation(config.activation).to_owned() },
            hidden_dropout_prob: config.dropout,
            attention_probs_dropout_prob: config.attention_dropout,
            initializer_range: config.deviation,
            layer_norm_eps: Some(config.epsilon),
            image_size: Sides::of(config.image_size),
            patch_size: Some(Sides::of(config.patch_size)),
            num_channels: config.channels,
            qkv_bias: config.qkv_bias,
            layerscale_value: config.layer_scale,
            use_swiglu_ffn: is_dinov2.then_some(is_gated),
            use_mask_token: (config.relative == Relative::Dinov2).then_some(false),
            num_register_tokens: (config.relative == Relative::Dinov2WithRegisters)
                .then_some(config.registers),
            pooler_output_size: has_pooler.then_some(config.pooler.0),
            pooler_act: has_pooler.then(|| name_of_activation(config.pooler.1).to_owned()),
            // transformers counts id2label.
            num_labels: None,
            id2label: labels.map(|labels| labels.iter().cloned().enumerate().collect()),
            label2id: labels.map(|labels| labels.iter().cloned().zip(0..).collect()),
            problem_type: config.problem.filter(|_| labels.is_some()),
            dtype: Some("float32"),
        }
    }
}

/// A mistake in a field of [`VitConfig`], by the name that it has in the file.
fn in_their_words(error: Error) -> Error {
    const WORDS: [(&str, &str); 13] = [
        ("channels", "num_channels"),
        ("d_model", "hidden_size"),
        ("h", "num_attention_heads"),
        ("d_ff", "intermediate_size"),
        ("layers", "num_hidden_layers"),
        ("epsilon", "layer_norm_eps"),
        ("layer_scale", "layerscale_value"),
        ("registers", "num_register_tokens"),
        ("dropout", "hidden_dropout_prob"),
        ("attention_dropout", "attention_probs_dropout_prob"),
        ("deviation", "initializer_range"),
        ("labels", "id2label"),
        ("pooler", "pooler_output_size"),
    ];
    error.in_words(&WORDS)
}

impl VitConfig {
    /// ViT-B/16: 12 layers of width 768 with 12 heads, pictures of 224 × 224 in patches of 16 × 16; two classes without names.
    pub fn base() -> VitConfig {
        VitConfig {
            relative: Relative::Vit,
            image_size: [224; 2],
            patch_size: [16; 2],
            channels: 3,
            d_model: 768,
            h: 12,
            d_ff: 3072,
            layers: 12,
            activation: Activation::Gelu,
            feed_forward: FeedForwardKind::Plain,
            epsilon: Relative::Vit.particulars().epsilon,
            qkv_bias: true,
            layer_scale: None,
            registers: 0,
            pooler: (768, Activation::Tanh),
            dropout: 0.0,
            attention_dropout: 0.0,
            deviation: deviation(),
            labels: default_labels(2),
            problem: None,
        }
    }

    /// The sizes that have a name: `tiny`, `small` and `base` as DeiT has them, and `big`, which is ViT-L.
    pub fn preset(name: &str) -> Result<VitConfig, Error> {
        let (d_model, layers) = match name {
            "tiny" => (192, 12),
            "small" => (384, 12),
            "base" => (768, 12),
            "big" => (1024, 24),
            _ => return Err(Error::config("preset", format!("no `{name}`: use tiny, small, base or big"))),
        };
        let base = VitConfig::base();
        let pooler = (d_model, base.pooler.1);
        Ok(VitConfig { d_model, h: d_model / 64, d_ff: 4 * d_model, layers, pooler, ..base })
    }

    /// Reads the `config.json` of a folder.
    pub fn load(folder: &Path) -> Result<VitConfig, Error> {
        let file: Config = ConfigFile::open(folder)?.read_as(Family::Vit)?;
        file.read().map_err(|error| Error::Format { path: folder.join(CONFIG), problem: error.to_string() })
    }

    /// Writes the `config.json` of a folder, of a model for a task, beside the old one.
    pub fn stage(&self, folder: &Path, task: Task) -> Result<Staged, Error> {
        let text = serde_json::to_string_pretty(&Config::of(self, task)).expect("a plain structure") + "\n";
        Staged::new(&folder.join(CONFIG), text.as_bytes())
    }

    /// Whether such a model can be.
    pub fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("image_size", self.image_size[0].min(self.image_size[1]), LONGEST),
            ("image_size", self.image_size[0].max(self.image_size[1]), LONGEST),
            ("patch_size", self.patch_size[0].min(self.patch_size[1]), LONGEST),
            ("channels", self.channels, 1 << 10),
            ("d_model", self.d_model, WIDEST),
            ("h", self.h, WIDEST),
            ("d_ff", self.d_ff, WIDEST),
            ("layers", self.layers, MOST_LAYERS),
            // There may be none.
            ("registers", self.registers.max(1), WIDEST),
            ("pooler", self.pooler.0, WIDEST),
            ("labels", self.labels.len(), WIDEST),
        ];
        sizes.into_iter().try_for_each(|(field, size, most)| limits::check_size(field, size, most))?;
        if let Some(i) = (0..2).find(|&i| self.patch_size[i] > self.image_size[i]) {
            let problem = format!("{} is more than image_size {}", self.patch_size[i], self.image_size[i]);
            return Err(Error::config("patch_size", problem));
        }
        for (field, p) in [("dropout", self.dropout), ("attention_dropout", self.attention_dropout)] {
            limits::check_dropout(field, p)?;
        }
        for (field, number) in [("epsilon", self.epsilon), ("deviation", self.deviation)] {
            if !(number.is_finite() && number >= 0.0) {
                return Err(Error::config(field, format!("must be at least 0, not {number}")));
            }
        }
        if let Some(initial) = self.layer_scale.filter(|initial| !initial.is_finite()) {
            return Err(Error::config("layer_scale", format!("must be a number, not {initial}")));
        }
        self.stack()?;
        let wide = |size: usize| size as u64;
        let (d, [rows, columns]) = (wide(self.d_model), self.learned_grid().map(wide));
        let outside = rows * columns + wide(self.channels * self.patch_size[0]) * wide(self.patch_size[1]);
        let layer = d.saturating_mul(4 * d + 3 * wide(self.d_ff));
        let layers = wide(self.layers).saturating_mul(layer);
        limits::check_parameters(outside.saturating_mul(d).saturating_add(layers))
    }

    /// The rows and columns of patches of the pictures that it was trained with.
    pub(super) fn learned_grid(&self) -> [usize; 2] {
        [0, 1].map(|i: usize| self.image_size[i] / self.patch_size[i])
    }

    /// The rows and columns of patches of a picture of this height and width; none if it is smaller than one patch, or so large that
    /// nothing reads it.
    pub fn grid(&self, height: usize, width: usize) -> Option<[usize; 2]> {
        let grid = [height / self.patch_size[0], width / self.patch_size[1]];
        let is_possible = height <= LONGEST && width <= LONGEST && !grid.contains(&0);
        is_possible.then_some(grid)
    }

    /// The numbers of a patch.
    pub(super) fn patch_len(&self) -> usize {
        self.channels * self.patch_size[0] * self.patch_size[1]
    }

    /// The tokens of a picture before those of its patches: the class token, one of a teacher, registers.
    pub fn tokens_before(&self) -> usize {
        1 + usize::from(self.relative.is_distilled()) + self.registers
    }

    /// The tokens of a picture of the size that it was trained with.
    pub fn tokens(&self) -> usize {
        let [height, width] = self.image_size;
        self.tokens_of(height, width).expect("pictures are larger than patches")
    }

    /// The tokens of a picture of this height and width, if it has any.
    pub fn tokens_of(&self, height: usize, width: usize) -> Option<usize> {
        let [rows, columns] = self.grid(height, width)?;
        Some(self.tokens_before() + rows * columns)
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.labels.len()
    }

    /// What the classes of a picture are: as transformers tells it, a single class means a number.
    pub fn problem(&self) -> Problem {
        self.problem.unwrap_or(Problem::of(self.classes()))
    }

    /// The width of what a classifier sees.
    pub(super) fn features(&self) -> usize {
        if self.relative.is_dinov2() { 2 * self.d_model } else { self.d_model }
    }

    pub(super) fn stack(&self) -> Result<StackConfig, Error> {
        let attention = MultiHeadConfig::new(self.d_model, self.h)?;
        let biases = if self.qkv_bias { ProjectionBiases::All } else { ProjectionBiases::Output };
        let attention = MultiHeadConfig { biases, dropout: self.attention_dropout, ..attention };
        Ok(StackConfig {
            activation: self.activation,
            feed_forward: self.feed_forward,
            norm: NormPlacement::Pre,
            epsilon: self.epsilon,
            dropout: if self.relative.is_dinov2() { 0.0 } else { self.dropout },
            layer_scale: self.layer_scale,
            ..StackConfig::new(self.layers, attention, self.d_ff)
        })
    }
}
