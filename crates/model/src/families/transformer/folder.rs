//! A Transformer as a folder: `config.json` in Marian's words, `model.safetensors` with Marian's names.

use super::{Transformer, TransformerConfig};
use crate::builder::Builder;
use crate::checkpoint::{self, Checkpoint, Staged};
use crate::error::Error;
use crate::layers::{NormPlacement, PositionKind};
use attentive_tensor::{Activation, Backend, Shape};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// `config.json`. Fields that Marian does not have are left out where Marian needs none. What is missing is what
/// transformers' `MarianConfig` takes for it, but a missing size or token is a mistake.
#[derive(Debug, Serialize, Deserialize)]
struct Config {
    model_type: String,
    #[serde(default)]
    architectures: Vec<String>,
    vocab_size: usize,
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
    activation_dropout: f32,
    #[serde(default)]
    normalize_before: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    positions: Option<String>,
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
    eos_token_id: usize,
    decoder_start_token_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    forced_eos_token_id: Option<usize>,
}

fn yes() -> bool {
    true
}

fn a_tenth() -> f32 {
    0.1
}

const MARIAN: &str = "marian";
const OWN: &str = "attentive-transformer";
const ACTIVATIONS: [(&str, Activation); 6] = [
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
    ("gelu_new", Activation::GeluTanh),
    ("swish", Activation::Silu),
    ("silu", Activation::Silu),
    ("tanh", Activation::Tanh),
];
const POSITIONS: [(&str, PositionKind); 3] = [
    ("halves", PositionKind::Halves),
    ("interleaved", PositionKind::Interleaved),
    ("learned", PositionKind::Learned),
];

fn names<T>(list: &[(&str, T)]) -> String {
    list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The value of the entry with this key, or the keys there are.
fn look_up<T: Copy>(list: &[(&str, T)], field: &'static str, name: &str) -> Result<T, Error> {
    let found = list.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| Error::config(field, format!("`{name}` is not supported; known are {}", names(list))))
}

