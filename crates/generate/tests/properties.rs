//! What holds for every model and every source.

mod common;

use attentive_generate::{
    AttentionKind, Context, Error, Filter, Generator, HeadVectors, Hypothesis, LengthPenalty, Look,
    MaxLength, Options, Random, Request, Row, Sampler, Sampling, Seq2Seq, Stop, TransformerSteps,
};
use attentive_model::Sequences;
use attentive_model::families::transformer::{Batch, Transformer};
use attentive_tensor::{Backend, Precision, Tape};
use common::{backend, generator, golden, random_model, results, sources, unsure};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Models that are sure and unsure of themselves.
fn models(backend: &Arc<dyn Backend>) -> Vec<Transformer> {
    vec![unsure(backend), random_model(backend, 1), random_model(backend, 2)]
}

/// Some ways to search.
fn ways() -> Vec<Options> {
    let beam = Options { max_length: MaxLength::SourceAnd(8), ..Options::default() };
    vec![
        Options { beam: 1, ..beam.clone() },
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
    all.push(("int8 and bf16", Arc::clone(&bf16), int8(&bf16)));
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
                let copies = (0..3).map(|_| TransformerSteps::new(&backend, &model)).collect();
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
fn scores_are_the_log_probabilities_of_the_model() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        for options in [Options::greedy(), Options { n_best: 3, ..Options::default() }] {
            let penalty = options.penalty;
            let sources = sources(8, 6, &model);
            let found = results(&mut generator(&backend, &model, options), sources.clone());
            for (source, result) in
                sources.iter().zip(&found).flat_map(|(s, r)| r.iter().map(move |r| (s, r)))
            {
                let expected = log_probabilities(&backend, &model, source, &result.tokens);
                for (score, expected) in result.token_scores.iter().zip(&expected) {
                    assert!((score - expected).abs() < 1e-4, "{score} for {expected}");
                }
                let score = expected.iter().sum::<f32>() / penalty.divisor(expected.len());
                assert!((result.score - score).abs() < 1e-4, "{} for {score}", result.score);
            }
        }
    }
}

/// The log-probability of each token of a target, computed all at once.
fn log_probabilities(
    backend: &Arc<dyn Backend>,
    model: &Transformer,
    source: &[u32],
    target: &[u32],
) -> Vec<f32> {
    let classes = model.config().vocab_size - 1;
    let logits = full_logits(backend, model, source, target);
    let rows = logits.chunks(classes + 1).zip(target);
    let score = |(row, &token): (&[f32], &u32)| {
        let sum = row[..classes].iter().map(|&x| f64::from(x).exp()).sum::<f64>();
        (f64::from(row[token as usize]) - sum.ln()) as f32
    };
    rows.map(score).collect()
}

/// The logits before each token of a target, computed all at once.
fn full_logits(backend: &Arc<dyn Backend>, model: &Transformer, source: &[u32], target: &[u32]) -> Vec<f32> {
    let signed = |tokens: &[u32]| tokens.iter().map(|&token| token as i32).collect::<Vec<_>>();
    let batch = Batch::new(&**backend, &[(signed(source), signed(target))], model.config().start as i32);
    let tape = Tape::inference(backend);
    let memory = model.encode(&tape, &batch.source, &batch.source_sequences);
    let hidden = model.decode(&tape, &batch.input, &batch.target_sequences, &memory, &batch.source_sequences);
    backend.download_f32(model.logits(&tape, &hidden).value())
}

