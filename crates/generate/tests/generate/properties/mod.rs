//! What holds for every model and every source.

mod asked;
mod queue;
mod whole;

use crate::common::{backend, generator, golden, random_model, results, sources, unsure, wide_heads_in_int8};
use attentive_generate::{
    Context, EncoderDecoderSteps, Filter, Generator, Hypothesis, LengthPenalty, MaxLength, Options, Sampling,
    Seq2Seq,
};
use attentive_model::families::transformer::Transformer;
use attentive_tensor::{Backend, Precision};
use std::collections::HashSet;
use std::sync::Arc;

/// Models that are sure and unsure of themselves.
fn models(backend: &Arc<dyn Backend>) -> Vec<Transformer> {
    vec![unsure(backend), random_model(backend, 1), random_model(backend, 2)]
}

/// Some ways to search.
fn ways() -> Vec<Options> {
    let beam = Options { max_length: MaxLength::SourceAnd(8), ..Options::default() };
    vec![
        Options { beam: 1, ..beam.clone() },
        Options { beam: 1, scores: false, ..beam.clone() },
        Options { n_best: 4, ..beam.clone() },
        Options { beam: 3, n_best: 3, patience: 2.0, penalty: LengthPenalty::Power(1.0), ..beam.clone() },
        Options { no_repeat_ngram: 2, repetition_penalty: 1.2, min_length: 3, ..beam.clone() },
        Options {
            sampling: Some(Sampling { top_p: 0.9, ..Sampling::default() }),
            n_best: 3,
            seed: 7,
            ..beam
        },
    ]
}

/// Everything there is to see of a result.
fn bits(results: &[Hypothesis]) -> Vec<(Vec<u32>, u32, Vec<u32>)> {
    let all = |scores: &[f32]| scores.iter().map(|score| score.to_bits()).collect();
    results.iter().map(|h| (h.tokens.clone(), h.score.to_bits(), all(&h.token_scores))).collect()
}

/// Models in every precision, and what computes them.
fn precisions() -> Vec<(&'static str, Arc<dyn Backend>, Transformer)> {
    let [f32, bf16] = [Precision::F32, Precision::Bf16].map(|precision| backend(precision, 2));
    let int8 = |backend: &Arc<dyn Backend>| Transformer::load_in_int8(backend, &golden("generate")).unwrap();
    let mut all: Vec<_> = models(&f32).into_iter().map(|model| ("f32", Arc::clone(&f32), model)).collect();
    all.extend(models(&bf16).into_iter().map(|model| ("bf16", Arc::clone(&bf16), model)));
    all.push(("int8", Arc::clone(&f32), int8(&f32)));
    all.push(("int8 with wide heads", Arc::clone(&f32), wide_heads_in_int8(&f32)));
    all.push(("int8 and bf16", Arc::clone(&bf16), int8(&bf16)));
    all.push(("int8 and bf16 with wide heads", Arc::clone(&bf16), wide_heads_in_int8(&bf16)));
    all
}

#[test]
fn a_sentence_has_the_same_bits_whatever_shares_its_batch() {
    for (name, backend, model) in precisions() {
        for options in ways() {
            let sources = sources(3, 17, &model);
            let with = |batch| generator(&backend, &model, Options { batch, ..options.clone() });
            let alone = results(&mut with(1), sources.clone());
            let same = |others: &[Vec<Hypothesis>]| {
                assert_eq!(alone.len(), others.len());
                for (alone, other) in alone.iter().zip(others) {
                    assert_eq!(bits(alone), bits(other), "{name}, {options:?}");
                }
            };
            [2, 5, 32].into_iter().for_each(|batch| same(&results(&mut with(batch), sources.clone())));
            // On several threads, with slots for all sentences and for a few.
            for batch in [7, 60] {
                let copies = (0..3)
                    .map(|_| Box::new(EncoderDecoderSteps::new(&backend, &model)) as Box<dyn Seq2Seq>)
                    .collect();
                let options = Options { batch, ..options.clone() };
                same(&results(&mut Generator::with_copies(copies, options).unwrap(), sources.clone()));
            }
            // Draws belong to the place of a sentence; all else does not even depend on the order.
            if options.sampling.is_none() {
                let mut reversed = results(&mut with(4), sources.iter().rev().cloned());
                reversed.reverse();
                same(&reversed);
            }
        }
    }
}

#[test]
fn packed_weights_give_the_same_bits() {
    for precision in [Precision::F32, Precision::Bf16] {
        let backend = backend(precision, 2);
        let packed = Transformer::load_packed(&backend, &golden("generate")).unwrap();
        for options in ways() {
            let run = |model: &Transformer| {
                let found = results(&mut generator(&backend, model, options.clone()), sources(6, 9, model));
                found.iter().map(|results| bits(results)).collect::<Vec<_>>()
            };
            assert_eq!(run(&packed), run(&unsure(&backend)), "{precision}, {options:?}");
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let run = |threads| {
        let backend = backend(Precision::F32, threads);
        let model = unsure(&backend);
        let found = results(&mut generator(&backend, &model, Options::default()), sources(5, 20, &model));
        found.iter().map(|results| bits(results)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn the_best_are_sorted_and_distinct() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        for options in ways() {
            for results in results(&mut generator(&backend, &model, options.clone()), sources(4, 12, &model))
            {
                assert_eq!(results.len(), options.n_best);
                assert!(results.windows(2).all(|pair| pair[0].score >= pair[1].score), "{results:?}");
                let distinct: HashSet<&Vec<u32>> = results.iter().map(|result| &result.tokens).collect();
                // Nothing keeps two draws from being equal.
                assert!(distinct.len() == results.len() || options.sampling.is_some(), "{results:?}");
            }
        }
    }
}

#[test]
fn a_beam_may_be_wider_than_the_vocabulary() {
    let backend = backend(Precision::F32, 2);
    let model = unsure(&backend);
    let options = Options { beam: 30, n_best: 30, max_length: MaxLength::Tokens(6), ..Options::default() };
    for results in results(&mut generator(&backend, &model, options), sources(17, 4, &model)) {
        let distinct: HashSet<&Vec<u32>> = results.iter().map(|result| &result.tokens).collect();
        assert_eq!((results.len(), distinct.len()), (30, 30));
    }
}

#[test]
fn results_keep_to_their_lengths_and_end_once() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        let options =
            Options { min_length: 4, max_length: MaxLength::Tokens(9), n_best: 3, ..Options::default() };
        for result in
            results(&mut generator(&backend, &model, options), sources(6, 12, &model)).iter().flatten()
        {
            assert!((5..=9).contains(&result.tokens.len()), "{result:?}");
            assert!(!result.content().contains(&0), "{result:?}");
            assert_eq!(result.ended, result.tokens.last() == Some(&0));
            assert_eq!(result.tokens.len(), result.token_scores.len());
        }
    }
}

#[test]
fn a_model_that_writes_nothing_sensible_still_comes_to_an_end() {
    struct Nothing;
    impl Filter for Nothing {
        fn filter(&self, _: &Context, scores: &mut [f32]) {
            scores.fill(f32::NAN);
        }
    }
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    for options in ways() {
        let mut generator = generator(&backend, &model, options).with_filter(Nothing);
        for results in results(&mut generator, sources(15, 3, &model)) {
            assert!(
                !results.is_empty() && results.iter().all(|result| result.tokens.is_empty()),
                "{results:?}"
            );
        }
    }
}
