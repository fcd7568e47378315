//! A model that continues its source: the tokens of transformers, and the same bits in any batch.

use crate::common::{backend, golden};
use attentive_generate::{
    CausalSteps, EarlyStopping, Generator, Hypothesis, LengthPenalty, MaxLength, Options, Sampling, Seq2Seq,
};
use attentive_model::families::gpt2::{Gpt2, Gpt2Config};
use attentive_model::{Builder, Sequences};
use attentive_tensor::{Backend, Precision, Tape, TokenLists};
use serde_json::Value;
use std::sync::Arc;

fn saved(backend: &Arc<dyn Backend>) -> Gpt2 {
    Gpt2::load_packed(backend, &golden("gpt2/saved")).unwrap_or_else(|error| panic!("{error}"))
}

fn answers() -> Value {
    serde_json::from_str(&std::fs::read_to_string(golden("gpt2.json")).unwrap()).unwrap()
}

fn tokens(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}

fn prompts(answers: &Value) -> Vec<Vec<u32>> {
    answers["ids"].as_array().unwrap().iter().map(tokens).collect()
}

fn results(
    backend: &Arc<dyn Backend>,
    model: &Gpt2,
    options: Options,
    prompts: &[Vec<u32>],
) -> Vec<Vec<Hypothesis>> {
    let mut generator = Generator::new(CausalSteps::new(backend, model), options).unwrap();
    generator.generate(prompts.to_vec()).map(|found| found.unwrap()).collect()
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
            Value::String(_) => EarlyStopping::Never,
            _ => EarlyStopping::No,
        },
        repetition_penalty: number("repetition_penalty", 1.0) as f32,
        no_repeat_ngram: number("no_repeat_ngram_size", 0.0) as usize,
        banned: settings["bad_words_ids"].as_array().into_iter().flatten().map(tokens).collect(),
        min_length: number("min_new_tokens", 0.0) as usize,
        max_length: MaxLength::SourceAnd(new_tokens),
        ..Options::default()
    }
}

