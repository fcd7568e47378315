//! The sizes of a BERT, and its `config.json`.

use super::{Relative, Task};
use crate::checkpoint::CONFIG;
use crate::checkpoint::Staged;
use crate::error::Error;
use crate::families::deberta::{Disentangled, Fields};
use crate::families::labels::{Problem, default_labels, labels};
use crate::families::{ConfigFile, Family};
use crate::layers::{EmbeddingConfig, MultiHeadConfig, StackConfig, activation_named, name_of_activation};
use crate::limits::{self, MOST_LAYERS, MOST_TOKENS, WIDEST};
use attentive_tensor::Activation;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What a BERT is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct BertConfig {
    /// The family: BERT itself, or one that shares its encoder.
    pub relative: Relative,
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
    /// The function in the feed-forward network, and in the head of masked language models.
    pub activation: Activation,
    /// What norms add to the variance.
    pub epsilon: f32,
    /// The longest sequence there are positions for.
    pub max_positions: usize,
    /// How many kinds of tokens there are: those of the first text, those of the second. Some DeBERTas have none.
    pub token_types: usize,
    /// Dropout of the embedded input and of each sublayer's output.
    pub dropout: f32,
    /// Dropout of attention weights.
    pub attention_dropout: f32,
    /// Dropout before a classifier; [`BertConfig::dropout`] if none is given.
    pub classifier_dropout: Option<f32>,
    /// The standard deviation of random first values.
    pub deviation: f32,
    /// The token of padding, which takes no gradient.
    pub pad: Option<usize>,
    /// Whether the head of a masked language model has the table of the embeddings; no other head can be loaded.
    pub tied_output: bool,
    /// The names of the classes, in order.
    pub labels: Vec<String>,
    /// What the classes of a text are, where the configuration says so.
    pub problem: Option<Problem>,
    /// How a DeBERTa attends.
    pub disentangled: Option<Disentangled>,
}

/// `config.json`. What is missing is what transformers' `BertConfig` takes for it, but a missing size is a mistake.
#[derive(Debug, Serialize, Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default = "a_tenth")]
    hidden_dropout_prob: f32,
    #[serde(default = "a_tenth")]
    attention_probs_dropout_prob: f32,
    #[serde(default)]
    classifier_dropout: Option<f32>,
    max_position_embeddings: usize,
    #[serde(default)]
    type_vocab_size: Option<usize>,
    #[serde(default = "deviation")]
    initializer_range: f32,
    #[serde(default)]
    layer_norm_eps: Option<f32>,
    /// None if the file says nothing of it, which is not the same as saying that there is none.
    #[serde(default, deserialize_with = "said")]
    pad_token_id: Option<Option<usize>>,
    #[serde(default)]
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
    #[serde(default)]
    add_cross_attention: bool,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
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
    /// What only a DeBERTa has.
    #[serde(flatten, skip_deserializing)]
    deberta: Option<Fields>,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn a_tenth() -> f32 {
    0.1
}

fn said<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<usize>>, D::Error> {
    Option::deserialize(value).map(Some)
}

fn deviation() -> f32 {
    0.02
}

fn epsilon() -> f32 {
    1e-12
}

fn yes() -> bool {
    true
}

impl Config {
    /// What the file asks for, or the first thing in it that cannot be had.
    fn read(&self) -> Result<BertConfig, Error> {
        if let Some(kind) = self.position_embedding_type.as_deref().filter(|kind| *kind != "absolute") {
            let problem = format!("`{kind}` is not supported, only absolute");
            return Err(Error::config("position_embedding_type", problem));
        }
        let flags = [("is_decoder", self.is_decoder), ("add_cross_attention", self.add_cross_attention)];
        if let Some((field, _)) = flags.into_iter().find(|(_, asked)| *asked) {
            return Err(Error::config(field, "true is not supported for this model type, only false"));
        }
        let architecture = self.architectures.iter().flatten().next().map(String::as_str);
        let relative = Relative::find(&self.model_type, architecture).unwrap_or(Relative::Bert);
        let pad = self.pad_token_id.unwrap_or(Some(relative.particulars().pad));
        let (rows, first) = (self.max_position_embeddings, relative.first_position(pad));
        if first > 0 && rows <= first {
            let problem = format!("must be above {first}, where positions begin, not {rows}");
            return Err(Error::config("max_position_embeddings", problem));
        }
        let sizes = [self.hidden_size, self.num_attention_heads, rows];
        let deberta = self.deberta.as_ref();
        let disentangled =
            deberta.map(|fields| fields.read(relative == Relative::Deberta, sizes)).transpose()?;
        let config = BertConfig {
            relative,
            vocab_size: self.vocab_size,
            d_model: self.hidden_size,
            h: self.num_attention_heads,
            d_ff: self.intermediate_size,
            layers: self.num_hidden_layers,
            activation: activation_named("hidden_act", &self.hidden_act)?,
            epsilon: self.layer_norm_eps.unwrap_or(relative.particulars().epsilon),
            max_positions: rows - first,
            token_types: self.type_vocab_size.unwrap_or(relative.particulars().token_types),
            dropout: self.hidden_dropout_prob,
            attention_dropout: self.attention_probs_dropout_prob,
            classifier_dropout: deberta.map_or(self.classifier_dropout, |fields| fields.cls_dropout),
            deviation: self.initializer_range,
            pad,
            tied_output: self.tie_word_embeddings,
            labels: labels(self.id2label.as_ref(), self.num_labels)?,
            problem: self.problem_type,
            disentangled,
        };
        config.check().map_err(in_their_words)?;
        Ok(config)
    }

