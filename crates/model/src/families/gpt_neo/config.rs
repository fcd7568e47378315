//! The `config.json` of a GPT-Neo.

use crate::error::Error;
use crate::families::GPT_NEO;
use crate::families::gpt2::{Gpt2Config, Version};
use crate::layers::{activation_named, name_of_activation};
use crate::limits::MOST_LAYERS;
use serde::{Deserialize, Serialize};

/// The file. What is missing is what transformers' `GPTNeoConfig` takes for it, but a missing size is a mistake.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::families) struct Config {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    vocab_size: usize,
    max_position_embeddings: usize,
    hidden_size: usize,
    num_layers: usize,
    num_heads: usize,
    attention_types: Vec<(Vec<Sight>, usize)>,
    #[serde(default)]
    intermediate_size: Option<usize>,
    #[serde(default = "window")]
    window_size: usize,
    #[serde(default = "gelu_new")]
    activation_function: String,
    #[serde(default)]
    resid_dropout: f32,
    #[serde(default)]
    embed_dropout: f32,
    #[serde(default)]
    attention_dropout: f32,
    #[serde(default = "epsilon")]
    layer_norm_epsilon: f32,
    #[serde(default = "deviation")]
    initializer_range: f32,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
    #[serde(default = "end_of_text")]
    bos_token_id: Option<usize>,
    #[serde(default = "end_of_text")]
    eos_token_id: Option<usize>,
    #[serde(skip_deserializing)]
    dtype: Option<&'static str>,
}

/// What a layer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sight {
    /// The whole text before it.
    Global,
    /// The last tokens alone.
    Local,
}

fn window() -> usize {
    256
}

fn gelu_new() -> String {
    "gelu_new".to_owned()
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

/// What each layer sees: patterns, each as often as it is said.
fn sights(types: &[(Vec<Sight>, usize)]) -> Result<Vec<Sight>, Error> {
    let layers = types.iter().map(|(pattern, times)| pattern.len().saturating_mul(*times));
    let count = layers.fold(0, usize::saturating_add);
    if count > MOST_LAYERS {
        return Err(Error::config("attention_types", format!("has {count} layers, more than {MOST_LAYERS}")));
    }
    Ok(types.iter().flat_map(|(pattern, times)| pattern.repeat(*times)).collect())
}

/// The shortest pattern that gives these layers.
fn pattern(sights: &[Sight]) -> Vec<(Vec<Sight>, usize)> {
    let repeats = |length: &usize| {
        sights.len().is_multiple_of(*length)
            && sights.chunks(*length).all(|chunk| chunk == &sights[..*length])
    };
    let length = (1..=sights.len()).find(repeats).unwrap_or(1);
    vec![(sights[..length.min(sights.len())].to_vec(), sights.len() / length)]
}

/// The sizes that a file asks for, not checked yet.
pub(in crate::families) fn read(file: &Config) -> Result<Gpt2Config, Error> {
    let sights = sights(&file.attention_types)?;
    if sights.len() != file.num_layers {
        let problem = format!("names {} layers, and num_layers is {}", sights.len(), file.num_layers);
        return Err(Error::config("attention_types", problem));
    }
    if file.window_size == 0 {
        return Err(Error::config("window_size", "must be at least 1, not 0"));
    }
    Ok(Gpt2Config {
        version: Version::GptNeo,
        vocab_size: file.vocab_size,
        d_model: file.hidden_size,
        h: file.num_heads,
        d_ff: file.intermediate_size.unwrap_or(file.hidden_size.saturating_mul(4)),
        layers: file.num_layers,
        activation: activation_named("activation_function", &file.activation_function)?,
        epsilon: file.layer_norm_epsilon,
        max_positions: file.max_position_embeddings,
        scaled_attention: false,
        window: file.window_size,
        local: sights.iter().map(|sight| *sight == Sight::Local).collect(),
        dropout: file.resid_dropout,
        embedding_dropout: file.embed_dropout,
        attention_dropout: file.attention_dropout,
        deviation: file.initializer_range,
        tied_output: file.tie_word_embeddings,
        bos: file.bos_token_id,
        eos: file.eos_token_id,
    })
}

/// The file of a model.
pub(in crate::families) fn text(config: &Gpt2Config) -> String {
    let sight = |layer| if config.is_local(layer) { Sight::Local } else { Sight::Global };
    let file = Config {
        model_type: GPT_NEO.to_owned(),
        architectures: Some(vec!["GPTNeoForCausalLM".to_owned()]),
        vocab_size: config.vocab_size,
        max_position_embeddings: config.max_positions,
        hidden_size: config.d_model,
        num_layers: config.layers,
        num_heads: config.h,
        attention_types: pattern(&(0..config.layers).map(sight).collect::<Vec<_>>()),
        intermediate_size: (config.d_ff != 4 * config.d_model).then_some(config.d_ff),
        window_size: config.window,
        activation_function: name_of_activation(config.activation).to_owned(),
        resid_dropout: config.dropout,
        embed_dropout: config.embedding_dropout,
        attention_dropout: config.attention_dropout,
        layer_norm_epsilon: config.epsilon,
        initializer_range: config.deviation,
        tie_word_embeddings: config.tied_output,
        bos_token_id: config.bos,
        eos_token_id: config.eos,
        dtype: Some("float32"),
    };
    serde_json::to_string_pretty(&file).expect("a plain structure") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_told_by_the_shortest_pattern() {
        use Sight::{Global, Local};
        let cases = [
            (vec![Global, Local, Global, Local], vec![(vec![Global, Local], 2)]),
            (vec![Global; 3], vec![(vec![Global], 3)]),
            (vec![Global, Global, Local], vec![(vec![Global, Global, Local], 1)]),
        ];
        for (layers, told) in cases {
            assert_eq!(pattern(&layers), told);
            assert_eq!(sights(&told).unwrap(), layers);
        }
        assert!(sights(&[(vec![Global], usize::MAX), (vec![Local], 2)]).is_err());
    }
}
