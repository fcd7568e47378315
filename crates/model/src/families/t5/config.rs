//! The sizes of a T5, and its `config.json`.

use crate::builder::DeviationOf;
use crate::checkpoint::CONFIG;
use crate::checkpoint::Staged;
use crate::error::Error;
use crate::families::encoder_decoder::Outline;
use crate::families::{ConfigFile, Family, T5, config_like};
use crate::layers::{
    EmbeddingConfig, FeedForwardKind, MultiHeadConfig, NormKind, NormPlacement, ProjectionBiases,
    RelativeConfig, StackConfig, activation_named, name_of_activation,
};
use crate::limits::{self, MOST_LAYERS, MOST_TOKENS, WIDEST};
use attentive_tensor::Activation;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a T5 is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct T5Config {
    /// The `model_type` of its folder: `t5` or `mt5`, which compute the same.
    pub model_type: String,
    /// The number of tokens.
    pub vocab_size: usize,
    /// The width of the model.
    pub d_model: usize,
    /// The number of heads of each attention.
    pub h: usize,
    /// The width of queries, keys and values in each head.
    pub d_kv: usize,
    /// The width between the products of the feed-forward network.
    pub d_ff: usize,
    /// N of the encoder.
    pub encoder_layers: usize,
    /// N of the decoder.
    pub decoder_layers: usize,
    /// Whether the feed-forward network has a gate.
    pub feed_forward: FeedForwardKind,
    /// The function in the feed-forward network.
    pub activation: Activation,
    /// The number of buckets of relative positions.
    pub buckets: usize,
    /// Positions at this distance and further away are all alike.
    pub max_distance: usize,
    /// The length of the texts that it has learned from; it can read longer ones.
    pub trained_length: usize,
    /// What norms add to the mean of the squares.
    pub epsilon: f32,
    /// Dropout of the embedded tokens, of attention weights, inside of the feed-forward network, of each sublayer's output and behind
    /// the last norm.
    pub dropout: f32,
    /// Whether the table of the embeddings is the output, too.
    pub tied_output: bool,
    /// Whether hidden states are multiplied by d_model^-½ on their way to the output, as in T5 1.0.
    pub scaled_output: bool,
    /// The token of padding.
    pub pad: usize,
    /// The token that ends a sequence.
    pub eos: usize,
    /// The token that the decoder is shown first.
    pub start: usize,
}

/// `config.json`. What is missing is what transformers' `T5Config` takes for it, but a missing size is a mistake.
#[derive(Debug, Serialize, Deserialize)]
struct Config {
    #[serde(default = "t5")]
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    vocab_size: usize,
    d_model: usize,
    d_kv: usize,
    d_ff: usize,
    num_layers: usize,
    #[serde(default)]
    num_decoder_layers: Option<usize>,
    num_heads: usize,
    #[serde(default = "thirty_two")]
    relative_attention_num_buckets: usize,
    #[serde(default = "furthest")]
    relative_attention_max_distance: usize,
    #[serde(default = "usual_length")]
    n_positions: usize,
    #[serde(default = "a_tenth")]
    dropout_rate: f32,
    #[serde(default = "epsilon")]
    layer_norm_epsilon: f32,
    #[serde(default = "relu")]
    feed_forward_proj: String,
    #[serde(default = "yes")]
    is_encoder_decoder: bool,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
    // Newer versions of transformers say with it what `tie_word_embeddings` says in older ones.
    #[serde(default)]
    scale_decoder_outputs: Option<bool>,
    #[serde(default)]
    pad_token_id: Option<usize>,
    #[serde(default)]
    eos_token_id: Option<usize>,
    #[serde(default)]
    decoder_start_token_id: Option<usize>,
    #[serde(skip_deserializing)]
    dtype: Option<&'static str>,
}

fn t5() -> String {
    T5.to_owned()
}

fn thirty_two() -> usize {
    32
}

