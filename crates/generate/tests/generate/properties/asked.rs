//! What can be asked for: prefixes, draws, alternatives, and rules of one's own.

use super::{models, ways};
use crate::common::{backend, generator, random_model, results, sources, unsure};
use attentive_generate::{
    Context, EncoderDecoderSteps, Filter, Generator, LengthPenalty, MaxLength, Options, Random, Request,
    Sampler, Sampling, Stop,
};
use attentive_tensor::Precision;
use std::collections::HashSet;

#[test]
fn a_prefix_is_respected() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        for options in ways() {
            let n_best = options.n_best;
            let mut generator =
                generator(&backend, &model, Options { max_length: MaxLength::Tokens(12), ..options });
            let sources = sources(9, 8, &model);
            let prefixes: Vec<Vec<u32>> =
                (0..8).map(|length| (0..length).map(|i| 3 + i * 2).collect()).collect();
            let requests = sources
                .iter()
                .zip(&prefixes)
                .map(|(source, prefix)| Request { source: source.clone(), prefix: prefix.clone() });
            let found = results(&mut generator, requests);
            for (results, prefix) in found.iter().zip(&prefixes) {
                assert_eq!(results.len(), n_best);
                assert!(results.iter().all(|result| result.tokens.starts_with(prefix)), "{results:?}");
                assert!(results.iter().all(|result| result.tokens.len() > prefix.len()), "{results:?}");
            }
        }
    }
}

#[test]
fn what_greedy_search_wrote_is_how_it_goes_on_from_there() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        let mut generator = generator(&backend, &model, Options::greedy());
        for source in sources(10, 5, &model) {
            let whole = results(&mut generator, [source.clone()]).remove(0).remove(0);
            for length in [0, whole.tokens.len() / 2, whole.tokens.len() - 1] {
                let request = Request { source: source.clone(), prefix: whole.tokens[..length].to_vec() };
                let again = results(&mut generator, [request]).remove(0).remove(0);
                assert_eq!((&again.tokens, &again.token_scores), (&whole.tokens, &whole.token_scores));
            }
        }
    }
}

#[test]
fn the_same_seed_draws_the_same_and_another_does_not() {
    let backend = backend(Precision::F32, 2);
    let model = unsure(&backend);
    let sources = sources(11, 10, &model);
    let draw = |seed| {
        let sampling = Some(Sampling { temperature: 1.2, ..Sampling::default() });
        let mut generator =
            generator(&backend, &model, Options { sampling, seed, n_best: 2, ..Options::default() });
        let once = results(&mut generator, sources.clone());
        assert_eq!(once, results(&mut generator, sources.clone()));
        once
    };
    let (one, two) = (draw(1), draw(2));
    assert_eq!(one, draw(1));
    assert_ne!(one, two);
    // Each draw of a sentence is one of its own.
    assert!(one.iter().any(|draws| draws[0].tokens != draws[1].tokens));
}

#[test]
fn greedy_search_without_scores_finds_the_same_tokens_and_says_nothing_of_them() {
    for precision in [Precision::F32, Precision::Bf16] {
        let backend = backend(precision, 2);
        for model in models(&backend) {
            let found = |scores| {
                let mut generator = generator(&backend, &model, Options { scores, ..Options::greedy() });
                results(&mut generator, sources(9, 12, &model))
            };
            for (with, without) in found(true).iter().flatten().zip(found(false).iter().flatten()) {
                assert_eq!(with.tokens, without.tokens);
                assert!(with.score < 0.0 && without.score == 0.0, "{} and {}", with.score, without.score);
                assert!(without.token_scores.iter().all(|score| *score == 0.0));
            }
        }
    }
}