    /// The file of a model for a task.
    fn of(config: &BertConfig, task: Task) -> Config {
        let labels = task.has_labels().then_some(&config.labels);
        Config {
            model_type: config.relative.particulars().model_type.to_owned(),
            architectures: Some(vec![config.relative.architecture(task).to_owned()]),
            vocab_size: config.vocab_size,
            hidden_size: config.d_model,
            num_hidden_layers: config.layers,
            num_attention_heads: config.h,
            intermediate_size: config.d_ff,
            hidden_act: name_of_activation(config.activation).to_owned(),
            hidden_dropout_prob: config.dropout,
            attention_probs_dropout_prob: config.attention_dropout,
            classifier_dropout: config.classifier_dropout.filter(|_| config.disentangled.is_none()),
            max_position_embeddings: config.first_position() + config.max_positions,
            type_vocab_size: Some(config.token_types),
            initializer_range: config.deviation,
            layer_norm_eps: Some(config.epsilon),
            pad_token_id: Some(config.pad),
            position_embedding_type: Some("absolute".to_owned()),
            is_decoder: false,
            add_cross_attention: false,
            tie_word_embeddings: config.tied_output,
            // transformers counts id2label.
            num_labels: None,
            id2label: labels.map(|labels| labels.iter().cloned().enumerate().collect()),
            label2id: labels.map(|labels| labels.iter().cloned().zip(0..).collect()),
            problem_type: config.problem.filter(|_| labels.is_some()),
            dtype: Some("float32"),
            deberta: config.disentangled.as_ref().map(|own| Fields::of(own, config)),
        }
    }
}

/// A mistake in a field of [`BertConfig`], by the name that it has in the file.
fn in_their_words(error: Error) -> Error {
    const WORDS: [(&str, &str); 14] = [
        ("d_model", "hidden_size"),
        ("h", "num_attention_heads"),
        ("d_ff", "intermediate_size"),
        ("layers", "num_hidden_layers"),
        ("epsilon", "layer_norm_eps"),
        ("max_positions", "max_position_embeddings"),
        ("token_types", "type_vocab_size"),
        ("dropout", "hidden_dropout_prob"),
        ("attention_dropout", "attention_probs_dropout_prob"),
        ("deviation", "initializer_range"),
        ("pad", "pad_token_id"),
        ("tied_output", "tie_word_embeddings"),
        ("labels", "id2label"),
        ("problem", "problem_type"),
    ];
    error.in_words(&WORDS)
}

impl BertConfig {
    /// BERT base: 12 layers of width 768 with 12 heads, 110 million parameters with its 30 522 tokens; two classes without names.
    pub fn base(vocab_size: usize) -> BertConfig {
        BertConfig {
            relative: Relative::Bert,
            vocab_size,
            d_model: 768,
            h: 12,
            d_ff: 3072,
            layers: 12,
            activation: Activation::Gelu,
            epsilon: epsilon(),
            max_positions: 512,
            token_types: 2,
            dropout: 0.1,
            attention_dropout: 0.1,
            classifier_dropout: None,
            deviation: deviation(),
            pad: Some(0),
            tied_output: true,
            labels: default_labels(2),
            problem: None,
            disentangled: None,
        }
    }

    /// The sizes that have a name: `tiny` and `small` as Google's small BERTs have them, `base`, and `big`, which is BERT large.
    pub fn preset(name: &str, vocab_size: usize) -> Result<BertConfig, Error> {
        BertConfig::preset_of(Relative::Bert, name, vocab_size)
    }

