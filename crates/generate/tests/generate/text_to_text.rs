//! T5, BART, mBART and M2M-100 write the tokens of transformers, and the same bits in any batch.

use crate::common::{backend, golden};
use attentive_generate::{
    AttentionKind, AttentionSelector, BiasTerm, EarlyStopping, EncoderDecoderSteps, Generator, HeadVectors,
    Hypothesis, LengthPenalty, MaxLength, Options, Sampling, ScorePart, Seq2Seq,
};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::t5::T5;
use attentive_model::families::transformer::Transformer;
use attentive_tensor::{Backend, Precision};
use serde_json::Value;
use std::sync::Arc;

fn answers(file: &str) -> Value {
    let path = golden(&format!("{file}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn t5(backend: &Arc<dyn Backend>, case: &str, int8: bool) -> T5 {
    let load = if int8 { T5::load_in_int8 } else { T5::load_packed };
    load(backend, &golden("t5").join(case)).unwrap_or_else(|error| panic!("{error}"))
}

fn bart(backend: &Arc<dyn Backend>, case: &str, int8: bool) -> Transformer {
    let load = if int8 { Transformer::load_in_int8 } else { Transformer::load_packed };
    load(backend, &golden("bart").join(case)).unwrap_or_else(|error| panic!("{error}"))
}

fn tokens(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}

fn sources(answers: &Value) -> Vec<Vec<u32>> {
    answers["ids"].as_array().unwrap().iter().map(tokens).collect()
}

fn results(
    backend: &Arc<dyn Backend>,
    model: &impl EncoderDecoder,
    options: Options,
    sources: &[Vec<u32>],
) -> Vec<Vec<Hypothesis>> {
    let mut generator = Generator::new(EncoderDecoderSteps::new(backend, model), options).unwrap();
    generator.generate(sources.to_vec()).map(|found| found.unwrap()).collect()
}

fn options(settings: &Value, new_tokens: usize) -> Options {
    let number = |name: &str, usual: f64| settings[name].as_f64().unwrap_or(usual);
    let beam = number("num_beams", 1.0) as usize;
    Options {
        batch: 3,
        beam,
        n_best: beam,
        penalty: LengthPenalty::Power(number("length_penalty", 1.0) as f32),
        early_stopping: match &settings["early_stopping"] {
            Value::Bool(true) => EarlyStopping::Yes,
            _ => EarlyStopping::No,
        },
        repetition_penalty: number("repetition_penalty", 1.0) as f32,
        no_repeat_ngram: number("no_repeat_ngram_size", 0.0) as usize,
        // Transformers counts the start token in one of the two lengths.
        min_length: number("min_new_tokens", (number("min_length", 1.0) - 1.0).max(0.0)) as usize,
        forced_bos: settings["forced_bos_token_id"].as_u64().map(|token| token as u32),
        forced_eos: settings["forced_eos_token_id"].as_u64().map(|token| token as u32),
        max_length: MaxLength::Tokens(new_tokens),
        ..Options::default()
    }
}

/// Holds what a model writes against its cases; returns how many sequences that were.
fn compare(answers: &Value, name: &str, backend: &Arc<dyn Backend>, model: &impl EncoderDecoder) -> usize {
    let (sources, mut compared) = (sources(answers), 0);
    let new_tokens = answers["new_tokens"].as_u64().unwrap() as usize;
    for case in answers[name]["cases"].as_array().unwrap() {
        let found = results(backend, model, options(&case["settings"], new_tokens), &sources);
        for (source, (found, expected)) in found.iter().zip(case["results"].as_array().unwrap()).enumerate() {
            let place = format!("{name}, {}, source {source}", case["name"]);
            let expected = expected.as_array().unwrap();
            assert_eq!(found.len(), expected.len(), "{place}");
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!(found.tokens, tokens(&expected["tokens"]), "{place}");
                if let Some(score) = expected["score"].as_f64() {
                    let near = (f64::from(found.score) - score).abs() < 1e-4 * score.abs().max(0.1);
                    assert!(near, "{place}: {} and {score}", found.score);
                }
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn every_setting_gives_the_tokens_and_scores_of_transformers() {
    let backend = backend(Precision::F32, 2);
    let of_t5 = answers("t5");
    for name in ["first", "later"] {
        let compared = compare(&of_t5, name, &backend, &t5(&backend, name, false));
        assert_eq!(compared, 5 * (1 + 1 + 4 + 3 + 2));
    }
    let of_bart = answers("bart");
    for name in ["bart", "mbart", "m2m"] {
        assert_eq!(compare(&of_bart, name, &backend, &bart(&backend, name, false)), 5 * (1 + 4 + 3));
    }
}

/// The weights of T5 are the softmax of its products with the numbers of distances, and each part has weights of its own.
#[test]
fn scores_of_t5_are_told_part_by_part() {
    let backend = backend(Precision::F32, 1);
    let steps = EncoderDecoderSteps::new(&backend, &t5(&backend, "first", false));
    let inspection = steps.inspect(&[5, 6, 7, 8, 9, 1], &[10, 11, 12, 1]);
    for (kind, biased) in
        [(AttentionKind::Encoder, true), (AttentionKind::Decoder, true), (AttentionKind::Cross, false)]
    {
        let selector = AttentionSelector { kind, layer: 1, head: Some(2) };
        let HeadVectors { queries, keys, scale, causal, terms, .. } = inspection.vectors(selector).unwrap();
        let names: Vec<BiasTerm> = terms.iter().map(|(term, _)| *term).collect();
        assert_eq!((names, scale), (if biased { vec![BiasTerm::Distance] } else { vec![] }, 1.0));
        assert_eq!(inspection.weights(selector).unwrap().biased, biased);
        let parts = [None, Some(ScorePart::Content), Some(ScorePart::Bias)];
        for part in parts {
            let of_part = part.map(|part| inspection.of_part(part, &[selector]).unwrap());
            let weights = of_part.as_ref().unwrap_or(&inspection).weights(selector).unwrap();
            let has = |other| !biased || part.is_none() || part == Some(other);
            for (row, query) in queries.iter().enumerate() {
                let score = |(at, key): (usize, &Vec<f32>)| {
                    let content: f32 = query.iter().zip(key).map(|(q, k)| q * k).sum();
                    let bias: f32 = terms.iter().map(|(_, numbers)| numbers[row][at]).sum();
                    let content = if has(ScorePart::Content) { content } else { 0.0 };
                    (content + if has(ScorePart::Bias) { bias } else { 0.0 }).exp()
                };
                let seen = if causal { row + 1 } else { keys.len() };
                let powers: Vec<f32> = keys[..seen].iter().enumerate().map(score).collect();
                for (power, weight) in powers.iter().zip(weights.row(row)) {
                    let expected = power / powers.iter().sum::<f32>();
                    assert!((expected - weight).abs() < 1e-5, "{kind:?} {part:?}: {expected} {weight}");
                }
            }
        }
    }
}

fn bits(found: &[Vec<Hypothesis>]) -> Vec<(Vec<u32>, u32, Vec<u32>)> {
    let scores = |h: &Hypothesis| h.token_scores.iter().map(|score| score.to_bits()).collect();
    found.iter().flatten().map(|h| (h.tokens.clone(), h.score.to_bits(), scores(h))).collect()
}

/// Decodes sources in several ways, each alone and in batches on several threads.
fn check_batches(backend: &Arc<dyn Backend>, model: &impl EncoderDecoder, sources: &[Vec<u32>]) {
    let greedy = Options { max_length: MaxLength::Tokens(9), ..Options::greedy() };
    let ways = [
        greedy.clone(),
        Options { beam: 3, n_best: 3, no_repeat_ngram: 2, ..greedy.clone() },
        Options { sampling: Some(Sampling::default()), n_best: 2, seed: 7, ..greedy },
    ];
    for options in ways {
        let with = |batch| results(backend, model, Options { batch, ..options.clone() }, sources);
        let alone = bits(&with(1));
        assert!([2, 5, 32].into_iter().all(|batch| bits(&with(batch)) == alone), "{options:?}");
        let copies =
            (0..3).map(|_| Box::new(EncoderDecoderSteps::new(backend, model)) as Box<dyn Seq2Seq>).collect();
        let options = Options { batch: 4, ..options.clone() };
        let mut generator = Generator::with_copies(copies, options).unwrap();
        let found: Vec<_> = generator.generate(sources.to_vec()).map(Result::unwrap).collect();
        assert!(bits(&found) == alone);
    }
}

#[test]
fn a_source_gives_the_same_bits_alone_in_any_batch_and_on_any_threads() {
    let with_more = |file: &str, eos: u32| {
        let mut sources = sources(&answers(file));
        sources.extend([vec![5, eos], vec![eos], (3..40).chain([eos]).collect(), vec![9, 10, 11, eos]]);
        sources
    };
    let (of_t5, of_bart) = (with_more("t5", 1), with_more("bart", 2));
    for precision in [Precision::F32, Precision::Bf16] {
        let backend = backend(precision, 1);
        for int8 in [false, true] {
            for name in ["first", "later"] {
                check_batches(&backend, &t5(&backend, name, int8), &of_t5);
            }
            for name in ["bart", "mbart", "m2m"] {
                check_batches(&backend, &bart(&backend, name, int8), &of_bart);
            }
        }
    }
}
