//! What the next token is drawn from: the distributions of transformers (`golden/sampling.py`).

use crate::common::{backend, golden};
use attentive_generate::{CausalSteps, Generator, MaxLength, Options, Random, Sampler, Sampling};
use attentive_model::families::gpt2::Gpt2;
use attentive_tensor::Precision;
use serde_json::Value;
use std::sync::{Arc, Mutex};

type Distribution = Vec<(u32, f32)>;

/// Draws, and remembers what it drew from.
struct Watched {
    sampling: Sampling,
    seen: Arc<Mutex<Vec<Distribution>>>,
}

impl Sampler for Watched {
    fn sample(&self, logits: &[f32], random: Random) -> Option<u32> {
        self.seen.lock().unwrap().push(self.sampling.distribution(logits));
        self.sampling.sample(logits, random)
    }
}

fn tokens(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}

#[test]
fn the_next_token_is_drawn_from_the_distribution_of_transformers() {
    let backend = backend(Precision::F32, 1);
    let model = Gpt2::load_packed(&backend, &golden("gpt2/saved")).unwrap();
    let answers: Value = serde_json::from_slice(&std::fs::read(golden("sampling.json")).unwrap()).unwrap();
    for case in answers["cases"].as_array().unwrap() {
        let settings = &case["settings"];
        let number = |name: &str, usual: f64| settings[name].as_f64().unwrap_or(usual);
        let sampling = Sampling {
            temperature: number("temperature", 1.0) as f32,
            top_k: number("top_k", 0.0) as usize,
            top_p: number("top_p", 1.0) as f32,
            min_p: number("min_p", 0.0) as f32,
        };
        let options = Options {
            sampling: Some(sampling),
            repetition_penalty: number("repetition_penalty", 1.0) as f32,
            no_repeat_ngram: number("no_repeat_ngram_size", 0.0) as usize,
            banned: settings["bad_words_ids"].as_array().into_iter().flatten().map(tokens).collect(),
            min_length: number("min_new_tokens", 0.0) as usize,
            max_length: MaxLength::SourceAnd(1),
            ..Options::continuing()
        };
        for (prompt, expected) in
            answers["prompts"].as_array().unwrap().iter().zip(case["found"].as_array().unwrap())
        {
            let seen = Arc::default();
            let watched = Watched { sampling, seen: Arc::clone(&seen) };
            let steps = CausalSteps::new(&backend, &model);
            let mut generator = Generator::new(steps, options.clone()).unwrap().with_sampler(watched);
            generator.generate([tokens(prompt)]).next().unwrap().unwrap();
            let found = seen.lock().unwrap().remove(0);
            let expected: Distribution = expected
                .as_array()
                .unwrap()
                .iter()
                .map(|pair| (pair[0].as_u64().unwrap() as u32, pair[1].as_f64().unwrap() as f32))
                .collect();
            let drawn = |distribution: &Distribution| -> Vec<u32> {
                let mut drawn: Vec<u32> = distribution.iter().map(|(token, _)| *token).collect();
                drawn.sort_unstable();
                drawn
            };
            assert_eq!(drawn(&found), drawn(&expected), "{settings} {prompt}");
            for (token, probability) in &expected {
                let (_, own) = found.iter().find(|(found, _)| found == token).unwrap();
                assert!((own - probability).abs() < 1e-5, "{settings} {prompt}: {token}");
            }
        }
    }
}
