//! `generation_config.json`: how a model wants its output to be searched for.

use crate::error::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::path::Path;

/// The settings of `generation_config.json` in transformers' words, as far as they are given.
///
/// What says how something is computed (caches, compilation) or what is returned is not read. A setting that would change
/// the output and that we do not have is refused by name.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct GenerationConfig {
    /// How many hypotheses are followed at once.
    pub num_beams: Option<usize>,
    /// How many results there are for a sentence.
    pub num_return_sequences: Option<usize>,
    /// The exponent p of |Y|^p, by which scores are divided.
    pub length_penalty: Option<f32>,
    /// When a beam search ends.
    pub early_stopping: Option<EarlyStopping>,
    /// The most tokens of a target, the start token included.
    pub max_length: Option<usize>,
    /// The most tokens that are written; it wins over `max_length`.
    pub max_new_tokens: Option<usize>,
    /// The fewest tokens of a target, the start token included.
    pub min_length: Option<usize>,
    /// The fewest tokens that are written; it wins over `min_length`.
    pub min_new_tokens: Option<usize>,
    /// Whether tokens are drawn instead of searched for.
    pub do_sample: Option<bool>,
    /// What logits are divided by before tokens are drawn.
    pub temperature: Option<f32>,
    /// How many of the likeliest tokens are drawn from; 0 for all.
    pub top_k: Option<usize>,
    /// Tokens are drawn from the likeliest ones that have this probability together.
    pub top_p: Option<f32>,
    /// Tokens are drawn from those that have this share of the likeliest one's probability.
    pub min_p: Option<f32>,
    /// What the scores of tokens that were written before are divided by, or multiplied with where they are negative.
    pub repetition_penalty: Option<f32>,
    /// No sequence of as many tokens is written twice; 0 for no such rule.
    pub no_repeat_ngram_size: Option<usize>,
    /// Sequences of tokens that are never written.
    pub bad_words_ids: Option<Vec<Vec<u32>>>,
    /// Tokens that are never written.
    pub suppress_tokens: Option<Vec<u32>>,
    /// The token that is written first, whatever the model says.
    pub forced_bos_token_id: Option<u32>,
    /// The token that is written last where the length ends a target, whatever the model says.
    #[serde(deserialize_with = "one_token")]
    pub forced_eos_token_id: Option<u32>,
    /// The token that the decoder is shown first.
    #[serde(deserialize_with = "one_token")]
    pub decoder_start_token_id: Option<u32>,
    /// The token that ends a target.
    #[serde(deserialize_with = "one_token")]
    pub eos_token_id: Option<u32>,
    /// The token of padding.
    pub pad_token_id: Option<u32>,
    /// Whether probabilities add up to one again after tokens were forbidden.
    pub renormalize_logits: Option<bool>,
}

/// When a beam search ends, if no length does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyStopping {
    /// When a better result is unlikely: `false`.
    No,
    /// As soon as there are as many results as beams: `true`.
    Yes,
    /// When a better result is impossible: `"never"`.
    Never,
}

impl<'de> Deserialize<'de> for EarlyStopping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EarlyStopping, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(EarlyStopping::No),
            Value::Bool(true) => Ok(EarlyStopping::Yes),
            Value::String(word) if word == "never" => Ok(EarlyStopping::Never),
            other => Err(serde::de::Error::custom(format!(
                "early_stopping is true, false or \"never\", not {other}"
            ))),
        }
    }
}

/// A token, also as a list of one.
fn one_token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Tokens {
        One(u32),
        List([u32; 1]),
    }
    Ok(Option::<Tokens>::deserialize(deserializer)?.map(|tokens| match tokens {
        Tokens::One(token) | Tokens::List([token]) => token,
    }))
}

const FILE: &str = "generation_config.json";
/// Where older models have the same settings.
const OLD_FILE: &str = "config.json";

/// Settings that would change the output and that we do not have, with the value at which they do nothing; those that only
/// matter when tokens are drawn come second.
const MISSING: ([(&str, f64); 12], [(&str, f64); 4]) = (
    [
        ("num_beam_groups", 1.0),
        ("diversity_penalty", 0.0),
        ("encoder_repetition_penalty", 1.0),
        ("encoder_no_repeat_ngram_size", 0.0),
        ("penalty_alpha", 0.0),
        ("guidance_scale", 1.0),
        ("exponential_decay_length_penalty", f64::NAN),
        ("begin_suppress_tokens", f64::NAN),
        ("sequence_bias", f64::NAN),
        ("force_words_ids", f64::NAN),
        ("constraints", f64::NAN),
        ("stop_strings", f64::NAN),
    ],
    [("typical_p", 1.0), ("epsilon_cutoff", 0.0), ("eta_cutoff", 0.0), ("top_h", 1.0)],
);

