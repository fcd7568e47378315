//! The same bits: for any number of threads, alone or in a batch, at once or step by step; on every instruction
//! set, in either precision.

use crate::common::{
    adam_rule, backend, backends_in, batch, bits, pairs, random_model, small_config, weights,
};
use attentive_model::Sequences;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Transformer, TransformerConfig};
use attentive_model::layers::{Branch, Cache};
use attentive_tensor::{Adam, Backend, Gradients, Isa, Precision, Tape, Var};
use std::sync::Arc;

/// Pairs short and long, some longer than a block of attention; all of them together give every thread work.
const LENGTHS: [(usize, usize); 6] = [(7, 6), (1, 2), (150, 3), (33, 70), (16, 1), (20, 33)];

const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::Bf16];

/// A model that drops out, and is wide enough for a product to be summed in more than one piece.
fn dropping() -> TransformerConfig {
    TransformerConfig { dropout: 0.2, attention_dropout: 0.1, d_ff: 270, ..small_config() }
}

/// Everything there is to see of a training: losses, gradients of the first step, weights at the end.
fn train(backend: &Arc<dyn Backend>, steps: u64) -> (Vec<u32>, Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let model = random_model(backend, &dropping());
    let batch = batch(&**backend, &LENGTHS, model.config());
    let mut adam = Adam::new(&**backend, model.parameters());
    let (mut losses, mut first) = (Vec::new(), Vec::new());
    for step in 0..steps {
        let tape = Tape::training(backend, step);
        let loss = model.loss(&tape, &batch, 0.1);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        adam.step(&**backend, &adam_rule(1e-3), Some(1.0), &gradients);
        losses.extend(bits(&backend.download_f32(loss.value())));
        if step == 0 {
            let found = crate::common::gradients_of(&**backend, &gradients, model.parameters());
            first = found.iter().map(|gradient| bits(gradient)).collect();
        }
    }
    (losses, first, weights(&**backend, model.parameters()))
}

#[test]
fn any_number_of_threads_trains_to_the_same_bits() {
    for (isa, precision) in Isa::present().into_iter().flat_map(|isa| PRECISIONS.map(|p| (isa, p))) {
        let (losses, gradients, weights) = train(&backend(isa, precision, 1), 5);
        assert!(losses.windows(2).all(|pair| pair[0] != pair[1]), "the losses stand still");
        for threads in [2, 3, 7] {
            let backend = backend(isa, precision, threads);
            let (found, name) = (train(&backend, 5), backend.name());
            assert_eq!(found.0, losses, "losses, {name}");
            assert!(found.1 == gradients, "gradients, {name}");
            assert!(found.2 == weights, "weights, {name}");
        }
    }
}

/// The rows of each sequence, as bits.
fn by_sequence(backend: &dyn Backend, x: &Var, sequences: &Sequences) -> Vec<Vec<u32>> {
    let (numbers, width) = (bits(&backend.download_f32(x.value())), x.shape().cols());
    sequences.ranges().map(|rows| numbers[rows.start * width..rows.end * width].to_vec()).collect()
}

/// Memory, hidden states and logits of each pair of a batch.
fn infer(
    backend: &Arc<dyn Backend>,
    model: &Transformer,
    pairs: &[(Vec<i32>, Vec<i32>)],
) -> Vec<[Vec<u32>; 3]> {
    let sources = Sequences::new(pairs.iter().map(|(source, _)| source.len()));
    let targets = Sequences::new(pairs.iter().map(|(_, target)| target.len()));
    let tape = Tape::inference(backend);
    let packed = |tokens: Vec<i32>| backend.upload_i32(&tokens);
    let memory = model.encode(&tape, &packed(pairs.iter().flat_map(|p| p.0.clone()).collect()), &sources);
    let ids = packed(pairs.iter().flat_map(|p| p.1.clone()).collect());
    let hidden = model.decode(&tape, &ids, &targets, &memory, &sources);
    let logits = model.logits(&tape, &hidden);
    let memory = by_sequence(&**backend, &memory, &sources);
    let [hidden, logits] = [hidden, logits].map(|x| by_sequence(&**backend, &x, &targets));
    memory.into_iter().zip(hidden).zip(logits).map(|((m, h), l)| [m, h, l]).collect()
}