    /// The same sizes of a family that shares the encoder. A later DeBERTa is the third.
    pub fn preset_of(relative: Relative, name: &str, vocab_size: usize) -> Result<BertConfig, Error> {
        let (d_model, layers) = match name {
            "tiny" => (128, 2),
            "small" => (512, 4),
            "base" => (768, 12),
            "big" => (1024, 24),
            _ => return Err(Error::config("preset", format!("no `{name}`: use tiny, small, base or big"))),
        };
        let (h, d_ff) = (d_model / 64, 4 * d_model);
        let base = BertConfig::base(vocab_size);
        let own = relative.particulars();
        let disentangled = match relative {
            Relative::Bert | Relative::Roberta | Relative::XlmRoberta => None,
            Relative::Deberta => Some(Disentangled::first(base.max_positions)),
            Relative::DebertaV2 => Some(Disentangled::third(base.max_positions)),
        };
        let token_types = if disentangled.is_some() { 0 } else { own.token_types };
        let (epsilon, pad) = (own.epsilon, Some(own.pad));
        Ok(BertConfig { relative, d_model, h, d_ff, layers, token_types, epsilon, pad, disentangled, ..base })
    }

    /// Reads the `config.json` of a folder.
    pub fn load(folder: &Path) -> Result<BertConfig, Error> {
        let read = ConfigFile::open(folder)?;
        let mut file: Config = read.read_as(Family::Bert)?;
        if matches!(Relative::of(folder)?, Relative::Deberta | Relative::DebertaV2) {
            file.deberta = Some(read.read_as(Family::Bert)?);
        }
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
            ("vocab_size", self.vocab_size, MOST_TOKENS),
            ("d_model", self.d_model, WIDEST),
            ("h", self.h, WIDEST),
            ("d_ff", self.d_ff, WIDEST),
            ("layers", self.layers, MOST_LAYERS),
            ("max_positions", self.max_positions, MOST_TOKENS),
            // A DeBERTa may have none.
            ("token_types", self.token_types.max(usize::from(self.disentangled.is_some())), WIDEST),
            ("labels", self.labels.len(), WIDEST),
        ];
        sizes.into_iter().try_for_each(|(field, size, most)| limits::check_size(field, size, most))?;
        let classifier = ("classifier_dropout", self.classifier_dropout.unwrap_or(0.0));
        for (field, p) in
            [("dropout", self.dropout), ("attention_dropout", self.attention_dropout), classifier]
        {
            limits::check_dropout(field, p)?;
        }
        for (field, number) in [("epsilon", self.epsilon), ("deviation", self.deviation)] {
            if !(number.is_finite() && number >= 0.0) {
                return Err(Error::config(field, format!("must be at least 0, not {number}")));
            }
        }
        if let Some(pad) = self.pad.filter(|&pad| pad >= self.vocab_size) {
            let problem = format!("token {pad} must be below vocab_size {}", self.vocab_size);
            return Err(Error::config("pad", problem));
        }
        self.stack()?;
        let wide = |size: usize| size as u64;
        let (d, layers) = (wide(self.d_model), wide(self.layers));
        let tables = [self.vocab_size, self.max_positions, self.token_types].map(wide).iter().sum::<u64>();
        let layer = d.saturating_mul(4 * d + 2 * wide(self.d_ff));
        limits::check_parameters(tables.saturating_mul(d).saturating_add(layers.saturating_mul(layer)))
    }

    /// The row of the table of positions that the first token of a text has.
    pub(super) fn first_position(&self) -> usize {
        self.relative.first_position(self.pad)
    }

    /// Dropout of the first token before the dense layer of a text's class.
    pub(super) fn first_dropout(&self) -> f32 {
        match (&self.disentangled, self.relative) {
            (Some(own), _) => own.pooler.0,
            (None, Relative::Bert) => 0.0,
            (None, _) => self.head_dropout(),
        }
    }

    /// Dropout before a classifier.
    pub(super) fn head_dropout(&self) -> f32 {
        self.classifier_dropout.unwrap_or(self.dropout)
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.labels.len()
    }

    /// What the classes of a text are: as transformers tells it, a single class means a number.
    pub fn problem(&self) -> Problem {
        self.problem.unwrap_or(Problem::of(self.classes()))
    }

    pub(super) fn embedding(&self) -> EmbeddingConfig {
        EmbeddingConfig {
            vocab_size: self.vocab_size,
            d_emb: self.d_model,
            d_model: self.d_model,
            padding: self.pad,
            scaled: false,
        }
    }

    pub(super) fn stack(&self) -> Result<StackConfig, Error> {
        let attention = MultiHeadConfig::new(self.d_model, self.h)?;
        let attention = MultiHeadConfig { dropout: self.attention_dropout, ..attention };
        Ok(StackConfig {
            activation: self.activation,
            epsilon: self.epsilon,
            dropout: self.dropout,
            ..StackConfig::new(self.layers, attention, self.d_ff)
        })
    }
}
