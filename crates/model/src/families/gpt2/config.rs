//! The sizes of a GPT-2, and its `config.json`.

use crate::checkpoint::CONFIG;
use crate::checkpoint::Staged;
use crate::error::Error;
use crate::families::{ConfigFile, Family, GPT_NEO, GPT1, GPT2, gpt_neo, gpt1};
use crate::layers::{
    EmbeddingConfig, MultiHeadConfig, NormPlacement, ProjectionBiases, StackConfig, activation_named,
    name_of_activation,
};
use crate::limits::{self, MOST_LAYERS, MOST_TOKENS, WIDEST};
use crate::names::Names;
use attentive_tensor::Activation;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The versions that share the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// GPT-1: norms behind the sublayers.
    Gpt1,
    /// GPT-2: norms before the sublayers, and one behind the last layer.
    Gpt2,
    /// GPT-Neo, which has the sizes of GPT-3: some layers see a window of the text alone.
    GptNeo,
}

impl Version {
    /// The names that fields of [`Gpt2Config`] have in its files.
    fn words(self) -> &'static [(&'static str, &'static str)] {
        if self == Version::GptNeo { &WORDS_OF_NEO } else { &WORDS }
    }

    /// What its weights are called in files.
    pub(super) fn names(self) -> &'static Names {
        match self {
            Version::Gpt1 => &gpt1::NAMES,
            Version::Gpt2 => &super::names::NAMES,
            Version::GptNeo => &gpt_neo::NAMES,
        }
    }
}

/// What a GPT-2 is made of, or a GPT-1 or a GPT-Neo.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpt2Config {
    /// Which of them it is.
    pub version: Version,
    /// The number of tokens.
    pub vocab_size: usize,
    /// The width of the model.
    pub d_model: usize,
    /// The number of heads of each attention.
    pub h: usize,
    /// The width between the two products of the feed-forward network.
    pub d_ff: usize,
    /// N, the number of layers.
    pub layers: usize,
    /// The function in the feed-forward network.
    pub activation: Activation,
    /// What norms add to the variance.
    pub epsilon: f32,
    /// The longest text there are positions for: the context.
    pub max_positions: usize,
    /// Whether products of query and key are divided by √d_k.
    pub scaled_attention: bool,
    /// How many tokens a query of a local layer sees, itself included.
    pub window: usize,
    /// Which layers are local; those that it does not name see the whole text.
    pub local: Vec<bool>,
    /// Dropout of each sublayer's output.
    pub dropout: f32,
    /// Dropout of the embedded input.
    pub embedding_dropout: f32,
    /// Dropout of attention weights.
    pub attention_dropout: f32,
    /// The standard deviation of random first values.
    pub deviation: f32,
    /// Whether the table of the embeddings is the output, too.
    pub tied_output: bool,
    /// The token that a text begins with if nothing else does. It may be beyond the vocabulary, as transformers' default is for
    /// small ones; then there is none.
    pub bos: Option<usize>,
    /// The token that ends a text; the same holds for it.
    pub eos: Option<usize>,
}

/// `config.json`. What is missing is what transformers' `GPT2Config` takes for it, but a missing size is a mistake.
#[derive(Debug, Serialize, Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    vocab_size: usize,
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    #[serde(default)]
    n_inner: Option<usize>,
    #[serde(default = "gelu_new")]
    activation_function: String,
    #[serde(default = "a_tenth")]
    resid_pdrop: f32,
    #[serde(default = "a_tenth")]
    embd_pdrop: f32,
    #[serde(default = "a_tenth")]
    attn_pdrop: f32,
    #[serde(default = "epsilon")]
    layer_norm_epsilon: f32,
    #[serde(default = "deviation")]
    initializer_range: f32,
    #[serde(default = "yes")]
    scale_attn_weights: bool,
    #[serde(default)]
    scale_attn_by_inverse_layer_idx: bool,
    // Scores in f32 whatever the rest is: ours always are.
    #[serde(default)]
    reorder_and_upcast_attn: bool,
    #[serde(default)]
    add_cross_attention: bool,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
    #[serde(default = "end_of_text")]
    bos_token_id: Option<usize>,
    #[serde(default = "end_of_text")]
    eos_token_id: Option<usize>,
    #[serde(skip_deserializing)]
    dtype: Option<&'static str>,
}