#[test]
fn every_setting_gives_the_tokens_and_scores_of_transformers() {
    let (backend, answers) = (backend(Precision::F32, 2), answers());
    let (model, prompts) = (saved(&backend), prompts(&answers));
    let new_tokens = answers["new_tokens"].as_u64().unwrap() as usize;
    let mut compared = 0;
    for case in answers["cases"].as_array().unwrap() {
        let found = results(&backend, &model, options(&case["settings"], new_tokens), &prompts);
        for (prompt, (found, expected)) in found.iter().zip(case["results"].as_array().unwrap()).enumerate() {
            let place = format!("{}, prompt {prompt}", case["name"]);
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
    assert_eq!(compared, 100);
}

fn bits(found: &[Vec<Hypothesis>]) -> Vec<(Vec<u32>, u32, Vec<u32>)> {
    let scores = |h: &Hypothesis| h.token_scores.iter().map(|score| score.to_bits()).collect();
    found.iter().flatten().map(|h| (h.tokens.clone(), h.score.to_bits(), scores(h))).collect()
}

#[test]
fn a_prompt_gives_the_same_bits_alone_in_any_batch_and_on_any_threads() {
    let mut prompts = prompts(&answers());
    // One token, and more than are read together with others.
    prompts.extend([vec![5], vec![7], (1..40).collect(), (50..97).collect(), vec![9], vec![10, 11]]);
    let greedy = Options { max_length: MaxLength::SourceAnd(9), ..Options::continuing() };
    let ways = [
        greedy.clone(),
        Options { beam: 3, n_best: 3, no_repeat_ngram: 2, ..greedy.clone() },
        Options {
            sampling: Some(Sampling { top_p: 0.9, ..Sampling::default() }),
            n_best: 2,
            seed: 7,
            ..greedy
        },
    ];
    for precision in [Precision::F32, Precision::Bf16] {
        let backend = backend(precision, 1);
        let int8 = Gpt2::load_in_int8(&backend, &golden("gpt2/saved")).unwrap();
        for model in [saved(&backend), int8] {
            for options in &ways {
                let with = |batch| results(&backend, &model, Options { batch, ..options.clone() }, &prompts);
                let alone = bits(&with(1));
                assert!([2, 5, 32].into_iter().all(|batch| bits(&with(batch)) == alone), "{options:?}");
                let copies = (0..3)
                    .map(|_| Box::new(CausalSteps::new(&backend, &model)) as Box<dyn Seq2Seq>)
                    .collect();
                let options = Options { batch: 4, ..options.clone() };
                let mut generator = Generator::with_copies(copies, options).unwrap();
                let found: Vec<_> = generator.generate(prompts.clone()).map(Result::unwrap).collect();
                assert!(bits(&found) == alone);
            }
        }
    }
}

#[test]
fn the_best_tokens_of_a_second_look_are_those_that_were_written() {
    let backend = backend(Precision::F32, 1);
    let (model, prompts) = (saved(&backend), prompts(&answers()));
    let options = Options { max_length: MaxLength::SourceAnd(6), ..Options::continuing() };
    let found = results(&backend, &model, options, &prompts);
    let pairs: Vec<_> = prompts.iter().zip(&found).map(|(p, found)| (&p[..], &found[0].tokens[..])).collect();
    let top = CausalSteps::new(&backend, &model).top(&pairs, 2);
    for (top, found) in top.iter().zip(&found) {
        let best: Vec<u32> = top.iter().map(|ranks| ranks[0].token).collect();
        assert_eq!(best, found[0].tokens);
        for (ranks, score) in top.iter().zip(&found[0].token_scores) {
            assert!((ranks[0].score - score).abs() < 1e-5);
        }
    }
    // Other tokens than the best are judged by what a ranking of all tokens has of them.
    let other: Vec<_> = prompts.iter().map(|prompt| (&prompt[..1], &prompt[1..])).collect();
    let judged = CausalSteps::new(&backend, &model).judge(&other, 0);
    let all = CausalSteps::new(&backend, &model).top(&other, model.config().vocab_size);
    for ((judged, all), (_, target)) in judged.iter().zip(&all).zip(&other) {
        assert_eq!(judged.len(), target.len());
        for ((judged, all), token) in judged.iter().zip(all).zip(*target) {
            let own = all.iter().find(|best| best.token == *token).unwrap();
            assert!(judged.top.is_empty() && judged.score == own.score, "{judged:?} {own:?}");
        }
    }
}

#[test]
fn prompt_and_continuation_share_the_positions() {
    let backend = backend(Precision::F32, 1);
    let model = saved(&backend);
    let long = Options { max_length: MaxLength::SourceAnd(1000), min_length: 1000, ..Options::continuing() };
    let found = results(&backend, &model, long.clone(), &[(1..=40).collect(), (1..=47).collect()]);
    assert_eq!(found.iter().map(|found| found[0].tokens.len()).collect::<Vec<_>>(), [8, 1]);
    let mut generator = Generator::new(CausalSteps::new(&backend, &model), long).unwrap();
    let error = generator.generate([(1..=48).collect::<Vec<u32>>()]).next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the prompt has 48 tokens, but prompt and continuation can have at most 48 together: shorten the prompt"
    );
    let total = Options { max_length: MaxLength::Tokens(12), min_length: 20, ..Options::continuing() };
    let found = results(&backend, &model, total, &[(1..=10).collect()]);
    assert_eq!(found[0][0].tokens.len(), 2);
}

/// The most probable tokens, each from one pass over what a text that slides shows of itself.
fn slid_by_hand(backend: &Arc<dyn Backend>, model: &Gpt2, prompt: &[u32], count: usize) -> Vec<u32> {
    let (most, mut text, mut window) = (model.config().max_positions, Vec::new(), Vec::<i32>::new());
    for step in 0..prompt.len() + count - 1 {
        if window.len() == most {
            window.drain(..most - most / 2);
        }
        window.push(*prompt.get(step).unwrap_or_else(|| &text[step - prompt.len()]) as i32);
        if step + 1 < prompt.len() {
            continue;
        }
        let (tape, sequences) = (Tape::inference(backend), Sequences::new([window.len()]));
        let hidden = model.decode(&tape, &backend.upload_i32(&window), &sequences);
        let last = tape.slice_rows(&hidden, window.len() - 1..window.len());
        text.push(model.find(&tape, &last, 1, false, TokenLists::NONE).best[0].token);
    }
    text
}

#[test]
fn a_text_that_slides_goes_on_from_the_later_half_of_its_positions() {
    let answers = answers();
    let mut prompts = prompts(&answers);
    // As many tokens as there are positions, and more.
    prompts.extend([48, 49, 72, 73, 130].map(|length| (0..length).map(|i| 5 + i * 7 % 300).collect()));
    let endless = Options { max_length: MaxLength::SourceAnd(120), min_length: 120, ..Options::continuing() };
    let others = Options { beam: 3, n_best: 2, ..endless.clone() };
    for precision in [Precision::F32, Precision::Bf16] {
        let backend = backend(precision, 2);
        let model = saved(&backend);
        let with = |options: &Options, batch| -> Vec<Vec<Hypothesis>> {
            let mut steps = CausalSteps::new(&backend, &model);
            assert!(steps.slide());
            let mut generator = Generator::new(steps, Options { batch, ..options.clone() }).unwrap();
            generator.generate(prompts.clone()).map(|found| found.unwrap()).collect()
        };
        let alone = with(&endless, 1);
        assert_eq!(bits(&with(&endless, 4)), bits(&alone));
        assert_eq!(bits(&with(&others, 3)), bits(&with(&others, 1)));
        for (prompt, found) in prompts.iter().zip(&alone) {
            // The end is forbidden for all of the text.
            let free = slid_by_hand(&backend, &model, prompt, 120);
            let until = free.iter().position(|&token| token == 0).unwrap_or(120);
            assert_eq!(found[0].tokens.len(), 120);
            assert_eq!(found[0].tokens[..until], free[..until], "{precision}, {} tokens", prompt.len());
        }
    }
}

#[test]
fn a_long_prompt_is_read_in_pieces_beside_texts_that_are_written() {
    for precision in [Precision::F32, Precision::Bf16] {
        let backend = backend(precision, 2);
        let config = Gpt2Config { max_positions: 600, ..Gpt2Config::preset("tiny", 50).unwrap() };
        let random = Gpt2::new(&Builder::random(&backend, 5), &config).unwrap();
        let options = Options {
            batch: 3,
            max_length: MaxLength::SourceAnd(12),
            min_length: 12,
            ..Options::continuing()
        };
        let long: Vec<u32> = (0..500).map(|i| i * 7 % 50).collect();
        let prompts = [vec![3, 4, 5], long, vec![6]];
        let alone: Vec<_> = prompts
            .iter()
            .map(|prompt| results(&backend, &random, options.clone(), std::slice::from_ref(prompt)).remove(0))
            .collect();
        let mut generator = Generator::new(CausalSteps::new(&backend, &random), options).unwrap();
        generator.push(prompts[0].clone()).unwrap();
        let mut told = Vec::new();
        let mut step =
            |generator: &mut Generator| generator.step_with(&mut |written| told.push(written.sentence));
        // The first prompt is read, and writes; then the long one comes.
        (0..2).for_each(|_| step(&mut generator));
        for prompt in &prompts[1..] {
            generator.push(prompt.clone()).unwrap();
        }
        let mut found = Vec::new();
        while found.len() < prompts.len() {
            step(&mut generator);
            found.extend(std::iter::from_fn(|| generator.pop()));
        }
        let long_begins = told.iter().position(|&sentence| sentence == 1).unwrap();
        let written = |sentence| told[..long_begins].iter().filter(|&&other| other == sentence).count();
        assert!(written(0) >= 4 && written(2) >= 2, "{told:?}");
        assert_eq!(bits(&found), bits(&alone), "{precision}");
    }
}

#[test]
fn a_prompt_that_is_given_up_leaves_the_others_as_they_are() {
    let backend = backend(Precision::F32, 1);
    let config = Gpt2Config { max_positions: 60, ..Gpt2Config::preset("tiny", 50).unwrap() };
    let model = Gpt2::new(&Builder::random(&backend, 5), &config).unwrap();
    let options = Options { batch: 2, max_length: MaxLength::SourceAnd(10), ..Options::continuing() };
    let prompts: Vec<Vec<u32>> = (0..6).map(|i| (i..i + 5).collect()).collect();
    let expected = results(&backend, &model, options.clone(), &prompts);
    let mut generator = Generator::new(CausalSteps::new(&backend, &model), options).unwrap();
    let numbers: Vec<u64> = prompts.iter().map(|p| generator.push(p.clone()).unwrap()).collect();
    generator.step();
    // The first has a row; the third was read and waits for one.
    generator.cancel(numbers[0]);
    generator.cancel(numbers[2]);
    for (number, expected) in numbers.iter().zip(&expected).filter(|(n, _)| ![0, 2].contains(*n)) {
        let found = loop {
            if let Some(found) = generator.take(*number) {
                break found;
            }
            generator.step();
        };
        assert_eq!(&found, expected);
    }
}
