//! `config.json` of a Transformer, in Marian's words.

use super::dialect::{Choices, Dialect};
use super::{Transformer, TransformerConfig};
use crate::checkpoint::CONFIG;
use crate::checkpoint::{Staged, StoredType};
use crate::error::Error;
use crate::families::{ConfigFile, Family, config_like};
use crate::layers::{NormPlacement, PositionKind, activation_named, name_of_activation};
use serde::{Deserialize, Deserializer, Serialize};
use std::path::Path;

/// `config.json`. Fields that Marian does not have are left out where Marian needs none. What is missing is
/// what transformers' `MarianConfig` takes for it, but a missing size or token is a mistake. What only
/// matters to transformers' own training (dropout of activations, of layers) is not read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Config {
    model_type: String,
    #[serde(default)]
    architectures: Vec<String>,
    vocab_size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    decoder_vocab_size: Option<usize>,
    d_model: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    d_emb: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    d_k: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    d_v: Option<usize>,
    encoder_layers: usize,
    decoder_layers: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
    encoder_ffn_dim: usize,
    decoder_ffn_dim: usize,
    activation_function: String,
    #[serde(default = "a_tenth")]
    dropout: f32,
    #[serde(default)]
    attention_dropout: f32,
    #[serde(default)]
    normalize_before: bool,
    #[serde(default, skip_serializing)]
    normalize_embedding: bool,
    #[serde(default, skip_serializing)]
    add_final_layer_norm: bool,
    #[serde(default = "yes", skip_serializing)]
    static_position_embeddings: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    positions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position_offset: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding_norm: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    writes_padding: Option<bool>,
    max_position_embeddings: usize,
    #[serde(default)]
    scale_embedding: bool,
    #[serde(default = "yes")]
    share_encoder_decoder_embeddings: bool,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
    #[serde(default = "yes")]
    is_encoder_decoder: bool,
    // Without this a missing field would be no padding.
    #[serde(deserialize_with = "Option::deserialize")]
    pad_token_id: Option<usize>,
    #[serde(deserialize_with = "first_token")]
    eos_token_id: usize,
    #[serde(default)]
    decoder_start_token_id: Option<usize>,
    #[serde(skip_deserializing)]
    forced_eos_token_id: Option<usize>,
    #[serde(skip_deserializing)]
    dtype: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization_config: Option<Quantization>,
    /// Of training; other programs ignore it.
    #[serde(skip_serializing_if = "Option::is_none")]
    attentive_multi_sentence_share: Option<f64>,
}

/// How weights are stored, if not in floating point: programs that do not know the method are to refuse the
/// model.
#[derive(Debug, Serialize, Deserialize)]
struct Quantization {
    quant_method: String,
    version: Option<u32>,
}

/// Matrices as rows of int8 with a scale for each, as [`checkpoint`](crate::checkpoint) describes it.
const INT8: &str = "attentive_int8";
const INT8_VERSION: u32 = 1;

fn yes() -> bool {
    true
}

/// The token, or the first of several that end a sequence; search reads all of them by itself.
fn first_token<'de, D: Deserializer<'de>>(file: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(usize),
        Many(Vec<usize>),
    }
    let first = match OneOrMany::deserialize(file) {
        Ok(OneOrMany::One(one)) => Some(one),
        Ok(OneOrMany::Many(many)) => many.first().copied(),
        Err(_) => None,
    };
    first.ok_or_else(|| serde::de::Error::custom("eos_token_id: a token or a list of tokens is needed"))
}

fn a_tenth() -> f32 {
    0.1
}

const POSITIONS: [(&str, PositionKind); 4] = [
    ("halves", PositionKind::Halves),
    ("interleaved", PositionKind::Interleaved),
    ("learned", PositionKind::Learned),
    ("tensor2tensor", PositionKind::Tensor2Tensor),
];

fn names<T>(list: &[(&str, T)]) -> String {
    list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The value of the entry with this key, or the keys there are.
fn look_up<T: Copy>(list: &[(&str, T)], field: &'static str, name: &str) -> Result<T, Error> {
    let found = list.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        Error::config(field, format!("`{name}` is not supported; supported are {}", names(list)))
    })
}