fn furthest() -> usize {
    128
}

fn usual_length() -> usize {
    512
}

fn a_tenth() -> f32 {
    0.1
}

fn epsilon() -> f32 {
    1e-6
}

fn relu() -> String {
    "relu".to_owned()
}

fn yes() -> bool {
    true
}

/// The network and the function in it that `feed_forward_proj` asks for.
fn feed_forward(name: &str) -> Result<(FeedForwardKind, Activation), Error> {
    let (kind, function) = match name.strip_prefix("gated-") {
        Some(function) => (FeedForwardKind::Gated, function),
        None => (FeedForwardKind::Plain, name),
    };
    // The approximation, whatever it is called: T5 1.1 was trained with it.
    if name == "gated-gelu" {
        return Ok((kind, Activation::GeluTanh));
    }
    Ok((kind, activation_named("feed_forward_proj", function)?))
}

fn name_of_feed_forward(kind: FeedForwardKind, activation: Activation) -> String {
    match kind {
        FeedForwardKind::Plain => name_of_activation(activation).to_owned(),
        FeedForwardKind::Gated if activation == Activation::GeluTanh => "gated-gelu".to_owned(),
        FeedForwardKind::Gated => format!("gated-{}", name_of_activation(activation)),
    }
}

impl Config {
    /// What the file asks for, or the first thing in it that cannot be had.
    fn read(self) -> Result<T5Config, Error> {
        if !self.is_encoder_decoder {
            let problem = "false is not supported for this model type, only true";
            return Err(Error::config("is_encoder_decoder", problem));
        }
        let (feed_forward, activation) = feed_forward(&self.feed_forward_proj)?;
        let pad = self.pad_token_id.unwrap_or(0);
        let config = T5Config {
            vocab_size: self.vocab_size,
            d_model: self.d_model,
            h: self.num_heads,
            d_kv: self.d_kv,
            d_ff: self.d_ff,
            encoder_layers: self.num_layers,
            decoder_layers: self.num_decoder_layers.unwrap_or(self.num_layers),
            feed_forward,
            activation,
            buckets: self.relative_attention_num_buckets,
            max_distance: self.relative_attention_max_distance,
            trained_length: self.n_positions,
            epsilon: self.layer_norm_epsilon,
            dropout: self.dropout_rate,
            tied_output: self.tie_word_embeddings,
            scaled_output: self.scale_decoder_outputs.unwrap_or(self.tie_word_embeddings),
            pad,
            eos: self.eos_token_id.unwrap_or(1),
            start: self.decoder_start_token_id.unwrap_or(pad),
            model_type: self.model_type,
        };
        config.check().map_err(in_their_words)?;
        Ok(config)
    }

    fn of(config: &T5Config) -> Config {
        let prefix = if config.model_type == T5 { "T5" } else { "MT5" };
        Config {
            model_type: config.model_type.clone(),
            architectures: Some(vec![format!("{prefix}ForConditionalGeneration")]),
            vocab_size: config.vocab_size,
            d_model: config.d_model,
            d_kv: config.d_kv,
            d_ff: config.d_ff,
            num_layers: config.encoder_layers,
            num_decoder_layers: Some(config.decoder_layers),
            num_heads: config.h,
            relative_attention_num_buckets: config.buckets,
            relative_attention_max_distance: config.max_distance,
            n_positions: config.trained_length,
            dropout_rate: config.dropout,
            layer_norm_epsilon: config.epsilon,
            feed_forward_proj: name_of_feed_forward(config.feed_forward, config.activation),
            is_encoder_decoder: true,
            // That is what transformers has always meant by it. Which tables are one, the weights tell.
            tie_word_embeddings: config.scaled_output,
            scale_decoder_outputs: Some(config.scaled_output),
            pad_token_id: Some(config.pad),
            eos_token_id: Some(config.eos),
            decoder_start_token_id: Some(config.start),
            dtype: Some("float32"),
        }
    }
}