#[test]
fn alternatives_are_distinct_sorted_and_as_good_as_can_be() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        for beam in [1, 3] {
            let mut generator = generator(&backend, &model, Options { beam, ..Options::default() });
            for (number, source) in sources(12, 5, &model).into_iter().enumerate() {
                let prefix: Vec<u32> = [4, 8, 15][..number.min(3)].to_vec();
                let at = prefix.len();
                let request = Request { source: source.clone(), prefix: prefix.clone() };
                let translation = results(&mut generator, [request.clone()]).swap_remove(0).swap_remove(0);
                let found = generator.alternatives(request, 6).unwrap();
                assert_eq!(found.len(), 6);
                let scores: Vec<f32> = found.iter().map(|result| result.score).collect();
                assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
                let tokens: HashSet<u32> = found.iter().map(|result| result.tokens[at]).collect();
                assert_eq!(tokens.len(), 6);
                for result in &found {
                    assert!(result.tokens.starts_with(&prefix));
                    let mean = result.token_scores.iter().sum::<f32>() / result.tokens.len() as f32;
                    assert_eq!(result.score, mean);
                    if result.tokens[at] == translation.tokens[at] {
                        assert_eq!(result.tokens, translation.tokens);
                    } else if result.tokens.len() > at + 1 {
                        let request =
                            Request { source: source.clone(), prefix: result.tokens[..=at].to_vec() };
                        assert_eq!(results(&mut generator, [request])[0][0].tokens, result.tokens);
                    }
                }
            }
        }
    }
}

#[test]
fn options_that_make_no_sense_are_refused_by_name() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let default = Options::default;
    let sampling = |sampling| Options { sampling: Some(sampling), ..default() };
    for (option, options) in [
        ("beam", Options { beam: 0, ..default() }),
        ("batch", Options { batch: 0, ..default() }),
        ("n_best", Options { n_best: 5, ..default() }),
        ("n_best", Options { n_best: 2, beam: 1, ..default() }),
        ("patience", Options { patience: 0.0, ..default() }),
        ("max_length", Options { max_length: MaxLength::Tokens(0), ..default() }),
        ("repetition_penalty", Options { repetition_penalty: f32::NAN, ..default() }),
        ("penalty", Options { penalty: LengthPenalty::Paper(f32::INFINITY), ..default() }),
        ("banned", Options { banned: vec![vec![]], ..default() }),
        ("there is no token 99", Options { banned: vec![vec![99]], ..default() }),
        ("temperature", sampling(Sampling { temperature: 0.0, ..Sampling::default() })),
        ("top_p", sampling(Sampling { top_p: 0.0, ..Sampling::default() })),
        ("min_p", sampling(Sampling { min_p: 1.5, ..Sampling::default() })),
    ] {
        let error =
            Generator::new(EncoderDecoderSteps::new(&backend, &model), options).unwrap_err().to_string();
        assert!(error.starts_with(option), "{error}");
    }
}

/// Forbids odd tokens.
struct Even;

impl Filter for Even {
    fn filter(&self, _: &Context, scores: &mut [f32]) {
        scores.iter_mut().skip(1).step_by(2).for_each(|score| *score = f32::NEG_INFINITY);
    }
}

/// Ends with the third token.
struct Three;

impl Stop for Three {
    fn stop(&self, context: &Context) -> bool {
        context.tokens.len() == 3
    }
}

/// The greatest token that is allowed.
struct Last;

impl Sampler for Last {
    fn sample(&self, logits: &[f32], _: Random) -> Option<u32> {
        logits.iter().rposition(|x| x.is_finite()).map(|token| token as u32)
    }
}

#[test]
fn rules_of_a_users_own_are_followed() {
    let backend = backend(Precision::F32, 1);
    let model = random_model(&backend, 4);
    for options in [Options::greedy(), Options::default()] {
        let mut generator = generator(&backend, &model, options).with_filter(Even).with_stop(Three);
        for result in results(&mut generator, sources(14, 6, &model)).iter().flatten() {
            assert!(result.tokens.iter().all(|token| token % 2 == 0), "{result:?}");
            assert!(result.tokens.len() == 3 || result.ended, "{result:?}");
        }
    }
    let mut generator =
        generator(&backend, &model, Options::greedy()).with_filter(Even).with_stop(Three).with_sampler(Last);
    // 28 is padding, which is never written.
    assert_eq!(results(&mut generator, [vec![3, 0]])[0][0].tokens, [26; 3]);
}
