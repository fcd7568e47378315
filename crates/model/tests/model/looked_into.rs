//! What a watching tape tells of a model: the terms of its scores, and the hidden states of its steps, held against transformers.

use crate::common::bert::load;
use crate::common::{Golden, assert_near, backends, golden};
use attentive_model::families::bert::{Batch, Task};
use attentive_model::families::encoder_decoder::{self, EncoderDecoder};
use attentive_model::families::t5::T5;
use attentive_tensor::{AttentionWeights, Backend, BiasTerm, Span, Tape};
use std::sync::Arc;

/// How far weights may be from those of transformers, each one.
const LIMIT: f32 = 1e-5;

/// The weights of all heads of a sequence, from the numbers that a page shows: the product of query and key, times the scale, and each
/// term of the bias.
fn from_terms(attention: &AttentionWeights, backend: &dyn Backend, sequence: usize) -> Vec<f32> {
    let rule = attention.rule();
    let [q, k, _] = attention.vectors().map(|x| backend.download_f32(x));
    let Span { query, queries, key, keys, .. } = attention.spans()[sequence];
    let mut weights = Vec::new();
    for head in 0..rule.heads {
        let row = |numbers: &[f32], row: u32| {
            numbers[(row as usize * rule.heads + head) * rule.d_k..][..rule.d_k].to_vec()
        };
        let terms = attention.bias_terms(backend, sequence, head);
        for i in 0..queries {
            let score = |j: u32| {
                let product: f32 = row(&q, query + i).iter().zip(row(&k, key + j)).map(|(q, k)| q * k).sum();
                let at = (i * keys + j) as usize;
                rule.scale * product + terms.iter().map(|(_, numbers)| numbers[at]).sum::<f32>()
            };
            let seen = if rule.causal { i + 1 } else { keys };
            let powers: Vec<f32> = (0..seen).map(|j| score(j).exp()).collect();
            let sum: f32 = powers.iter().sum();
            weights.extend(powers.iter().map(|power| power / sum).chain((seen..keys).map(|_| 0.0)));
        }
    }
    weights
}

#[track_caller]
fn assert_weights(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let furthest = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("{furthest:.1e} {what}");
    assert!(furthest < LIMIT, "{what}: {furthest:.1e}");
}

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

#[test]
fn scores_of_t5_are_contents_and_numbers_of_distances() {
    let (answers, backend) = (Golden::open("t5"), backend());
    let side = |name: &str| answers.sentences(&format!("{name}.ids"), &format!("{name}.lengths"));
    let pairs: Vec<_> = side("source").into_iter().zip(side("target")).collect();
    for case in ["first", "later"] {
        let model = T5::load(&backend, &golden("t5").join(case)).unwrap();
        let tape = Tape::inference(&backend).watching();
        let batch = encoder_decoder::Batch::new(&*backend, &pairs[2..3], model.config().start as i32);
        let (sources, targets) = (&batch.source_sequences, &batch.target_sequences);
        let memory = model.encode(&tape, &batch.source, sources);
        model.decode(&tape, &batch.input, targets, &memory, sources);
        let watched = tape.watched();
        let (encoder, decoder) = watched.split_at(model.config().encoder_layers);
        let distance = &[BiasTerm::Distance][..];
        for (what, layers, terms) in [
            ("encoder", encoder.iter().collect::<Vec<_>>(), distance),
            ("decoder", decoder.iter().step_by(2).collect(), distance),
            ("cross", decoder.iter().skip(1).step_by(2).collect(), &[]),
        ] {
            assert!(layers.iter().all(|layer| layer.terms() == terms), "{what}");
            let found: Vec<f32> = layers.iter().flat_map(|layer| from_terms(layer, &*backend, 0)).collect();
            let what = format!("{case}.{what}_attentions");
            assert_weights(&what, &found, &answers.numbers(&what));
        }
    }
}

#[test]
fn scores_of_deberta_are_contents_and_products_with_distances() {
    let (answers, backend) = (Golden::open("deberta"), backend());
    let batch = Batch::new(&*backend, &answers.sentences("ids", "lengths"));
    let (queries, keys) = (BiasTerm::ContentToPosition, BiasTerm::PositionToContent);
    for (case, task, terms) in [
        ("hidden", Task::Hidden, &[queries, keys][..]),
        ("convolved", Task::MaskedLm, &[queries, keys]),
        ("sequence", Task::SequenceClassification, &[queries]),
        ("token", Task::TokenClassification, &[keys]),
        ("answer", Task::QuestionAnswering, &[]),
        ("first", Task::MaskedLm, &[queries, keys]),
        ("first_sequence", Task::SequenceClassification, &[keys]),
    ] {
        let model = load(&backend, &golden("deberta").join(case), task);
        let tape = Tape::inference(&backend).watching();
        model.encode(&tape, &batch);
        let watched = tape.watched();
        assert!(watched.iter().all(|layer| layer.terms() == terms), "{case}");
        let found: Vec<f32> = watched.iter().flat_map(|layer| from_terms(layer, &*backend, 2)).collect();
        assert_weights(case, &found, &answers.numbers(&format!("{case}.attention")));
    }
}

/// Every second step ends a layer; the others are behind its attention. The last is what leaves the stack.
#[test]
fn hidden_states_of_the_steps_are_those_of_transformers() {
    for (file, case, task) in [
        ("roberta", "hidden", Task::Hidden),
        ("deberta", "convolved", Task::MaskedLm),
        ("deberta", "first", Task::MaskedLm),
    ] {
        let (answers, backend) = (Golden::open(file), backend());
        let model = load(&backend, &golden(file).join(case), task);
        let batch = Batch::new(&*backend, &answers.sentences("ids", "lengths"));
        let tape = Tape::inference(&backend).watching_states();
        model.encode(&tape, &batch);
        let states = tape.watched_states();
        let layers = model.config().layers;
        assert_eq!((states.len(), tape.watched_states().len()), (2 * layers + 2, 0), "{file} {case}");
        for n in 0..=layers {
            let found = backend.download_f32(&states[2 * n]);
            let name = format!("{case}.hidden.{n}");
            assert_near(&name, &found, &answers.numbers(&name), crate::common::bert::LIMIT);
        }
        assert!(states[2 * layers].buffer().same(states[2 * layers + 1].buffer()), "{file} {case}");
    }
}