/// The key of the entry with this value: every value has one.
fn name_of<T: Copy + PartialEq>(list: &[(&'static str, T)], value: T) -> String {
    let found = list.iter().find(|(_, known)| *known == value);
    found.map(|(name, _)| (*name).to_owned()).expect("every value has a name")
}

/// A mistake in a field of [`TransformerConfig`], by the name that it has in the file.
fn in_marians_words(error: Error) -> Error {
    const WORDS: [(&str, &str); 6] = [
        ("h", "encoder_attention_heads"),
        ("d_ff", "encoder_ffn_dim"),
        ("max_positions", "max_position_embeddings"),
        ("pad", "pad_token_id"),
        ("eos", "eos_token_id"),
        ("start", "decoder_start_token_id"),
    ];
    match error {
        Error::Config { field, problem } => {
            let word = WORDS.iter().find(|(ours, _)| *ours == field).map_or(field, |(_, theirs)| theirs);
            Error::Config { field: word, problem }
        }
        other => other,
    }
}

impl Config {
    fn of(config: &TransformerConfig) -> Config {
        // What Marian's code can compute; everything else must not be mistaken for it.
        let plain = config.d_model.is_multiple_of(config.h)
            && [config.d_k, config.d_v].iter().all(|d| d.is_none_or(|d| d * config.h == config.d_model))
            && config.d_emb.is_none_or(|d| d == config.d_model)
            && config.norm == NormPlacement::Post
            && config.positions == PositionKind::Halves
            && config.pad.is_some();
        let own = |value| if plain { None } else { value };
        Config {
            model_type: if plain { MARIAN } else { OWN }.to_owned(),
            architectures: if plain { vec!["MarianMTModel".to_owned()] } else { Vec::new() },
            vocab_size: config.vocab_size,
            d_model: config.d_model,
            d_emb: own(config.d_emb),
            d_k: own(config.d_k),
            d_v: own(config.d_v),
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            encoder_attention_heads: config.h,
            decoder_attention_heads: config.h,
            encoder_ffn_dim: config.d_ff,
            decoder_ffn_dim: config.d_ff,
            activation_function: name_of(&ACTIVATIONS, config.activation),
            dropout: config.dropout,
            attention_dropout: config.attention_dropout,
            activation_dropout: 0.0,
            normalize_before: config.norm == NormPlacement::Pre,
            positions: (!plain).then(|| name_of(&POSITIONS, config.positions)),
            max_position_embeddings: config.max_positions,
            scale_embedding: true,
            share_encoder_decoder_embeddings: true,
            tie_word_embeddings: true,
            is_encoder_decoder: true,
            pad_token_id: config.pad,
            eos_token_id: config.eos,
            decoder_start_token_id: config.start,
            forced_eos_token_id: Some(config.eos),
        }
    }

    /// What the file asks for, or the first thing in it that cannot be had.
    fn read(&self) -> Result<TransformerConfig, Error> {
        if ![MARIAN, OWN].contains(&self.model_type.as_str()) {
            let problem = format!("`{}` is not supported; known are {MARIAN}, {OWN}", self.model_type);
            return Err(Error::config("model_type", problem));
        }
        let same = [
            ("decoder_attention_heads", self.encoder_attention_heads, self.decoder_attention_heads),
            ("decoder_ffn_dim", self.encoder_ffn_dim, self.decoder_ffn_dim),
        ];
        if let Some((field, encoder, decoder)) =
            same.into_iter().find(|(_, encoder, decoder)| encoder != decoder)
        {
            return Err(Error::config(field, format!("{decoder} differs from the encoder's {encoder}")));
        }
        let must = [
            ("scale_embedding", self.scale_embedding),
            ("share_encoder_decoder_embeddings", self.share_encoder_decoder_embeddings),
            ("tie_word_embeddings", self.tie_word_embeddings),
            ("is_encoder_decoder", self.is_encoder_decoder),
        ];
        if let Some((field, _)) = must.into_iter().find(|(_, set)| !set) {
            return Err(Error::config(field, "false is not supported"));
        }
        if self.activation_dropout != 0.0 {
            let problem = format!("{} is not supported, only 0", self.activation_dropout);
            return Err(Error::config("activation_dropout", problem));
        }
        let positions = self.positions.as_deref().unwrap_or("halves");
        let config = TransformerConfig {
            vocab_size: self.vocab_size,
            d_model: self.d_model,
            d_emb: self.d_emb,
            h: self.encoder_attention_heads,
            d_k: self.d_k,
            d_v: self.d_v,
            d_ff: self.encoder_ffn_dim,
            encoder_layers: self.encoder_layers,
            decoder_layers: self.decoder_layers,
            dropout: self.dropout,
            attention_dropout: self.attention_dropout,
            activation: look_up(&ACTIVATIONS, "activation_function", &self.activation_function)?,
            norm: if self.normalize_before { NormPlacement::Pre } else { NormPlacement::Post },
            positions: look_up(&POSITIONS, "positions", positions)?,
            max_positions: self.max_position_embeddings,
            pad: self.pad_token_id,
            eos: self.eos_token_id,
            start: self.decoder_start_token_id,
        };
        config.check().map_err(in_marians_words)?;
        Ok(config)
    }
}

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
/// Marian adds this to the logits; on padding it keeps the token from ever being produced.
const LOGITS_BIAS: &str = "final_logits_bias";
const NEVER: f32 = -10_000.0;

impl TransformerConfig {
    /// Reads the `config.json` of a folder.
    pub fn load(folder: &Path) -> Result<TransformerConfig, Error> {
        let path = folder.join(CONFIG);
        let text =
            std::fs::read_to_string(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        let config: Config = serde_json::from_str(&text)
            .map_err(|error| Error::Format { path: path.clone(), problem: error.to_string() })?;
        config.read().map_err(|error| Error::Format { path, problem: error.to_string() })
    }

    /// Writes the `config.json` of a folder beside the old one.
    pub fn stage(&self, folder: &Path) -> Result<Staged, Error> {
        let text = serde_json::to_string_pretty(&Config::of(self)).expect("a plain structure") + "\n";
        Staged::new(&folder.join(CONFIG), text.as_bytes())
    }
}

impl Transformer {
    /// Reads a model folder.
    pub fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        let config = TransformerConfig::load(folder)?;
        let path = folder.join(WEIGHTS);
        let checkpoint = Checkpoint::open(&path)?;
        if let Some((bias, shape)) = checkpoint.get(LOGITS_BIAS)? {
            let expected = Shape::from([1, config.vocab_size]);
            if shape != expected {
                let (found, expected) = (shape.to_string(), expected.to_string());
                return Err(Error::Shape { path, name: LOGITS_BIAS.to_owned(), found, expected });
            }
            if bias.iter().enumerate().any(|(token, &bias)| bias != 0.0 && Some(token) != config.pad) {
                let problem = format!("`{LOGITS_BIAS}` is not zero, which is not supported yet");
                return Err(Error::Format { path, problem });
            }
        }
        Transformer::new(&Builder::checkpoint(backend, &checkpoint), &config)
    }

    /// Writes a model folder; each file is replaced at once or not at all.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
        // Both are on the disk before either takes its place: what is left to fail between them is a rename.
        let weights = self.stage_weights(backend, &folder.join(WEIGHTS))?;
        let config = self.config().stage(folder)?;
        weights.commit()?;
        config.commit()
    }

    /// Writes the weights as a folder's `model.safetensors` has them, to a file of any name.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        let vocab_size = self.config().vocab_size;
        let mut bias = vec![0.0; vocab_size];
        if let Some(pad) = self.config().pad {
            bias[pad] = NEVER;
        }
        let bias = (LOGITS_BIAS, bias, Shape::from([1, vocab_size]));
        checkpoint::stage(path, backend, self.parameters(), &[bias])
    }
}
