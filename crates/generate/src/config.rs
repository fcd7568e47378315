//! The options in a model folder: `generation_config.json`, as transformers reads it.
//!
//! Missing fields have the values of [`Options::default`]. Old models have the same fields in `config.json` instead. A field that asks for
//! something unsupported is an error that names the field.
//!
//! One field is our own: `attentive_max_tokens_beyond_source`. `attentive train` writes it beside the `max_length` that transformers
//! needs, so that a model that has learned little does not write until its last position.

use crate::error::Error;
use crate::options::{EarlyStopping, MOST_RESULTS, MaxLength, Options};
use crate::penalty::LengthPenalty;
use crate::sampler::Sampling;
use crate::seq2seq::Spec;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

const CONFIG: &str = "config.json";
const FILES: [&str; 2] = ["generation_config.json", CONFIG];
const PARAMETERS: &str = "task_specific_params";

/// The supported fields. `num_return_sequences` is not one of them: the caller decides how many results it wants.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    num_beams: Option<usize>,
    length_penalty: Option<f32>,
    early_stopping: Option<Early>,
    do_sample: Option<bool>,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    no_repeat_ngram_size: Option<usize>,
    bad_words_ids: Option<Vec<Vec<u32>>>,
    suppress_tokens: Option<Vec<u32>>,
    min_length: Option<usize>,
    min_new_tokens: Option<usize>,
    max_length: Option<usize>,
    max_new_tokens: Option<usize>,
    attentive_max_tokens_beyond_source: Option<usize>,
    eos_token_id: Option<OneOrMany>,
    forced_bos_token_id: Option<OneOrMany>,
    forced_eos_token_id: Option<OneOrMany>,
    renormalize_logits: Option<bool>,
    decoder_start_token_id: Option<OneOrMany>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Early {
    Switch(bool),
    Word(String),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl OneOrMany {
    fn tokens(&self) -> &[u32] {
        match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        }
    }

    /// The token, if there is exactly one; an error for several.
    fn one(name: &str, token: Option<&OneOrMany>) -> Result<Option<u32>, String> {
        match token.map(OneOrMany::tokens) {
            None | Some([]) => Ok(None),
            Some([token]) => Ok(Some(*token)),
            Some(_) => Err(format!("`{name}` must be one token, not several")),
        }
    }
}

/// Unsupported fields that would change the result, with the values that change nothing.
const REFUSED: [(&str, &[f64]); 18] = [
    ("num_beam_groups", &[1.0]),
    ("diversity_penalty", &[0.0]),
    ("typical_p", &[1.0]),
    ("top_h", &[]),
    ("epsilon_cutoff", &[0.0]),
    ("eta_cutoff", &[0.0]),
    ("encoder_repetition_penalty", &[1.0]),
    ("encoder_no_repeat_ngram_size", &[0.0]),
    ("penalty_alpha", &[0.0]),
    ("guidance_scale", &[1.0]),
    ("sequence_bias", &[]),
    ("constraints", &[]),
    ("force_words_ids", &[]),
    ("forced_decoder_ids", &[]),
    ("begin_suppress_tokens", &[]),
    ("exponential_decay_length_penalty", &[]),
    ("stop_strings", &[]),
    ("watermarking_config", &[]),
];

impl Options {
    /// The options of a model folder, or else the default ones.
    pub fn load(folder: &Path, spec: &Spec) -> Result<Options, Error> {
        Options::load_for(folder, spec, None)
    }

    /// [`Options::load`] for a task, for which `config.json` may have further fields under `task_specific_params`.
    pub fn load_for(folder: &Path, spec: &Spec, task: Option<&str>) -> Result<Options, Error> {
        let Some(path) = FILES.map(|name| folder.join(name)).into_iter().find(|path| path.exists()) else {
            return Ok(Options::usual(spec));
        };
        let mut object = read(&path)?;
        let config = folder.join(CONFIG);
        if let Some(task) = task
            && config.exists()
            && let Some(Value::Object(more)) =
                read(&config)?.get(PARAMETERS).and_then(|tasks| tasks.get(task))
        {
            object.extend(more.clone());
        }
        let wrong = |problem: String| Error::Format { path: path.clone(), problem };
        Options::from_json(object, spec).map_err(wrong)
    }

    /// The default options of a model.
    fn usual(spec: &Spec) -> Options {
        if spec.continues { Options::continuing() } else { Options::default() }
    }