#[test]
fn a_sequence_gives_the_same_bits_alone_and_anywhere_in_a_batch() {
    for backend in PRECISIONS.into_iter().flat_map(backends_in) {
        let model = random_model(&backend, &dropping());
        let mut pairs = pairs(&LENGTHS, model.config());
        let mut alone: Vec<_> =
            pairs.iter().map(|pair| infer(&backend, &model, std::slice::from_ref(pair)).remove(0)).collect();
        for turn in 0..pairs.len() {
            assert!(infer(&backend, &model, &pairs) == alone, "{}, turned by {turn}", backend.name());
            pairs.rotate_left(1);
            alone.rotate_left(1);
        }
    }
}

/// The hidden states of each target when at most `chunk(i)` tokens of the `i`-th sequence enter in each step.
fn decode_in_chunks(
    backend: &Arc<dyn Backend>,
    model: &Transformer,
    pairs: &[(Vec<i32>, Vec<i32>)],
    chunk: impl Fn(usize) -> usize,
) -> Vec<Vec<u32>> {
    let sources = Sequences::new(pairs.iter().map(|(source, _)| source.len()));
    let source: Vec<i32> = pairs.iter().flat_map(|(source, _)| source.clone()).collect();
    let tape = Tape::inference(backend);
    let mut cache = Cache::default();
    let slots: Vec<usize> = (0..pairs.len()).collect();
    model.admit(&tape, &backend.upload_i32(&source), &sources, &slots, &mut cache);
    let mut hidden = vec![Vec::new(); pairs.len()];
    let mut lengths = vec![0; pairs.len()];
    let mut first = true;
    loop {
        let next = |(i, (_, target)): (usize, &(Vec<i32>, Vec<i32>))| {
            target[lengths[i]..target.len().min(lengths[i] + chunk(i))].to_vec()
        };
        let new: Vec<Vec<i32>> = pairs.iter().enumerate().map(next).collect();
        if new.iter().all(Vec::is_empty) {
            return hidden;
        }
        let branch = |(i, new): (usize, &Vec<i32>)| Branch {
            slot: i,
            parent: (!first).then_some(i),
            tokens: new.len(),
        };
        let branches: Vec<Branch> = new.iter().enumerate().map(branch).collect();
        let y = model.step(&tape, &backend.upload_i32(&new.concat()), &branches, &mut cache);
        let sequences = Sequences::new(new.iter().map(Vec::len));
        for (hidden, rows) in hidden.iter_mut().zip(by_sequence(&**backend, &y, &sequences)) {
            hidden.extend(rows);
        }
        lengths.iter_mut().zip(&new).for_each(|(length, new)| *length += new.len());
        first = false;
    }
}

#[test]
fn decoding_step_by_step_gives_the_same_bits_as_all_at_once() {
    for backend in PRECISIONS.into_iter().flat_map(backends_in) {
        let model = random_model(&backend, &dropping());
        let pairs = pairs(&LENGTHS, model.config());
        let at_once: Vec<_> =
            infer(&backend, &model, &pairs).into_iter().map(|[_, hidden, _]| hidden).collect();
        let name = backend.name();
        assert!(decode_in_chunks(&backend, &model, &pairs, |_| 1) == at_once, "{name}, token by token");
        assert!(decode_in_chunks(&backend, &model, &pairs, |_| 13) == at_once, "{name}, thirteen at a time");
        assert!(
            decode_in_chunks(&backend, &model, &pairs, |i| 1 + 3 * i) == at_once,
            "{name}, chunks that differ"
        );
    }
}