#[test]
fn branches_have_the_bits_of_whole_sequences() {
    for precision in [Precision::F32, Precision::Bf16] {
        let backend = backend(precision, 2);
        let model = random_model(&backend, 3);
        let width = model.config().vocab_size;
        let mut steps = TransformerSteps::new(&backend, &model);
        let [first, second]: [&[u32]; 2] = [&[5, 6, 7, 0], &[9, 0]];
        steps.admit(&[(0, first)]);
        let start = steps.spec().start;
        // Of each row of a step: the slot, the row that it follows, and its token. The second sentence comes later, and
        // beams change places, split and end.
        let script: [&[(usize, usize, u32)]; 5] = [
            &[(0, 0, start)],
            &[(0, 0, 11), (0, 0, 12)],
            &[(0, 1, 13), (0, 0, 14), (0, 1, 15), (1, 9, start)],
            &[(0, 2, 16), (0, 2, 17), (0, 1, 18), (1, 3, 19)],
            &[(0, 0, 20), (0, 2, 21), (1, 3, 22), (1, 3, 23)],
        ];
        let mut histories: Vec<Vec<u32>> = Vec::new();
        for (number, script) in script.iter().enumerate() {
            if number == 2 {
                steps.admit(&[(1, second)]);
            }
            let rows: Vec<Row> = script
                .iter()
                .map(|&(slot, parent, token)| Row { slot, parent: (token != start).then_some(parent), token })
                .collect();
            let next = rows.iter().map(|row| {
                let mut history = row.parent.map_or(Vec::new(), |parent| histories[parent].clone());
                history.push(row.token);
                history
            });
            histories = next.collect();
            steps.step(&rows);
            let logits = steps.logits().to_vec();
            for ((row, history), found) in rows.iter().zip(&histories).zip(logits.chunks(width)) {
                // The target behind the start token, and any token for the step to come.
                let target: Vec<u32> = history[1..].iter().copied().chain([1]).collect();
                let source = if row.slot == 0 { first } else { second };
                let whole = full_logits(&backend, &model, source, &target);
                let expected = &whole[(target.len() - 1) * width..];
                let same = (0..width - 1).all(|token| found[token].to_bits() == expected[token].to_bits());
                assert!(same, "{precision:?}, step {number}, {history:?}");
                assert_eq!(found[width - 1], f32::NEG_INFINITY);
            }
        }
    }
}

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
fn alternatives_are_distinct_sorted_and_as_good_as_can_be() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        for beam in [1, 3] {
            let mut generator = generator(&backend, &model, Options { beam, ..Options::default() });
            for (number, source) in sources(12, 5, &model).into_iter().enumerate() {
                let prefix: Vec<u32> = [4, 8, 15][..number.min(3)].to_vec();
                let at = prefix.len();
                let request = Request { source: source.clone(), prefix: prefix.clone() };
                let found = generator.alternatives(request, 6).unwrap();
                assert_eq!(found.len(), 6);
                let first: Vec<f32> = found.iter().map(|result| result.token_scores[at]).collect();
                assert!(first.windows(2).all(|pair| pair[0] >= pair[1]), "{first:?}");
                let tokens: HashSet<u32> = found.iter().map(|result| result.tokens[at]).collect();
                assert_eq!(tokens.len(), 6);
                for result in &found {
                    assert!(result.tokens.starts_with(&prefix));
                    if result.tokens.len() > at + 1 {
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
fn what_cannot_be_decoded_is_an_error_in_its_place() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let mut generator = generator(&backend, &model, Options { batch: 2, ..Options::default() });
    let good = vec![5, 6, 0];
    let sources = [good.clone(), vec![], vec![1; 65], good.clone(), vec![24, 0], good.clone(), vec![1; 64]];
    let found: Vec<Result<Vec<Hypothesis>, Error>> = generator.generate(sources).collect();
    assert!(matches!(found[1], Err(Error::EmptySource)));
    assert!(matches!(found[2], Err(Error::LongSource { tokens: 65, most: 64 })));
    assert!(matches!(found[4], Err(Error::Token { token: 24, vocabulary: 24 })));
    let expected = found[0].as_ref().unwrap();
    assert!([3, 5].iter().all(|&place: &usize| found[place].as_ref().unwrap() == expected));
    assert!(found[6].is_ok());
    let long = Request { source: good, prefix: vec![1; 64] };
    assert!(matches!(generator.generate([long]).next(), Some(Err(Error::LongPrefix { tokens: 64, .. }))));
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
        ("token 99", Options { banned: vec![vec![99]], ..default() }),
        ("temperature", sampling(Sampling { temperature: 0.0, ..Sampling::default() })),
        ("top_p", sampling(Sampling { top_p: 0.0, ..Sampling::default() })),
        ("min_p", sampling(Sampling { min_p: 1.5, ..Sampling::default() })),
    ] {
        let error = Generator::new(TransformerSteps::new(&backend, &model), options).unwrap_err().to_string();
        assert!(error.starts_with(option), "{error}");
    }
}

#[test]
fn every_token_is_told_as_it_is_written() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    for options in
        [Options::greedy(), Options { sampling: Some(Sampling::default()), n_best: 2, ..Options::default() }]
    {
        // Sentence, draw, token and score.
        type Told = Vec<(u64, usize, u32, f32)>;
        let told: Arc<Mutex<Told>> = Arc::default();
        let teller = Arc::clone(&told);
        let mut generator = generator(&backend, &model, options).on_token(move |written| {
            let token = *written.tokens.last().unwrap();
            teller.lock().unwrap().push((written.sentence, written.draw, token, written.score));
        });
        let found = results(&mut generator, sources(13, 4, &model));
        for (sentence, results) in found.iter().enumerate() {
            let mut heard: Vec<(Vec<u32>, Vec<f32>)> = vec![Default::default(); results.len()];
            for &(_, draw, token, score) in
                told.lock().unwrap().iter().filter(|told| told.0 == sentence as u64)
            {
                heard[draw].0.push(token);
                heard[draw].1.push(score);
            }
            for result in results {
                assert!(heard.contains(&(result.tokens.clone(), result.token_scores.clone())));
            }
        }
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

#[test]
fn sentences_that_are_dropped_leave_nothing_behind() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let mut generator = generator(&backend, &model, Options { batch: 3, ..Options::default() });
    let sources = sources(16, 9, &model);
    let expected = results(&mut generator, sources.clone());
    assert!(generator.generate(sources.clone()).next().is_some());
    assert_eq!(results(&mut generator, sources), expected);
}

#[test]
fn attention_of_what_was_written_sums_to_one_and_is_that_of_the_layers() {
    let backend = backend(Precision::F32, 2);
    let model = random_model(&backend, 5);
    let steps = TransformerSteps::new(&backend, &model);
    let pairs: [(&[u32], &[u32]); 2] = [(&[5, 6, 7, 0], &[8, 9, 0]), (&[4, 0], &[3, 2, 1, 0])];
    for kind in [AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross] {
        let look = |head| Look { kind, layer: 0, head };
        let mean = steps.attention(&pairs, look(None)).unwrap();
        let heads = [0, 1, 2].map(|head| steps.attention(&pairs, look(Some(head))).unwrap());
        for (number, (source, target)) in pairs.iter().enumerate() {
            let queries = if kind == AttentionKind::Encoder { source.len() } else { target.len() };
            let keys = if kind == AttentionKind::Decoder { target.len() } else { source.len() };
            assert_eq!((mean[number].keys, mean[number].weights.len()), (keys, queries * keys));
            for query in 0..queries {
                assert!((mean[number].row(query).iter().sum::<f32>() - 1.0).abs() < 1e-5);
                let seen = if kind == AttentionKind::Decoder { query + 1 } else { keys };
                assert!(mean[number].row(query)[seen..].iter().all(|&weight| weight == 0.0));
            }
            for (i, mean) in mean[number].weights.iter().enumerate() {
                let sum: f32 = heads.iter().map(|head| head[number].weights[i]).sum();
                assert!((sum / 3.0 - mean).abs() < 1e-6);
            }
        }
    }
    // By hand: the cross attention of the last layer.
    let tape = Tape::inference(&backend).watching();
    let sequences = Sequences::new([4]);
    let memory = model.encode(&tape, &backend.upload_i32(&[5, 6, 7, 0]), &sequences);
    let start = model.config().start as i32;
    model.decode(&tape, &backend.upload_i32(&[start, 8, 9]), &Sequences::new([3]), &memory, &sequences);
    let watched = tape.watched();
    let expected = backend.download_f32(&watched[watched.len() - 1].matrix(&*backend, 0, 2));
    let look = Look { kind: AttentionKind::Cross, layer: 1, head: Some(2) };
    assert_eq!(steps.attention(&pairs, look).unwrap()[0].weights, expected);

    let missing = |look| steps.attention(&pairs, look).unwrap_err().to_string();
    assert!(missing(Look { layer: 2, ..look }).starts_with("layer"));
    assert!(missing(Look { kind: AttentionKind::Encoder, ..look }).starts_with("layer"));
    assert!(missing(Look { head: Some(3), ..look }).starts_with("head"));
}

#[test]
fn sentences_with_options_of_their_own_share_a_batch_and_leave_in_any_order() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        let sources = sources(17, 10, &model);
        let mut shared = generator(&backend, &model, Options { batch: 4, ..Options::default() });
        let mut open = Vec::new();
        for (stream, source) in (0..).zip(&sources) {
            let options = ways()[stream as usize % ways().len()].clone();
            open.push((shared.push_with(source.clone(), options.clone(), 5).unwrap(), source, options));
        }
        while !shared.is_empty() {
            shared.step();
            open.retain(|(number, source, options)| {
                let Some(found) = shared.take(*number) else { return true };
                let mut alone = generator(&backend, &model, Options { batch: 1, ..Options::default() });
                let number = alone.push_with((*source).clone(), options.clone(), 5).unwrap();
                let alone = loop {
                    alone.step();
                    if let Some(alone) = alone.take(number) {
                        break alone;
                    }
                };
                assert_eq!(bits(&found), bits(&alone), "{options:?}");
                false
            });
        }
        assert!(open.is_empty());
    }
}