/// A mistake in a field of [`T5Config`], by the name that it has in the file.
fn in_their_words(error: Error) -> Error {
    const WORDS: [(&str, &str); 11] = [
        ("h", "num_heads"),
        ("encoder_layers", "num_layers"),
        ("decoder_layers", "num_decoder_layers"),
        ("buckets", "relative_attention_num_buckets"),
        ("max_distance", "relative_attention_max_distance"),
        ("trained_length", "n_positions"),
        ("epsilon", "layer_norm_epsilon"),
        ("dropout", "dropout_rate"),
        ("pad", "pad_token_id"),
        ("eos", "eos_token_id"),
        ("start", "decoder_start_token_id"),
    ];
    error.in_words(&WORDS)
}

/// There is no last position: how long a text may be is a question of memory.
const MOST_POSITIONS: usize = 1 << 20;

impl T5Config {
    /// The sizes that have a name: `tiny`, and those of T5 1.1 as the Hub has them: `small`, `base` and `big`, which is `large`
    /// there.
    pub fn preset(name: &str, vocab_size: usize) -> Result<T5Config, Error> {
        let (d_model, h, d_kv, d_ff, layers) = match name {
            "tiny" => (128, 4, 32, 256, 2),
            "small" => (512, 6, 64, 1024, 8),
            "base" => (768, 12, 64, 2048, 12),
            "big" => (1024, 16, 64, 2816, 24),
            _ => return Err(Error::config("preset", format!("no `{name}`: use tiny, small, base or big"))),
        };
        Ok(T5Config {
            model_type: t5(),
            vocab_size,
            d_model,
            h,
            d_kv,
            d_ff,
            encoder_layers: layers,
            decoder_layers: layers,
            feed_forward: FeedForwardKind::Gated,
            activation: Activation::GeluTanh,
            buckets: thirty_two(),
            max_distance: furthest(),
            trained_length: usual_length(),
            epsilon: epsilon(),
            dropout: a_tenth(),
            tied_output: false,
            scaled_output: false,
            pad: 0,
            eos: 1,
            start: 0,
        })
    }

    /// Reads the `config.json` of a folder.
    pub fn load(folder: &Path) -> Result<T5Config, Error> {
        let file: Config = ConfigFile::open(folder)?.read_as(Family::T5)?;
        file.read().map_err(|error| Error::Format { path: folder.join(CONFIG), problem: error.to_string() })
    }

    /// Writes the `config.json` of a folder beside the old one.
    pub fn stage(&self, folder: &Path) -> Result<Staged, Error> {
        let text = serde_json::to_string_pretty(&Config::of(self)).expect("a plain structure") + "\n";
        Staged::new(&folder.join(CONFIG), text.as_bytes())
    }

    /// The same with what the model in the folder `origin`, from which this one has learned, says beside it.
    pub fn stage_like(&self, folder: &Path, origin: &Path) -> Result<Staged, Error> {
        config_like(folder, &Config::of(self), origin)
    }

