//! The `config.json` of a GPT-1.

use crate::error::Error;
use crate::families::GPT1;
use crate::families::gpt2::{Gpt2Config, Version};
use attentive_tensor::Activation;
use serde::{Deserialize, Serialize};

/// The file. What is missing is what transformers' `OpenAIGPTConfig` takes for it, but a missing size is a mistake.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::families) struct Config {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    vocab_size: usize,
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    #[serde(default = "gelu")]
    afn: String,
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
    tie_word_embeddings: bool,
    #[serde(default)]
    bos_token_id: Option<usize>,
    #[serde(default)]
    eos_token_id: Option<usize>,
    #[serde(skip_deserializing)]
    dtype: Option<&'static str>,
}

/// The functions and the names that this family has for them.
const FUNCTIONS: [(&str, Activation); 4] = [
    ("gelu", Activation::GeluTanh),
    ("relu", Activation::Relu),
    ("silu", Activation::Silu),
    ("swish", Activation::Silu),
];

fn gelu() -> String {
    "gelu".to_owned()
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

/// The sizes that a file asks for, not checked yet.
pub(in crate::families) fn read(file: &Config) -> Result<Gpt2Config, Error> {
    let activation = FUNCTIONS.iter().find(|(name, _)| *name == file.afn).map(|(_, function)| *function);
    let unknown = || {
        Error::config(
            "afn",
            format!("`{}` is not supported; supported are gelu, relu, silu, swish", file.afn),
        )
    };
    Ok(Gpt2Config {
        version: Version::Gpt1,
        vocab_size: file.vocab_size,
        d_model: file.n_embd,
        h: file.n_head,
        d_ff: file.n_embd.saturating_mul(4),
        layers: file.n_layer,
        activation: activation.ok_or_else(unknown)?,
        epsilon: file.layer_norm_epsilon,
        max_positions: file.n_positions,
        scaled_attention: true,
        window: 0,
        local: Vec::new(),
        dropout: file.resid_pdrop,
        embedding_dropout: file.embd_pdrop,
        attention_dropout: file.attn_pdrop,
        deviation: file.initializer_range,
        tied_output: file.tie_word_embeddings,
        bos: file.bos_token_id,
        eos: file.eos_token_id,
    })
}

/// The file of a model.
pub(in crate::families) fn text(config: &Gpt2Config) -> String {
    let function = FUNCTIONS.iter().find(|(_, function)| *function == config.activation);
    let file = Config {
        model_type: GPT1.to_owned(),
        architectures: Some(vec!["OpenAIGPTLMHeadModel".to_owned()]),
        vocab_size: config.vocab_size,
        n_positions: config.max_positions,
        n_embd: config.d_model,
        n_layer: config.layers,
        n_head: config.h,
        afn: function.map_or_else(gelu, |(name, _)| (*name).to_owned()),
        resid_pdrop: config.dropout,
        embd_pdrop: config.embedding_dropout,
        attn_pdrop: config.attention_dropout,
        layer_norm_epsilon: config.epsilon,
        initializer_range: config.deviation,
        tie_word_embeddings: config.tied_output,
        bos_token_id: config.bos,
        eos_token_id: config.eos,
        dtype: Some("float32"),
    };
    serde_json::to_string_pretty(&file).expect("a plain structure") + "\n"
}