#[test]
fn who_is_given_up_is_not_felt_by_the_others() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let mut generator = generator(&backend, &model, Options { batch: 2, ..Options::default() });
    let sources = sources(18, 6, &model);
    let expected = results(&mut generator, sources.clone());
    generator.clear();
    let numbers: Vec<u64> = sources.iter().map(|source| generator.push(source.clone()).unwrap()).collect();
    generator.step();
    generator.step();
    // One that is being decoded, one that waits, one twice.
    for given_up in [0, 4, 4] {
        generator.cancel(numbers[given_up]);
    }
    let mut found = vec![None; 6];
    while !generator.is_empty() {
        generator.step();
        for (&number, found) in numbers.iter().zip(&mut found) {
            *found = generator.take(number).or(found.take());
        }
    }
    for (place, (found, expected)) in found.into_iter().zip(expected).enumerate() {
        assert_eq!(found, (![0, 4].contains(&place)).then_some(expected));
    }
}

#[test]
fn what_is_settled_does_not_change_any_more() {
    let backend = backend(Precision::F32, 1);
    let mut beams_that_settled = 0;
    for (model, options) in
        models(&backend).iter().flat_map(|model| ways().into_iter().map(move |way| (model, way)))
    {
        let walks = options.beam == 1 || options.sampling.is_some();
        let mut generator = generator(&backend, model, Options { n_best: 1, ..options });
        for source in sources(19, 5, model) {
            let number = generator.push(source).unwrap();
            let (mut settled, mut most): (Vec<Vec<u32>>, usize) = (Vec::new(), 0);
            let result = loop {
                generator.step_with(&mut |written| {
                    settled.push(written.tokens[..written.settled()].to_vec());
                    most = most.max(written.settled());
                });
                if let Some(mut results) = generator.take(number) {
                    break results.remove(0);
                }
            };
            assert!(settled.iter().all(|settled| result.tokens.starts_with(settled)), "{settled:?}");
            // Whoever walks does not turn back; a beam may hesitate to the end.
            assert!(!walks || most == result.tokens.len(), "{most} of {:?}", result.tokens);
            beams_that_settled += usize::from(!walks && most > 0);
        }
    }
    assert!(beams_that_settled > 0, "nothing was ever settled");
}