    /// Whether such a model can be.
    pub fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("vocab_size", self.vocab_size, MOST_TOKENS),
            ("d_model", self.d_model, WIDEST),
            ("h", self.h, WIDEST),
            ("d_kv", self.d_kv, WIDEST),
            ("d_ff", self.d_ff, WIDEST),
            ("encoder_layers", self.encoder_layers, MOST_LAYERS),
            ("decoder_layers", self.decoder_layers, MOST_LAYERS),
            ("trained_length", self.trained_length, MOST_POSITIONS),
        ];
        sizes.into_iter().try_for_each(|(field, size, most)| limits::check_size(field, size, most))?;
        limits::check_dropout("dropout", self.dropout)?;
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            return Err(Error::config("epsilon", format!("must be at least 0, not {}", self.epsilon)));
        }
        for (field, token) in [("pad", self.pad), ("eos", self.eos), ("start", self.start)] {
            if token >= self.vocab_size {
                let problem = format!("token {token} must be below vocab_size {}", self.vocab_size);
                return Err(Error::config(field, problem));
            }
        }
        // The decoder has twice as many buckets of one direction.
        [true, false].into_iter().try_for_each(|both| self.relative(both).check())?;
        limits::check_parameters(self.parameters_of_matrices())
    }

    /// How many parameters there are at least.
    fn parameters_of_matrices(&self) -> u64 {
        let wide = |size: usize| size as u64;
        let product = |factors: &[usize]| factors.iter().fold(1, |a: u64, &b| a.saturating_mul(wide(b)));
        let products = if self.feed_forward == FeedForwardKind::Gated { 3 } else { 2 };
        let attention = product(&[4, self.d_model, self.h, self.d_kv]);
        let feed_forward = product(&[products, self.d_model, self.d_ff]);
        let encoder = attention.saturating_add(feed_forward).saturating_mul(wide(self.encoder_layers));
        let decoder = attention.saturating_mul(2).saturating_add(feed_forward);
        let decoder = decoder.saturating_mul(wide(self.decoder_layers));
        let tables = if self.tied_output { 1 } else { 2 };
        product(&[tables, self.vocab_size, self.d_model]).saturating_add(encoder).saturating_add(decoder)
    }

    /// What there is to know of it without knowing the family.
    pub fn outline(&self) -> Outline {
        Outline {
            source_vocabulary: self.vocab_size,
            target_vocabulary: self.vocab_size,
            start: self.start,
            eos: self.eos,
            // Transformers lets it write padding too, which it has learned not to.
            never: None,
            max_positions: MOST_POSITIONS,
            d_model: self.d_model,
            h: self.h,
            decoder_h: self.h,
            d_ff: self.d_ff,
            encoder_layers: self.encoder_layers,
            decoder_layers: self.decoder_layers,
        }
    }

    pub(super) fn embedding(&self) -> EmbeddingConfig {
        EmbeddingConfig {
            vocab_size: self.vocab_size,
            d_emb: self.d_model,
            d_model: self.d_model,
            // Padding is a row like others: decoding starts from it, and its row is learned.
            padding: None,
            scaled: false,
        }
    }

    /// The deviations of the random matrices of a new model, as Mesh TensorFlow draws those of T5 (`initializer_factor` 1): the products
    /// of all have variance one, and so have scores, which are not divided by √d_kv. The output, where it has a table of its own, is
    /// drawn as there, too, with d_model^-½; transformers draws it with 1, at which losses begin in the hundreds.
    pub(super) fn deviations(&self) -> [DeviationOf; 4] {
        let root = |size: usize| (size as f32).powf(-0.5);
        [
            (&["shared"], 1.0),
            (&["q_proj"], root(self.d_model * self.d_kv)),
            (&["out_proj"], root(self.h * self.d_kv)),
            (&["fc2", "wo"], root(self.d_ff)),
        ]
    }

    pub(super) fn relative(&self, bidirectional: bool) -> RelativeConfig {
        RelativeConfig { h: self.h, buckets: self.buckets, max_distance: self.max_distance, bidirectional }
    }

    pub(super) fn stack(&self, layers: usize) -> StackConfig {
        let attention = MultiHeadConfig::with_widths(self.d_model, self.h, self.d_kv, self.d_kv);
        let attention = MultiHeadConfig {
            scale: Some(1.0),
            biases: ProjectionBiases::None,
            dropout: self.dropout,
            ..attention
        };
        StackConfig {
            feed_forward: self.feed_forward,
            feed_forward_bias: false,
            activation: self.activation,
            norm: NormPlacement::Pre,
            norm_kind: NormKind::Rms,
            epsilon: self.epsilon,
            dropout: self.dropout,
            inner_dropout: self.dropout,
            ..StackConfig::new(layers, attention, self.d_ff)
        }
    }
}