fn gelu_new() -> String {
    "gelu_new".to_owned()
}

fn a_tenth() -> f32 {
    0.1
}

fn epsilon() -> f32 {
    1e-5
}

fn deviation() -> f32 {
    0.02
}

fn yes() -> bool {
    true
}

fn end_of_text() -> Option<usize> {
    Some(50256)
}

impl Config {
    /// What the file asks for, or the first thing in it that cannot be had.
    fn read(&self) -> Result<Gpt2Config, Error> {
        let flags = [
            ("scale_attn_by_inverse_layer_idx", self.scale_attn_by_inverse_layer_idx),
            ("add_cross_attention", self.add_cross_attention),
        ];
        if let Some((field, _)) = flags.into_iter().find(|(_, asked)| *asked) {
            return Err(Error::config(field, "true is not supported for this model type, only false"));
        }
        let config = Gpt2Config {
            version: Version::Gpt2,
            vocab_size: self.vocab_size,
            d_model: self.n_embd,
            h: self.n_head,
            d_ff: self.n_inner.unwrap_or(self.n_embd.saturating_mul(4)),
            layers: self.n_layer,
            activation: activation_named("activation_function", &self.activation_function)?,
            epsilon: self.layer_norm_epsilon,
            max_positions: self.n_positions,
            scaled_attention: self.scale_attn_weights,
            window: 0,
            local: Vec::new(),
            dropout: self.resid_pdrop,
            embedding_dropout: self.embd_pdrop,
            attention_dropout: self.attn_pdrop,
            deviation: self.initializer_range,
            tied_output: self.tie_word_embeddings,
            bos: self.bos_token_id,
            eos: self.eos_token_id,
        };
        Ok(config)
    }

    fn of(config: &Gpt2Config) -> Config {
        Config {
            model_type: GPT2.to_owned(),
            architectures: Some(vec!["GPT2LMHeadModel".to_owned()]),
            vocab_size: config.vocab_size,
            n_positions: config.max_positions,
            n_embd: config.d_model,
            n_layer: config.layers,
            n_head: config.h,
            n_inner: (config.d_ff != 4 * config.d_model).then_some(config.d_ff),
            activation_function: name_of_activation(config.activation).to_owned(),
            resid_pdrop: config.dropout,
            embd_pdrop: config.embedding_dropout,
            attn_pdrop: config.attention_dropout,
            layer_norm_epsilon: config.epsilon,
            initializer_range: config.deviation,
            scale_attn_weights: config.scaled_attention,
            scale_attn_by_inverse_layer_idx: false,
            reorder_and_upcast_attn: false,
            add_cross_attention: false,
            tie_word_embeddings: config.tied_output,
            bos_token_id: config.bos,
            eos_token_id: config.eos,
            dtype: Some("float32"),
        }
    }
}

/// The names that fields of [`Gpt2Config`] have in the files of GPT-1 and GPT-2, and in those of GPT-Neo.
const WORDS: [(&str, &str); 10] = [
    ("d_model", "n_embd"),
    ("h", "n_head"),
    ("d_ff", "n_inner"),
    ("layers", "n_layer"),
    ("epsilon", "layer_norm_epsilon"),
    ("max_positions", "n_positions"),
    ("dropout", "resid_pdrop"),
    ("embedding_dropout", "embd_pdrop"),
    ("attention_dropout", "attn_pdrop"),
    ("deviation", "initializer_range"),
];
const WORDS_OF_NEO: [(&str, &str); 9] = [
    ("d_model", "hidden_size"),
    ("h", "num_heads"),
    ("d_ff", "intermediate_size"),
    ("layers", "num_layers"),
    ("epsilon", "layer_norm_epsilon"),
    ("max_positions", "max_position_embeddings"),
    ("dropout", "resid_dropout"),
    ("embedding_dropout", "embed_dropout"),
    ("deviation", "initializer_range"),
];