    fn from_json(object: Map<String, Value>, spec: &Spec) -> Result<Options, String> {
        if let Some((name, _)) = REFUSED.iter().find(|(name, neutral)| asks(object.get(*name), neutral)) {
            return Err(format!("`{name}` is not supported"));
        }
        let config: Config =
            serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())?;
        let start = spec.start;
        if config.decoder_start_token_id.as_ref().is_some_and(|token| token.tokens() != [start]) {
            return Err(format!(
                "`decoder_start_token_id` must be {start}, as in the model; other tokens are not supported"
            ));
        }
        if spec.continues && config.min_length.is_some_and(|length| length > 0) {
            return Err("`min_length` is not supported for this model type, only `min_new_tokens`".to_owned());
        }
        let renormalise = config.renormalize_logits == Some(true);
        if let Some(beam) = config.num_beams.filter(|beam| !(1..=MOST_RESULTS).contains(beam)) {
            return Err(format!("`num_beams` must be from 1 to {MOST_RESULTS}, not {beam}"));
        }
        let options = config.options(spec)?;
        if renormalise && changes_sums(&options, spec) {
            return Err(
                "`renormalize_logits` is not supported together with settings that ban or penalize tokens"
                    .to_owned(),
            );
        }
        Ok(options)
    }
}

fn read(path: &Path) -> Result<Map<String, Value>, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| attentive_model::Error::File { path: path.to_owned(), source })?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Format { path: path.to_owned(), problem: error.to_string() })
}

/// Whether filters may change the sum of the probabilities. Forbidding the token that is never written does not: it has no probability
/// anyway.
fn changes_sums(options: &Options, spec: &Spec) -> bool {
    let never = |sequence: &Vec<u32>| sequence.as_slice() == spec.never.as_slice();
    let rules = options.no_repeat_ngram > 0 || options.min_length > 0 || options.repetition_penalty != 1.0;
    rules || !options.banned.iter().all(never)
}

/// Whether a value differs from the neutral ones.
fn asks(value: Option<&Value>, neutral: &[f64]) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(value) => !value.as_f64().is_some_and(|number| neutral.contains(&number)),
    }
}

impl Config {
    /// The most tokens of a translation, if the file limits them.
    fn max_length(&self, spec: &Spec) -> Option<MaxLength> {
        if spec.continues {
            let own = self.max_length.map(MaxLength::Tokens);
            return self.max_new_tokens.map(MaxLength::SourceAnd).or(own);
        }
        // A `max_length` below the number of positions was set on purpose, so it precedes our own field.
        let is_open = self.max_length.is_none_or(|length| length >= spec.max_target);
        let beyond = self.attentive_max_tokens_beyond_source.filter(|_| is_open).map(MaxLength::SourceAnd);
        let own = self.max_length.map(without_start).map(MaxLength::Tokens);
        self.max_new_tokens.map(MaxLength::Tokens).or(beyond).or(own)
    }

    fn options(self, spec: &Spec) -> Result<Options, String> {
        let usual = Options::usual(spec);
        let max_length = self.max_length(spec);
        let early_stopping = match self.early_stopping {
            None | Some(Early::Switch(false)) => EarlyStopping::No,
            Some(Early::Switch(true)) => EarlyStopping::Yes,
            Some(Early::Word(word)) if word == "never" => EarlyStopping::Never,
            Some(Early::Word(word)) => {
                return Err(format!("`early_stopping` is `{word}`; it must be true, false or \"never\""));
            }
        };
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(1.0),
            top_k: self.top_k.unwrap_or(50),
            top_p: self.top_p.unwrap_or(1.0),
            min_p: self.min_p.unwrap_or(0.0),
        };
        let ends = self.eos_token_id.as_ref().map_or(&[][..], OneOrMany::tokens);
        let ends = if ends == [spec.eos] { Vec::new() } else { ends.to_vec() };
        let suppressed = self.suppress_tokens.unwrap_or_default().into_iter().map(|token| vec![token]);
        Ok(Options {
            beam: self.num_beams.unwrap_or(usual.beam),
            penalty: self.length_penalty.map_or(usual.penalty, LengthPenalty::Power),
            early_stopping,
            sampling: self.do_sample.unwrap_or(false).then_some(sampling),
            repetition_penalty: self.repetition_penalty.unwrap_or(usual.repetition_penalty),
            no_repeat_ngram: self.no_repeat_ngram_size.unwrap_or(usual.no_repeat_ngram),
            banned: self.bad_words_ids.unwrap_or_default().into_iter().chain(suppressed).collect(),
            min_length: self
                .min_new_tokens
                .or(self.min_length.map(without_start))
                .unwrap_or(usual.min_length),
            max_length: max_length.unwrap_or(usual.max_length),
            ends,
            forced_bos: OneOrMany::one("forced_bos_token_id", self.forced_bos_token_id.as_ref())?,
            forced_eos: OneOrMany::one("forced_eos_token_id", self.forced_eos_token_id.as_ref())?,
            ..usual
        })
    }
}

