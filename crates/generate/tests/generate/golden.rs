//! The same results as transformers, tokens and scores of whole n-best lists, under many settings.

use crate::common::{backend, generator, golden, results, unsure};
use attentive_generate::{EarlyStopping, LengthPenalty, MaxLength, Options, Request};
use attentive_tensor::{Isa, Precision};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Golden {
    sources: Vec<Vec<u32>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    settings: Settings,
    results: Vec<Vec<Expected>>,
}

#[derive(Deserialize)]
struct Settings {
    num_beams: usize,
    max_new_tokens: usize,
    length_penalty: Option<f32>,
    early_stopping: Option<Value>,
    #[serde(default)]
    min_new_tokens: usize,
    repetition_penalty: Option<f32>,
    #[serde(default)]
    no_repeat_ngram_size: usize,
    #[serde(default)]
    bad_words_ids: Vec<Vec<u32>>,
    #[serde(default)]
    prefix: Vec<u32>,
    #[serde(default)]
    eos_token_id: Vec<u32>,
    forced_bos_token_id: Option<u32>,
    /// Null switches off what the model asks for.
    #[serde(default = "unset")]
    forced_eos_token_id: Value,
}

fn unset() -> Value {
    Value::from(0)
}

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<u32>,
    score: Option<f32>,
}

impl Settings {
    fn options(&self) -> Options {
        Options {
            batch: 5,
            beam: self.num_beams,
            n_best: self.num_beams,
            penalty: LengthPenalty::Power(self.length_penalty.unwrap_or(1.0)),
            early_stopping: match &self.early_stopping {
                Some(Value::Bool(true)) => EarlyStopping::Yes,
                Some(Value::String(_)) => EarlyStopping::Never,
                _ => EarlyStopping::No,
            },
            repetition_penalty: self.repetition_penalty.unwrap_or(1.0),
            no_repeat_ngram: self.no_repeat_ngram_size,
            banned: self.bad_words_ids.clone(),
            // Theirs leave the prefix out, where they are called new.
            min_length: if self.min_new_tokens > 0 { self.min_new_tokens + self.prefix.len() } else { 0 },
            max_length: MaxLength::Tokens(self.max_new_tokens + self.prefix.len()),
            ends: self.eos_token_id.clone(),
            forced_bos: self.forced_bos_token_id,
            forced_eos: self.forced_eos_token_id.as_u64().map(|token| token as u32),
            ..Options::default()
        }
    }
}

#[test]
fn every_setting_gives_the_results_of_transformers() {
    assert!(Isa::from_env().is_ok());
    let text = std::fs::read_to_string(golden("generate.json")).unwrap();
    let golden: Golden = serde_json::from_str(&text).unwrap();
    let backend = backend(Precision::F32, 2);
    let model = unsure(&backend);
    let mut compared = 0;
    for case in &golden.cases {
        let mut generator = generator(&backend, &model, case.settings.options());
        let prefix = &case.settings.prefix;
        let requests =
            golden.sources.iter().map(|source| Request { source: source.clone(), prefix: prefix.clone() });
        let found = results(&mut generator, requests);
        assert_eq!(found.len(), case.results.len());
        for (source, (found, expected)) in found.iter().zip(&case.results).enumerate() {
            let place = format!("{}, source {source}", case.name);
            assert_eq!(found.len(), expected.len(), "{place}");
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!(found.tokens, expected.tokens, "{place}");
                if let Some(score) = expected.score {
                    assert!(
                        (found.score - score).abs() < 1e-4 * score.abs().max(0.1),
                        "{place}: {}",
                        found.score
                    );
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}