#[test]
fn weights_follow_from_the_vectors_of_a_head() {
    let backend = backend(Precision::F32, 1);
    let model = random_model(&backend, 6);
    let steps = TransformerSteps::new(&backend, &model);
    let (source, target): ([u32; 4], [u32; 3]) = ([5, 6, 7, 0], [8, 9, 0]);
    let inspection = steps.inspect(&source, &target);
    for kind in [AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross] {
        for (layer, head) in
            (0..inspection.layers(kind)).flat_map(|layer| (0..3).map(move |head| (layer, head)))
        {
            let look = Look { kind, layer, head: Some(head) };
            let weights = inspection.weights(look).unwrap();
            assert_eq!(weights, steps.attention(&[(&source, &target)], look).unwrap()[0]);
            let HeadVectors { queries, keys, scale, causal, .. } = inspection.vectors(look).unwrap();
            for (row, query) in queries.iter().enumerate() {
                let dot = |key: &Vec<f32>| query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>();
                let seen = if causal { row + 1 } else { keys.len() };
                let powers: Vec<f32> = keys[..seen].iter().map(|key| (scale * dot(key)).exp()).collect();
                let sum: f32 = powers.iter().sum();
                for (power, weight) in powers.iter().zip(weights.row(row)) {
                    assert!((power / sum - weight).abs() < 1e-5);
                }
            }
        }
    }
    assert_eq!(
        inspection.vectors(Look { kind: AttentionKind::Cross, layer: 0, head: None }).unwrap().values.len(),
        4
    );
    assert!(inspection.weights(Look { kind: AttentionKind::Encoder, layer: 1, head: None }).is_err());
}