/// How many tokens a local layer of GPT-Neo sees. The paper of GPT-3 does not say it of its own.
const WINDOW: usize = 256;

/// The sizes of GPT-3, `(name, N, d_model, h)`: table 2.1 of its paper (Brown et al. 2020).
///
/// In two rows of the table `h · d_head` is not `d_model`. The 1.3B model has 24 heads there, of width 128: taken are `d_model` 2048 and
/// 16 heads. The 13B model has `d_model` 5140 there: taken are 40 heads of width 128, and 5120.
const GPT3: [(&str, usize, usize, usize); 8] = [
    ("gpt3-125m", 12, 768, 12),
    ("gpt3-350m", 24, 1024, 16),
    ("gpt3-760m", 24, 1536, 16),
    ("gpt3-1.3b", 24, 2048, 16),
    ("gpt3-2.7b", 32, 2560, 32),
    ("gpt3-6.7b", 32, 4096, 32),
    ("gpt3-13b", 40, 5120, 40),
    ("gpt3-175b", 96, 12_288, 96),
];

impl Gpt2Config {
    /// The smallest GPT-2 on the Hub: 12 layers of width 768 with 12 heads, 124 million parameters with its 50 257 tokens, of which
    /// the last begins and ends a text.
    pub fn base(vocab_size: usize) -> Gpt2Config {
        let end = Some(vocab_size.saturating_sub(1));
        Gpt2Config {
            version: Version::Gpt2,
            vocab_size,
            d_model: 768,
            h: 12,
            d_ff: 3072,
            layers: 12,
            activation: Activation::GeluTanh,
            epsilon: epsilon(),
            max_positions: 1024,
            scaled_attention: true,
            window: 0,
            local: Vec::new(),
            dropout: 0.1,
            embedding_dropout: 0.1,
            attention_dropout: 0.1,
            deviation: deviation(),
            tied_output: true,
            bos: end,
            eos: end,
        }
    }

    /// The sizes that have a name: `tiny`, `small` (nanoGPT's for characters), `base` (`gpt2` on the Hub), `big`, which is
    /// `gpt2-medium`, and those of GPT-3 from `gpt3-125m` to `gpt3-175b`.
    pub fn preset(name: &str, vocab_size: usize) -> Result<Gpt2Config, Error> {
        if let Some((_, layers, d_model, h)) = GPT3.iter().find(|(known, ..)| *known == name) {
            let sizes = Gpt2Config {
                d_model: *d_model,
                h: *h,
                d_ff: 4 * d_model,
                layers: *layers,
                ..Gpt2Config::base(vocab_size)
            };
            return Ok(sizes.in_turn());
        }
        let (d_model, layers, h) = match name {
            "tiny" => (128, 2, 2),
            "small" => (384, 6, 6),
            "base" => (768, 12, 12),
            "big" => (1024, 24, 16),
            _ => {
                let names: Vec<&str> = GPT3.iter().map(|(name, ..)| *name).collect();
                let problem = format!("no `{name}`: use tiny, small, base, big, {}", names.join(", "));
                return Err(Error::config("preset", problem));
            }
        };
        Ok(Gpt2Config { d_model, h, d_ff: 4 * d_model, layers, ..Gpt2Config::base(vocab_size) })
    }

    /// The same sizes as GPT-3 and GPT-Neo have them: every second layer sees a window, and nothing is dropped out.
    fn in_turn(self) -> Gpt2Config {
        Gpt2Config {
            version: Version::GptNeo,
            scaled_attention: false,
            window: WINDOW,
            local: (0..self.layers).map(|layer| layer % 2 == 1).collect(),
            max_positions: 2048,
            dropout: 0.0,
            embedding_dropout: 0.0,
            attention_dropout: 0.0,
            ..self
        }
    }

    /// Whether a layer sees a window of the text alone.
    pub fn is_local(&self, layer: usize) -> bool {
        self.local.get(layer).copied().unwrap_or(false)
    }

    /// How many tokens a query of a layer sees, if not all before it.
    pub(super) fn window_of(&self, layer: usize) -> Option<usize> {
        self.is_local(layer).then_some(self.window)
    }

