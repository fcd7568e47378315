//! Different ways to the same numbers: what the paper says of the model must be true of ours.

use crate::common::{
    Golden, assert_gradient_near, assert_near, backends, batch, gradients_of, random, random_model, relative,
    small_config,
};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Batch, Transformer, TransformerConfig};
use attentive_model::layers::{
    EncoderLayer, MultiHeadAttention, MultiHeadConfig, NormPlacement, PositionKind, StackConfig,
    scaled_dot_product_attention,
};
use attentive_model::{Builder, Sequences};
use attentive_tensor::{Backend, Best, Gradients, Parameter, Tape, Var};
use std::ops::Range;

fn stack(norm: NormPlacement) -> StackConfig {
    StackConfig { norm, dropout: 0.0, ..StackConfig::new(2, MultiHeadConfig::new(24, 4).unwrap(), 40) }
}

/// The rows of a matrix in another order, or some of them.
fn rows(tape: &Tape, x: &Var, numbers: &[i32]) -> Var {
    tape.embedding(x, &tape.backend().upload_i32(numbers), 1.0, None)
}

#[test]
fn without_positions_a_permuted_input_gives_the_permuted_output() {
    for backend in backends() {
        let builder = Builder::random(&backend, 1);
        let layer = |n| EncoderLayer::new(&builder.at(n), &stack(NormPlacement::Post)).unwrap();
        let layers = [0, 1, 2].map(layer);
        let tape = Tape::inference(&backend);
        let sequence = Sequences::new([11]);
        let spans = sequence.attending(&*backend, &sequence);
        let forward =
            |x: &Var| layers.iter().fold(x.clone(), |x, layer| layer.forward(&tape, &x, &spans, None));
        let x = random(&tape, 1, 11, 24);
        let order = [3, 0, 10, 7, 1, 9, 2, 8, 6, 4, 5];
        let y = forward(&rows(&tape, &x, &order));
        let expected = rows(&tape, &forward(&x), &order);
        let [y, expected] = [y, expected].map(|x| backend.download_f32(x.value()));
        assert_near("permuted", &y, &expected, 1e-6);
    }
}

/// Rows `rows` and columns `columns` of a weight of the golden attention.
fn part(golden: &Golden, tape: &Tape, name: &str, rows: Range<usize>, columns: Range<usize>) -> Var {
    let all = golden.numbers(name);
    let part: Vec<f32> = all
        .chunks(24)
        .skip(rows.start)
        .take(rows.len())
        .flat_map(|row| row[columns.clone()].to_vec())
        .collect();
    tape.constant(tape.backend().upload_f32(&part, [rows.len(), columns.len()]))
}

#[test]
fn h_heads_of_their_own_are_the_fused_projection() {
    let golden = Golden::open("attention");
    for backend in backends() {
        let tape = Tape::inference(&backend);
        let (d_model, h, d_k) = (24, 4, 6);
        let x = random(&tape, 2, 9, d_model);
        let bias = |name: &str, columns| {
            let numbers = &golden.numbers(name)[columns];
            tape.constant(backend.upload_f32(numbers, [numbers.len()]))
        };
        let head = |i: usize| {
            let own = i * d_k..(i + 1) * d_k;
            let [q, k, v] = ["q", "k", "v"].map(|name| {
                let weight = part(&golden, &tape, &format!("{name}_proj.weight"), own.clone(), 0..d_model);
                tape.linear(&x, &weight, Some(&bias(&format!("{name}_proj.bias"), own.clone())), None)
            });
            let y = scaled_dot_product_attention(&tape, &q, &k, &v, true, None);
            tape.linear(&y, &part(&golden, &tape, "out_proj.weight", 0..d_model, own), None, None)
        };
        let heads = (0..h).map(head).reduce(|sum, y| tape.add(&sum, &y)).expect("heads");
        let separate = tape.add(&heads, &bias("out_proj.bias", 0..d_model));

        let config = MultiHeadConfig { causal: true, ..MultiHeadConfig::new(d_model, h).unwrap() };
        let fused = MultiHeadAttention::new(&Builder::checkpoint(&backend, &golden.0), &config).unwrap();
        let sequence = Sequences::new([9]);
        let fused = fused.forward(&tape, &x, &x, &sequence.attending(&*backend, &sequence), None);
        let [separate, fused] = [separate, fused].map(|y| backend.download_f32(y.value()));
        assert_near("separate heads", &separate, &fused, 1e-6);
    }
}

#[test]
fn a_window_lets_a_query_see_its_neighbours_alone() {
    for backend in backends() {
        let tape = Tape::inference(&backend);
        let (tokens, window) = (90i32, 5i32);
        let x = random(&tape, 3, tokens as usize, 24);
        let attention = |causal, window| {
            let config = MultiHeadConfig { causal, window, ..MultiHeadConfig::new(24, 4).unwrap() };
            MultiHeadAttention::new(&Builder::random(&backend, 1), &config).unwrap()
        };
        for causal in [false, true] {
            let sequence = Sequences::new([tokens as usize]);
            let y = attention(causal, Some(window as usize)).forward(
                &tape,
                &x,
                &x,
                &sequence.attending(&*backend, &sequence),
                None,
            );
            // The same with each query as a sequence of its own, whose memory are the keys it may see.
            let last = |i: i32| if causal { i } else { (i + window - 1).min(tokens - 1) };
            let seen = |i: i32| ((i - window + 1).max(0)..=last(i)).collect::<Vec<_>>();
            let memory = rows(&tape, &x, &(0..tokens).flat_map(seen).collect::<Vec<_>>());
            let memories = Sequences::new((0..tokens).map(|i| seen(i).len()));
            let spans = Sequences::new((0..tokens).map(|_| 1)).attending(&*backend, &memories);
            let expected = attention(false, None).forward(&tape, &x, &memory, &spans, None);
            let [y, expected] = [y, expected].map(|y| backend.download_f32(y.value()));
            assert_near(&format!("window, causal {causal}"), &y, &expected, 1e-6);
        }
    }
}