impl GenerationConfig {
    /// Reads the `generation_config.json` of a folder or, where there is none, what older models have in their
    /// `config.json`; for a model that can write `vocabulary` tokens.
    pub fn load(folder: &Path, vocabulary: usize) -> Result<GenerationConfig, Error> {
        let path = [FILE, OLD_FILE].map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
        let Some(path) = path else { return Ok(GenerationConfig::default()) };
        let text =
            std::fs::read_to_string(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        GenerationConfig::parse(&text, vocabulary).map_err(|problem| Error::Format { path, problem })
    }

    fn parse(text: &str, vocabulary: usize) -> Result<GenerationConfig, String> {
        let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for field in ["eos_token_id", "forced_eos_token_id", "decoder_start_token_id"] {
            let tokens = fields.get(field).and_then(Value::as_array);
            if let Some(tokens) = tokens.filter(|tokens| tokens.len() != 1) {
                return Err(format!("{field}: one token is supported, not {}", tokens.len()));
            }
        }
        let config: GenerationConfig = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let draws = config.do_sample == Some(true);
        let sampling = MISSING.1.iter().filter(|_| draws);
        for (field, nothing) in MISSING.0.iter().chain(sampling) {
            if let Some(value) = fields.get(*field).filter(|value| asks(value, *nothing)) {
                return Err(format!("{field}: {value} is not supported; take it out to go without"));
            }
        }
        if draws && config.num_beams.is_some_and(|beams| beams > 1) {
            return Err("do_sample: drawing tokens with num_beams above 1 is not supported".to_owned());
        }
        config.check(vocabulary)?;
        Ok(config)
    }

    fn check(&self, vocabulary: usize) -> Result<(), String> {
        let single = [
            ("forced_bos_token_id", self.forced_bos_token_id),
            ("forced_eos_token_id", self.forced_eos_token_id),
            ("decoder_start_token_id", self.decoder_start_token_id),
            ("eos_token_id", self.eos_token_id),
        ];
        let single = single.into_iter().filter_map(|(field, token)| Some((field, token?)));
        let bad = self.bad_words_ids.iter().flatten().flatten().map(|&token| ("bad_words_ids", token));
        let suppressed = self.suppress_tokens.iter().flatten().map(|&token| ("suppress_tokens", token));
        for (field, token) in single.chain(bad).chain(suppressed) {
            if token as usize >= vocabulary {
                return Err(format!(
                    "{field}: token {token} is not below the size of the vocabulary, {vocabulary}"
                ));
            }
        }
        let counts = [
            ("num_beams", self.num_beams),
            ("num_return_sequences", self.num_return_sequences),
            ("max_length", self.max_length),
            ("max_new_tokens", self.max_new_tokens),
        ];
        if let Some((field, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
            return Err(format!("{field}: must be at least 1, not 0"));
        }
        if self.bad_words_ids.iter().flatten().any(Vec::is_empty) {
            return Err("bad_words_ids: a sequence without tokens cannot be forbidden".to_owned());
        }
        Ok(())
    }
}

/// Whether a setting asks for anything: it is not empty and not the value that does nothing.
fn asks(value: &Value, nothing: f64) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(nothing),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<GenerationConfig, String> {
        GenerationConfig::parse(text, 100)
    }

    #[test]
    fn what_is_given_is_read_and_what_is_not_stays_open() {
        let config = parse(
            r#"{"num_beams": 6, "max_length": 512, "length_penalty": 0.5, "early_stopping": "never", "use_cache": true,
                "bad_words_ids": [[99], [3, 4]], "forced_eos_token_id": 0, "eos_token_id": [0], "pad_token_id": 99,
                "decoder_start_token_id": 99, "renormalize_logits": true, "transformers_version": "4.32.0",
                "top_k": 7, "typical_p": 0.5, "a_word_of_tomorrow": {"x": 1}}"#,
        );
        let expected = GenerationConfig {
            num_beams: Some(6),
            max_length: Some(512),
            length_penalty: Some(0.5),
            early_stopping: Some(EarlyStopping::Never),
            bad_words_ids: Some(vec![vec![99], vec![3, 4]]),
            forced_eos_token_id: Some(0),
            eos_token_id: Some(0),
            pad_token_id: Some(99),
            decoder_start_token_id: Some(99),
            renormalize_logits: Some(true),
            top_k: Some(7),
            ..GenerationConfig::default()
        };
        assert_eq!(config, Ok(expected));
        let stopping = |text: &str| parse(text).unwrap().early_stopping;
        assert_eq!(stopping(r#"{"early_stopping": true}"#), Some(EarlyStopping::Yes));
        assert_eq!(stopping(r#"{"early_stopping": false}"#), Some(EarlyStopping::No));
        assert_eq!(parse("{}"), Ok(GenerationConfig::default()));
    }

    #[test]
    fn what_would_change_the_output_and_is_not_there_is_refused_by_name() {
        for (text, sentence) in [
            (r#"{"num_beam_groups": 2}"#, "num_beam_groups: 2 is not supported; take it out to go without"),
            (
                r#"{"begin_suppress_tokens": [3]}"#,
                "begin_suppress_tokens: [3] is not supported; take it out to go without",
            ),
            (
                r#"{"do_sample": true, "typical_p": 0.5}"#,
                "typical_p: 0.5 is not supported; take it out to go without",
            ),
            (
                r#"{"do_sample": true, "num_beams": 2}"#,
                "do_sample: drawing tokens with num_beams above 1 is not supported",
            ),
            (
                r#"{"bad_words_ids": [[3], [100]]}"#,
                "bad_words_ids: token 100 is not below the size of the vocabulary, 100",
            ),
            (r#"{"max_length": 0}"#, "max_length: must be at least 1, not 0"),
            (r#"{"bad_words_ids": [[]]}"#, "bad_words_ids: a sequence without tokens cannot be forbidden"),
            (r#"{"eos_token_id": [0, 5]}"#, "eos_token_id: one token is supported, not 2"),
            (
                r#"{"early_stopping": "soon"}"#,
                "early_stopping is true, false or \"never\", not \"soon\" at line 1 column 26",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), sentence);
        }
        // These ask for nothing.
        let nothing = r#"{"num_beam_groups": 1, "diversity_penalty": 0.0, "guidance_scale": null, "stop_strings": [],
                          "exponential_decay_length_penalty": null, "encoder_no_repeat_ngram_size": 0}"#;
        assert_eq!(parse(nothing), Ok(GenerationConfig::default()));
    }
}