    /// Reads the `config.json` of a folder.
    pub fn load(folder: &Path) -> Result<Gpt2Config, Error> {
        let file = ConfigFile::open(folder)?;
        let is = |model_type: &str, class: &str| match file.model_type() {
            Some(named) => named == model_type,
            None => file.architectures().first().is_some_and(|name| name.starts_with(class)),
        };
        let read = match () {
            () if is(GPT1, "OpenAIGPT") => gpt1::read(&file.read_as(Family::Gpt2)?),
            () if is(GPT_NEO, "GPTNeo") => gpt_neo::read(&file.read_as(Family::Gpt2)?),
            () => file.read_as::<Config>(Family::Gpt2)?.read(),
        };
        let checked = read.and_then(|config| {
            config.check().map_err(|error| error.in_words(config.version.words()))?;
            Ok(config)
        });
        checked.map_err(|error| Error::Format { path: folder.join(CONFIG), problem: error.to_string() })
    }

    /// Writes the `config.json` of a folder beside the old one.
    pub fn stage(&self, folder: &Path) -> Result<Staged, Error> {
        let text = match self.version {
            Version::Gpt1 => gpt1::text(self),
            Version::GptNeo => gpt_neo::text(self),
            Version::Gpt2 => {
                serde_json::to_string_pretty(&Config::of(self)).expect("a plain structure") + "\n"
            }
        };
        Staged::new(&folder.join(CONFIG), text.as_bytes())
    }

    /// Whether such a model can be.
    pub fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("vocab_size", self.vocab_size, MOST_TOKENS),
            ("d_model", self.d_model, WIDEST),
            ("h", self.h, WIDEST),
            ("d_ff", self.d_ff, WIDEST),
            ("layers", self.layers, MOST_LAYERS),
            ("max_positions", self.max_positions, MOST_TOKENS),
        ];
        sizes.into_iter().try_for_each(|(field, size, most)| limits::check_size(field, size, most))?;
        let dropouts = [
            ("dropout", self.dropout),
            ("embedding_dropout", self.embedding_dropout),
            ("attention_dropout", self.attention_dropout),
        ];
        dropouts.into_iter().try_for_each(|(field, p)| limits::check_dropout(field, p))?;
        for (field, number) in [("epsilon", self.epsilon), ("deviation", self.deviation)] {
            if !(number.is_finite() && number >= 0.0) {
                return Err(Error::config(field, format!("must be at least 0, not {number}")));
            }
        }
        self.stack()?;
        let wide = |size: usize| size as u64;
        let (d, layers) = (wide(self.d_model), wide(self.layers));
        let outputs = if self.tied_output { 0 } else { wide(self.vocab_size) };
        let tables = wide(self.vocab_size) + wide(self.max_positions) + outputs;
        let layer = d.saturating_mul(4 * d + 2 * wide(self.d_ff));
        limits::check_parameters(tables.saturating_mul(d).saturating_add(layers.saturating_mul(layer)))
    }

    pub(super) fn embedding(&self) -> EmbeddingConfig {
        EmbeddingConfig {
            vocab_size: self.vocab_size,
            d_emb: self.d_model,
            d_model: self.d_model,
            padding: None,
            scaled: false,
        }
    }

    pub(super) fn stack(&self) -> Result<StackConfig, Error> {
        let attention = MultiHeadConfig::new(self.d_model, self.h)?;
        let attention = MultiHeadConfig {
            scale: (!self.scaled_attention).then_some(1.0),
            biases: match self.version {
                Version::GptNeo => ProjectionBiases::Output,
                Version::Gpt1 | Version::Gpt2 => ProjectionBiases::All,
            },
            dropout: self.attention_dropout,
            ..attention
        };
        Ok(StackConfig {
            activation: self.activation,
            norm: match self.version {
                Version::Gpt1 => NormPlacement::Post,
                Version::Gpt2 | Version::GptNeo => NormPlacement::Pre,
            },
            epsilon: self.epsilon,
            dropout: self.dropout,
            ..StackConfig::new(self.layers, attention, self.d_ff)
        })
    }
}