/// The key of the entry with this value: every value has one.
fn name_of<T: Copy + PartialEq>(list: &[(&'static str, T)], value: T) -> String {
    let found = list.iter().find(|(_, known)| *known == value);
    found.map(|(name, _)| (*name).to_owned()).expect("every value has a name")
}

/// A mistake in a field of [`TransformerConfig`], by the name that it has in the file.
fn in_marians_words(error: Error) -> Error {
    const WORDS: [(&str, &str); 9] = [
        ("target_vocab_size", "decoder_vocab_size"),
        ("h", "encoder_attention_heads"),
        ("decoder_h", "decoder_attention_heads"),
        ("d_ff", "encoder_ffn_dim"),
        ("decoder_d_ff", "decoder_ffn_dim"),
        ("max_positions", "max_position_embeddings"),
        ("pad", "pad_token_id"),
        ("eos", "eos_token_id"),
        ("start", "decoder_start_token_id"),
    ];
    error.in_words(&WORDS)
}

/// Why Marian's code cannot compute such a model, whatever the order of its width; none if it can.
pub(super) fn not_marian(config: &TransformerConfig) -> Option<&'static str> {
    let d_model = config.d_model;
    let shared = |d: Option<usize>, h: usize| d.is_none_or(|d| d * h == d_model);
    let divided = |h: usize| d_model.is_multiple_of(h) && shared(config.d_k, h) && shared(config.d_v, h);
    let reasons = [
        (config.norm == NormPlacement::Pre, "it has pre-norm, and Marian has post-norm"),
        (
            config.positions == PositionKind::Learned,
            "its positional encodings are learned, and Marian's are sinusoids",
        ),
        (
            !(divided(config.h) && divided(config.decoder_heads())),
            "the width of its heads is not d_model / h, as Marian needs",
        ),
        (
            config.d_emb.is_some_and(|d| d != d_model),
            "the width of its embeddings is not d_model, as Marian needs",
        ),
        (config.pad.is_none(), "it has no padding token, which Marian needs"),
        (config.position_offset > 0, "its positions are not counted from zero, as Marian's are"),
        (
            config.positions == PositionKind::Tensor2Tensor,
            "its sinusoids have other wavelengths than Marian's",
        ),
        (config.embedding_norm, "it norms embedded tokens, and Marian does not"),
        (config.writes_padding, "it can write padding, which Marian cannot"),
    ];
    reasons.into_iter().find(|(differs, _)| *differs).map(|(_, reason)| reason)
}

impl Config {
    /// The file of a model whose weights are stored like that.
    pub(super) fn of(config: &TransformerConfig, stored: StoredType) -> Config {
        let dialect = Dialect::of(config);
        // Everything else must not be mistaken for what the code of others can compute.
        let is_own = dialect == Dialect::Attentive;
        let own = |value| if is_own { value } else { None };
        let int8 = Quantization { quant_method: INT8.to_owned(), version: Some(INT8_VERSION) };
        Config {
            model_type: dialect.name().to_owned(),
            architectures: dialect.architecture().map(str::to_owned).into_iter().collect(),
            vocab_size: config.vocab_size,
            decoder_vocab_size: Some(config.target_vocabulary()),
            d_model: config.d_model,
            d_emb: own(config.d_emb),
            d_k: own(config.d_k),
            d_v: own(config.d_v),
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            encoder_attention_heads: config.h,
            decoder_attention_heads: config.decoder_heads(),
            encoder_ffn_dim: config.d_ff,
            decoder_ffn_dim: config.decoder_d_ff.unwrap_or(config.d_ff),
            activation_function: name_of_activation(config.activation).to_owned(),
            dropout: config.dropout,
            attention_dropout: config.attention_dropout,
            normalize_before: config.norm == NormPlacement::Pre,
            normalize_embedding: false,
            add_final_layer_norm: false,
            static_position_embeddings: true,
            positions: is_own.then(|| name_of(&POSITIONS, config.positions)),
            position_offset: own(Some(config.position_offset).filter(|&offset| offset > 0)),
            embedding_norm: (is_own && config.embedding_norm).then_some(true),
            writes_padding: (is_own && config.writes_padding).then_some(true),
            max_position_embeddings: config.max_positions,
            scale_embedding: config.scaled_embeddings,
            share_encoder_decoder_embeddings: config.shared_embeddings,
            tie_word_embeddings: config.tied_output,
            is_encoder_decoder: true,
            pad_token_id: config.pad,
            eos_token_id: config.eos,
            decoder_start_token_id: Some(config.start),
            forced_eos_token_id: Some(config.eos),
            dtype: Some(if stored == StoredType::Bf16 { "bfloat16" } else { "float32" }),
            quantization_config: (stored == StoredType::Int8).then_some(int8),
            attentive_multi_sentence_share: None,
        }
    }

    /// Reads the file of a folder.
    pub(super) fn load(folder: &Path) -> Result<Config, Error> {
        ConfigFile::open(folder)?.read_as(Family::Transformer)
    }

    fn stage(&self, folder: &Path) -> Result<Staged, Error> {
        let text = serde_json::to_string_pretty(self).expect("a plain structure") + "\n";
        Staged::new(&folder.join(CONFIG), text.as_bytes())
    }

    /// What the file asks for, or the first thing in it that cannot be had.
    fn read(&self) -> Result<TransformerConfig, Error> {
        self.refuse()?;
        let dialect = Dialect::named(&self.model_type);
        let choices = match dialect.choices() {
            Some(choices) => choices,
            None => Choices {
                norm: if self.normalize_before { NormPlacement::Pre } else { NormPlacement::Post },
                embedding_norm: self.embedding_norm.unwrap_or(false),
                positions: look_up(&POSITIONS, "positions", self.positions.as_deref().unwrap_or("halves"))?,
                position_offset: self.position_offset.unwrap_or(0),
            },
        };
        let missing = || Error::config("decoder_start_token_id", "it is missing");
        let start = match (self.decoder_start_token_id, dialect) {
            (Some(start), _) => start,
            (None, Dialect::Marian | Dialect::Attentive) => return Err(missing()),
            (None, _) => self.eos_token_id,
        };
        let config = TransformerConfig {
            vocab_size: self.vocab_size,
            target_vocab_size: self.decoder_vocab_size.filter(|&size| size != self.vocab_size),
            shared_embeddings: self.share_encoder_decoder_embeddings,
            tied_output: self.tie_word_embeddings,
            scaled_embeddings: self.scale_embedding,
            d_model: self.d_model,
            d_emb: self.d_emb,
            h: self.encoder_attention_heads,
            decoder_h: Some(self.decoder_attention_heads).filter(|&h| h != self.encoder_attention_heads),
            d_k: self.d_k,
            d_v: self.d_v,
            d_ff: self.encoder_ffn_dim,
            decoder_d_ff: Some(self.decoder_ffn_dim).filter(|&d_ff| d_ff != self.encoder_ffn_dim),
            encoder_layers: self.encoder_layers,
            decoder_layers: self.decoder_layers,
            dropout: self.dropout,
            attention_dropout: self.attention_dropout,
            activation: activation_named("activation_function", &self.activation_function)?,
            norm: choices.norm,
            positions: choices.positions,
            position_offset: choices.position_offset,
            embedding_norm: choices.embedding_norm,
            max_positions: self.max_position_embeddings,
            pad: self.pad_token_id,
            writes_padding: dialect.choices().is_some() || self.writes_padding.unwrap_or(false),
            eos: self.eos_token_id,
            start,
        };
        config.check().map_err(in_marians_words)?;
        Ok(config)
    }

    /// Names what the file asks for and we do not have.
    fn refuse(&self) -> Result<(), Error> {
        let dialect = Dialect::named(&self.model_type);
        let marian = dialect == Dialect::Marian;
        // The other fields are left over in the files of fairseq's models, and no code reads them.
        let count = if dialect.choices().is_some() { 1 } else { 5 };
        let flags = [
            ("is_encoder_decoder", self.is_encoder_decoder, true),
            // Left over from the first converted models, and read by no version of Marian's code since.
            ("normalize_before", marian && self.normalize_before, false),
            ("normalize_embedding", self.normalize_embedding, false),
            ("add_final_layer_norm", self.add_final_layer_norm, false),
            ("static_position_embeddings", self.static_position_embeddings, true),
        ];
        for (field, found, supported) in flags.into_iter().take(count) {
            if found != supported {
                let problem = format!("{found} is not supported for this model type, only {supported}");
                return Err(Error::config(field, problem));
            }
        }
        match &self.quantization_config {
            Some(Quantization { quant_method, .. }) if quant_method != INT8 => {
                let problem = format!(
                    "the method `{quant_method}` is not supported: use the model without quantization"
                );
                Err(Error::config("quantization_config", problem))
            }
            Some(Quantization { version, .. }) if *version != Some(INT8_VERSION) => {
                let version = version.map_or("none".to_owned(), |version| version.to_string());
                let problem = format!(
                    "version {version} of {INT8} is not supported, only {INT8_VERSION}: convert the model again"
                );
                Err(Error::config("quantization_config", problem))
            }
            _ => Ok(()),
        }
    }
}

impl Transformer {
    /// Whether the matrices of a folder are stored in int8, as its `config.json` says.
    pub fn is_stored_in_int8(folder: &Path) -> Result<bool, Error> {
        Ok(Config::load(folder)?.quantization_config.is_some())
    }
}

impl TransformerConfig {
    /// Reads the `config.json` of a folder.
    pub fn load(folder: &Path) -> Result<TransformerConfig, Error> {
        let config = Config::load(folder)?;
        config.read().map_err(|error| Error::Format { path: folder.join(CONFIG), problem: error.to_string() })
    }

    /// The `model_type` of its folder: whose code computes it, too.
    pub fn model_type(&self) -> &'static str {
        Dialect::of(self).name()
    }

    /// Writes the `config.json` of a folder, of a model in f32, beside the old one.
    pub fn stage(&self, folder: &Path) -> Result<Staged, Error> {
        Config::of(self, StoredType::F32).stage(folder)
    }

    /// The same with what the model in the folder `origin`, from which this one has learned, says beside it.
    pub fn stage_like(&self, folder: &Path, origin: &Path) -> Result<Staged, Error> {
        config_like(folder, &Config::of(self, StoredType::F32), origin)
    }

    /// [`TransformerConfig::stage`] with what [`multi_sentence_share`] reads.
    pub fn stage_with_share(&self, folder: &Path, multi_sentence_share: f64) -> Result<Staged, Error> {
        let share = Some(multi_sentence_share);
        Config { attentive_multi_sentence_share: share, ..Config::of(self, StoredType::F32) }.stage(folder)
    }
}

/// The share of the training lines of a folder's model that had several sentences, if its training wrote it. BART has learned from
/// documents.
pub fn multi_sentence_share(folder: &Path) -> Result<Option<f64>, Error> {
    let config = Config::load(folder)?;
    let documents = Dialect::named(&config.model_type) == Dialect::Bart;
    Ok(config.attentive_multi_sentence_share.or(documents.then_some(1.0)))
}
