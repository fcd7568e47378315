//! What decoding says of a sentence is what a pass over the whole of it says.

use super::models;
use crate::common::{backend, generator, random_model, results, sources, wide_heads};
use attentive_generate::{
    AttentionKind, AttentionSelector, EncoderDecoderSteps, HeadVectors, Options, Point, Row, Seq2Seq, Stack,
    Step,
};
use attentive_model::checkpoint::StoredType;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Batch, Conversion, Layout, Transformer, convert};
use attentive_model::{Builder, Sequences};
use attentive_tensor::{Backend, Distribution, Precision, Random, Tape};
use std::sync::Arc;

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

#[test]
fn the_most_probable_tokens_are_those_that_search_chose_from() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend) {
        let sources = sources(9, 6, &model);
        let found = results(&mut generator(&backend, &model, Options::greedy()), sources.clone());
        let pairs: Vec<(&[u32], &[u32])> =
            sources.iter().zip(&found).map(|(source, found)| (&source[..], &found[0].tokens[..])).collect();
        let top = EncoderDecoderSteps::new(&backend, &model).top(&pairs, 3);
        for (found, top) in found.iter().map(|found| &found[0]).zip(&top) {
            assert_eq!(top.len(), found.tokens.len());
            for ((token, score), top) in found.tokens.iter().zip(&found.token_scores).zip(top) {
                assert_eq!((top[0].token, top[0].score.to_bits()), (*token, score.to_bits()));
                assert!(top.len() == 3 && top.is_sorted_by(|a, b| a.score >= b.score), "{top:?}");
            }
        }
        // The model has no more tokens than these, and pads with one of them.
        let classes = model.config().vocab_size - 1;
        let all = EncoderDecoderSteps::new(&backend, &model).top(&pairs[..1], classes + 5);
        let sum: f32 = all[0][0].iter().map(|best| best.score.exp()).sum();
        assert!(all[0][0].len() == classes && (sum - 1.0).abs() < 1e-4, "{sum}");
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
        let mut steps = EncoderDecoderSteps::new(&backend, &model);
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

/// In int8 the cache is rounded, so that bits differ; the order of its numbers must not, nor that of biases and of rows that were
/// stored in int8.
#[test]
fn in_int8_steps_and_attention_are_near_to_those_of_whole_sequences_in_f32() {
    let exact_backend = backend(Precision::F32, 1);
    let exact = wide_heads(&Builder::random(&exact_backend, 3));
    for (number, parameter) in exact.parameters().iter().enumerate() {
        let (shape, random) = (parameter.value().shape(), Random::new(7).split(number as u64));
        if parameter.name().ends_with("_proj.bias") {
            parameter.update(|_| exact_backend.random(shape, Distribution::Uniform { bound: 0.5 }, random));
        } else if parameter.name().ends_with("q_proj.weight") {
            // So that some keys count more than others.
            parameter.update(|weight| exact_backend.scale(&weight, 2.0));
        }
    }
    let folder = std::env::temp_dir().join(format!("attentive-generate-int8-{}", std::process::id()));
    let [plain, stored] = ["plain", "int8"].map(|name| folder.join(name));
    exact.save(&*exact_backend, &plain).unwrap();
    let conversion = Conversion { stored: StoredType::Int8, layout: Layout::AsItIs };
    convert(&exact_backend, &plain, &stored, &conversion).unwrap();

    let (source, target): ([u32; 5], [u32; 6]) = ([5, 6, 7, 8, 0], [9, 10, 11, 9, 12, 0]);
    let expected = full_logits(&exact_backend, &exact, &source, &target);
    let exact = EncoderDecoderSteps::new(&exact_backend, &exact);
    for (precision, from) in [
        (Precision::F32, &plain),
        (Precision::F32, &stored),
        (Precision::Bf16, &plain),
        (Precision::Bf16, &stored),
    ] {
        let backend = backend(precision, 1);
        let model = Transformer::load_in_int8(&backend, from).unwrap();
        let width = model.config().vocab_size;
        let mut steps = EncoderDecoderSteps::new(&backend, &model);
        steps.admit(&[(0, &source)]);
        let mut by_steps = Vec::new();
        let tokens = [steps.spec().start].into_iter().chain(target);
        for (number, token) in tokens.take(target.len()).enumerate() {
            steps.step(&[Row { slot: 0, parent: (number > 0).then_some(0), token }]);
            by_steps.extend_from_slice(&steps.logits()[..width]);
        }
        let error = |found: &[f32], expected: &[f32]| {
            let pairs = || found.iter().zip(expected).filter(|(found, _)| found.is_finite());
            let squares: f32 = pairs().map(|(a, b)| (a - b).powi(2)).sum();
            (squares / pairs().map(|(_, b)| b * b).sum::<f32>()).sqrt()
        };
        let whole = full_logits(&backend, &model, &source, &target);
        for (what, found) in [("steps", &by_steps), ("a pass over the whole", &whole)] {
            let error = error(found, &expected);
            assert!(error < 0.08, "{precision:?}, {}, {what}: {error}", from.display());
        }
        for kind in [AttentionKind::Decoder, AttentionKind::Cross] {
            for head in 0..4 {
                let selector = AttentionSelector { kind, layer: 1, head: Some(head) };
                let [found, expected] = [&steps, &exact].map(|steps| {
                    steps.attention(&[(&source, &target)], selector).unwrap()[0].weights.clone()
                });
                let error = error(&found, &expected);
                assert!(error < 0.08, "{precision:?}, {}, head {head}: {error}", from.display());
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn attention_of_what_was_written_sums_to_one_and_is_that_of_the_layers() {
    let backend = backend(Precision::F32, 2);
    let model = random_model(&backend, 5);
    let steps = EncoderDecoderSteps::new(&backend, &model);
    let pairs: [(&[u32], &[u32]); 2] = [(&[5, 6, 7, 0], &[8, 9, 0]), (&[4, 0], &[3, 2, 1, 0])];
    for kind in [AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross] {
        let selector = |head| AttentionSelector { kind, layer: 0, head };
        let mean = steps.attention(&pairs, selector(None)).unwrap();
        let heads = [0, 1, 2].map(|head| steps.attention(&pairs, selector(Some(head))).unwrap());
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
    let selector = AttentionSelector { kind: AttentionKind::Cross, layer: 1, head: Some(2) };
    assert_eq!(steps.attention(&pairs, selector).unwrap()[0].weights, expected);

    let missing = |selector| steps.attention(&pairs, selector).unwrap_err().to_string();
    assert!(missing(AttentionSelector { layer: 2, ..selector }).starts_with("layer"));
    assert!(missing(AttentionSelector { kind: AttentionKind::Encoder, ..selector }).starts_with("layer"));
    assert!(missing(AttentionSelector { head: Some(3), ..selector }).starts_with("head"));
}

#[test]
fn weights_follow_from_the_vectors_of_a_head() {
    let backend = backend(Precision::F32, 1);
    let model = random_model(&backend, 6);
    let steps = EncoderDecoderSteps::new(&backend, &model);
    let (source, target): ([u32; 4], [u32; 3]) = ([5, 6, 7, 0], [8, 9, 0]);
    let inspection = steps.inspect(&source, &target);
    for kind in [AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross] {
        for (layer, head) in
            (0..inspection.layers(kind)).flat_map(|layer| (0..3).map(move |head| (layer, head)))
        {
            let selector = AttentionSelector { kind, layer, head: Some(head) };
            let weights = inspection.weights(selector).unwrap();
            assert_eq!(weights, steps.attention(&[(&source, &target)], selector).unwrap()[0]);
            let HeadVectors { queries, keys, scale, causal, .. } = inspection.vectors(selector).unwrap();
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
        inspection
            .vectors(AttentionSelector { kind: AttentionKind::Cross, layer: 0, head: None })
            .unwrap()
            .values
            .len(),
        4
    );
    assert!(
        inspection.weights(AttentionSelector { kind: AttentionKind::Encoder, layer: 1, head: None }).is_err()
    );
}

/// The last hidden states of a target are those that its tokens are chosen from, and each token has a vector at every step.
#[test]
fn hidden_states_lead_to_the_tokens_that_are_written() {
    let backend = backend(Precision::F32, 1);
    let model = random_model(&backend, 6);
    let steps = EncoderDecoderSteps::new(&backend, &model);
    let (source, target): ([u32; 4], [u32; 3]) = ([5, 6, 7, 0], [8, 9, 0]);
    let inspection = steps.inspect(&source, &target);
    let sizes = steps.sizes();
    for step in Step::all(sizes.encoder_layers, sizes.decoder_layers) {
        let rows = inspection.hidden(step).unwrap();
        let tokens = if step.stack == Stack::Encoder { source.len() } else { target.len() };
        assert!(rows.len() == tokens && rows.iter().all(|row| row.len() == sizes.d_model), "{step:?}");
    }
    let output = Step { stack: Stack::Decoder, point: Point::Output, layer: 0 };
    let rows = inspection.hidden(output).unwrap().concat();
    let tape = Tape::inference(&backend);
    let hidden = tape.constant(backend.upload_f32(&rows, [target.len(), sizes.d_model]));
    let best = model.best(&tape, &hidden, 1, true);
    let expected = steps.top(&[(&source, &target)], 1).concat().concat();
    assert_eq!(best, expected);
    let missing = Step { layer: 7, point: Point::Cross, ..output };
    assert!(inspection.hidden(missing).unwrap_err().to_string().starts_with("hidden: there is no such step"));
}