/// A length without the start token, which transformers counts.
fn without_start(length: usize) -> usize {
    length.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SPEC: Spec = Spec {
        source_vocabulary: 10,
        vocabulary: 10,
        start: 9,
        eos: 0,
        never: Some(9),
        max_source: 512,
        max_target: 512,
        decoder_layers: 6,
        continues: false,
    };

    fn read(value: Value) -> Result<Options, String> {
        Options::from_json(value.as_object().unwrap().clone(), &SPEC)
    }

    #[test]
    fn a_file_of_opus_mt_is_a_search_as_in_transformers() {
        let options = read(json!({
            "_from_model_config": true, "bad_words_ids": [[9]], "decoder_start_token_id": 9, "eos_token_id": 0,
            "forced_eos_token_id": 0, "max_length": 512, "num_beams": 6, "pad_token_id": 9, "renormalize_logits": true,
        }));
        let expected = Options {
            beam: 6,
            banned: vec![vec![9]],
            max_length: MaxLength::Tokens(511),
            forced_eos: Some(0),
            ..Options::default()
        };
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn a_file_that_asks_for_no_search_gets_a_beam_of_4_and_the_length_penalty_of_transformers() {
        let options = read(json!({"eos_token_id": [0], "early_stopping": null})).unwrap();
        assert_eq!(options, Options::default());
        assert_eq!((options.beam, options.penalty), (4, LengthPenalty::Power(1.0)));
        assert_eq!(options.max_length, MaxLength::SourceAnd(50));
    }

    #[test]
    fn a_length_beyond_the_source_counts_unless_a_person_wrote_another() {
        let most = |more: Value| {
            let mut file = json!({"max_length": 512, "attentive_max_tokens_beyond_source": 50});
            file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(file).unwrap().max_length
        };
        assert_eq!(most(json!({})), MaxLength::SourceAnd(50));
        assert_eq!(most(json!({"max_length": 100})), MaxLength::Tokens(99));
        assert_eq!(most(json!({"max_new_tokens": 600})), MaxLength::Tokens(600));
        assert_eq!(most(json!({"attentive_max_tokens_beyond_source": null})), MaxLength::Tokens(511));
    }

    #[test]
    fn every_word_is_understood() {
        let options = read(json!({
            "num_beams": 1, "num_return_sequences": 3_000_000, "length_penalty": 0.5, "early_stopping": "never",
            "do_sample": true, "temperature": 0.7, "top_k": 0, "top_p": 0.9, "min_p": 0.05,
            "repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "bad_words_ids": [[1, 2]], "suppress_tokens": [3],
            "min_new_tokens": 4, "max_new_tokens": 20, "max_length": 5, "eos_token_id": [0, 6],
            "forced_bos_token_id": 5, "forced_eos_token_id": 6,
        }));
        let expected = Options {
            beam: 1,
            penalty: LengthPenalty::Power(0.5),
            early_stopping: EarlyStopping::Never,
            sampling: Some(Sampling { temperature: 0.7, top_k: 0, top_p: 0.9, min_p: 0.05 }),
            repetition_penalty: 1.2,
            no_repeat_ngram: 3,
            banned: vec![vec![1, 2], vec![3]],
            min_length: 4,
            max_length: MaxLength::Tokens(20),
            ends: vec![0, 6],
            forced_bos: Some(5),
            forced_eos: Some(6),
            ..Options::default()
        };
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_name() {
        for (word, value) in [
            ("num_beam_groups", json!(2)),
            ("typical_p", json!(0.9)),
            ("sequence_bias", json!([[[1], 2.0]])),
            ("early_stopping", json!("sometimes")),
            ("forced_eos_token_id", json!([0, 1])),
            ("decoder_start_token_id", json!(1)),
            ("num_beams", json!(1025)),
            ("num_beams", json!(10_000)),
            ("num_beams", json!(100_000)),
            ("num_beams", json!(0)),
        ] {
            let problem = read(json!({word: value})).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
        assert!(read(json!({"num_beams": "many"})).is_err());
        let renormalised = read(json!({"renormalize_logits": true, "bad_words_ids": [[3]]})).unwrap_err();
        assert!(renormalised.contains("renormalize_logits"), "{renormalised}");
    }
}