#[test]
fn the_place_of_the_norm_matters() {
    let backend = backends().next().unwrap();
    let tape = Tape::inference(&backend);
    let sequence = Sequences::new([5]);
    let forward = |norm| {
        let layer = EncoderLayer::new(&Builder::random(&backend, 1), &stack(norm)).unwrap();
        let layout = sequence.attending(&*backend, &sequence);
        let y = layer.forward(&tape, &random(&tape, 4, 5, 24), &layout, None);
        backend.download_f32(y.value())
    };
    assert!(relative(&forward(NormPlacement::Pre), &forward(NormPlacement::Post)) > 0.1);
}

#[test]
fn batches_that_add_up_have_the_gradients_of_one_batch() {
    let lengths = [(5, 4), (1, 9), (12, 2), (7, 7), (3, 1), (9, 20)];
    let config = small_config();
    for backend in backends() {
        let model = random_model(&backend, &config);
        let tokens =
            |lengths: &[(usize, usize)]| lengths.iter().map(|(_, target)| target).sum::<usize>() as f32;
        let all = crate::common::pairs(&lengths, &config);
        let in_batches_of = |size: usize| {
            let mut gradients = Gradients::default();
            let mut sum = 0.0;
            for (pairs, part) in all.chunks(size).zip(lengths.chunks(size)) {
                let batch = Batch::new(&*backend, pairs, config.start as i32);
                let tape = Tape::training(&backend, 0);
                let loss = tape.scale(&model.loss(&tape, &batch, 0.1), tokens(part) / tokens(&lengths));
                sum += backend.download_f32(loss.value())[0];
                tape.backward(&loss, &mut gradients);
            }
            (sum, gradients_of(&*backend, &gradients, model.parameters()))
        };
        let (loss, gradients) = in_batches_of(6);
        for size in [1, 2, 4] {
            let (sum, parts) = in_batches_of(size);
            assert_near("loss", &[sum], &[loss], 1e-6);
            for ((parameter, part), whole) in model.parameters().iter().zip(&parts).zip(&gradients) {
                assert_gradient_near(parameter.name(), part, whole, 1e-5);
            }
        }
    }
}

/// Puts the width of the model into another order, from sinusoids in halves to interleaved ones, in one of its
/// parameters: in the rows of what is added to the hidden state, in the columns of what reads it.
fn interleave(backend: &dyn Backend, parameter: &Parameter, d_model: usize) {
    let name = parameter.name();
    let from = |i: usize| i / 2 + if i.is_multiple_of(2) { 0 } else { d_model / 2 };
    let writes = ["out_proj.weight", "out_proj.bias", "fc2.weight", "fc2.bias", "norm.weight", "norm.bias"];
    let reads = ["shared.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight", "fc1.weight"];
    let is_one_of = |names: &[&str]| names.iter().any(|end| name.ends_with(end));
    let (old, shape) = (backend.download_f32(&parameter.value()), parameter.value().shape());
    let new: Vec<f32> = if is_one_of(&writes) {
        let width = old.len() / d_model;
        (0..d_model).flat_map(|i| old[from(i) * width..(from(i) + 1) * width].to_vec()).collect()
    } else if is_one_of(&reads) {
        old.chunks(d_model).flat_map(|row| (0..d_model).map(|i| row[from(i)])).collect()
    } else {
        old
    };
    parameter.update(|_| backend.upload_f32(&new, shape));
}

#[test]
fn interleaved_and_halved_sinusoids_are_the_same_model_in_another_order() {
    for backend in backends() {
        let lengths = [(5, 4), (30, 41), (12, 2)];
        let halves = TransformerConfig { positions: PositionKind::Halves, ..small_config() };
        let interleaved = TransformerConfig { positions: PositionKind::Interleaved, ..small_config() };
        let logits = |config: &TransformerConfig, change: &dyn Fn(&Parameter)| {
            let model = random_model(&backend, config);
            model.parameters().iter().for_each(change);
            let batch = batch(&*backend, &lengths, config);
            let (sources, targets) = (&batch.source_sequences, &batch.target_sequences);
            let tape = Tape::inference(&backend);
            let memory = model.encode(&tape, &batch.source, sources);
            let hidden = model.decode(&tape, &batch.input, targets, &memory, sources);
            backend.download_f32(model.logits(&tape, &hidden).value())
        };
        let expected = logits(&halves, &|_| ());
        let reordered = logits(&interleaved, &|p| interleave(&*backend, p, interleaved.d_model));
        assert_near("interleaved", &reordered, &expected, 1e-5);
        assert!(relative(&logits(&interleaved, &|_| ()), &expected) > 1e-2, "the order makes no difference");
    }
}

#[test]
fn a_row_that_is_no_number_has_no_best_token() {
    for backend in backends() {
        let config = small_config();
        let model = Transformer::new(&Builder::random(&backend, 1), &config).unwrap();
        let tape = Tape::inference(&backend);
        let mut hidden = vec![0.5; 2 * config.d_model];
        hidden[config.d_model] = f32::NAN;
        let hidden = tape.constant(backend.upload_f32(&hidden, [2, config.d_model]));
        let best = model.best(&tape, &hidden, 3, true);
        assert!(best[..3].iter().all(|best| best.score < 0.0 && *best != Best::NONE), "{best:?}");
        assert_eq!(best[3..], [Best::NONE; 3]);
    }
}
