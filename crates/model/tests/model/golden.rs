//! Our answers held against those of PyTorch and transformers (`golden/`), on every instruction set.

use crate::common::{
    Golden, adam_rule, assert_gradient_near, assert_near, backends, backends_in, golden, gradients_of,
};
use attentive_model::Builder;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Batch, Transformer};
use attentive_model::layers::{
    DecoderLayer, EncoderLayer, MultiHeadAttention, MultiHeadConfig, NormPlacement, StackConfig,
};
use attentive_tensor::{Activation, Adam, Backend, Gradients, HostVec, Parameter, Precision, Tape, Var};
use std::sync::Arc;

/// PyTorch in f32 comes within 8e-7.
const LIMIT: f64 = 1e-5;

/// Holds the output `<case>.y` and the gradients of `y · probe` against the golden ones: those of the parameters
/// and of the inputs, each as `<case>.grad.<name>`.
fn check_layer(
    backend: &Arc<dyn Backend>,
    golden: &Golden,
    (case, probe): (&str, &str),
    parameters: &[Parameter],
    inputs: &[(&str, &Parameter)],
    forward: impl FnOnce(&Tape) -> Var,
) {
    let tape = Tape::training(backend, 0);
    let y = forward(&tape);
    let probe = tape.constant(golden.tensor(&**backend, probe));
    let loss = tape.sum(&tape.mul(&y, &probe));
    let mut gradients = Gradients::default();
    tape.backward(&loss, &mut gradients);
    assert_near(
        &format!("{case}.y"),
        &backend.download_f32(y.value()),
        &golden.numbers(&format!("{case}.y")),
        LIMIT,
    );
    let named = parameters.iter().map(|p| (p.name(), p)).chain(inputs.iter().copied());
    let (names, all): (Vec<&str>, Vec<Parameter>) = named.map(|(name, p)| (name, p.clone())).unzip();
    for (name, gradient) in names.iter().zip(gradients_of(&**backend, &gradients, &all)) {
        let name = format!("{case}.grad.{name}");
        assert_gradient_near(&name, &gradient, &golden.numbers(&name), LIMIT);
    }
}

#[test]
fn multi_head_attention_is_that_of_pytorch() {
    let golden = Golden::open("attention");
    for backend in backends() {
        let (x, other) = (golden.parameter(&*backend, "x"), golden.parameter(&*backend, "cross.x"));
        let (lengths, other_lengths) = (golden.sequences("lengths"), golden.sequences("cross.lengths"));
        for case in ["self", "causal", "cross"] {
            let builder = Builder::checkpoint(&backend, &golden.0);
            let config = MultiHeadConfig { causal: case == "causal", ..MultiHeadConfig::new(24, 4).unwrap() };
            let attention = MultiHeadAttention::new(&builder, &config).unwrap();
            let (queries, inputs, spans) = match case {
                "cross" => (
                    &other,
                    vec![("x", &other), ("memory", &x)],
                    other_lengths.attending(&*backend, &lengths),
                ),
                _ => (&x, vec![("x", &x)], lengths.attending(&*backend, &lengths)),
            };
            let names = (case, &*format!("probe.{case}"));
            check_layer(&backend, &golden, names, &builder.parameters(), &inputs, |tape| {
                attention.forward(tape, &tape.parameter(queries), &tape.parameter(&x), &spans, None)
            });
        }
    }
}

#[test]
fn attention_weights_are_those_of_pytorch() {
    let golden = Golden::open("attention");
    for backend in backends() {
        let config = MultiHeadConfig::new(24, 4).unwrap();
        let attention = MultiHeadAttention::new(&Builder::checkpoint(&backend, &golden.0), &config).unwrap();
        let tape = Tape::inference(&backend).watching();
        let input = |name| tape.constant(golden.tensor(&*backend, name));
        let spans = golden.sequences("cross.lengths").attending(&*backend, &golden.sequences("lengths"));
        attention.forward(&tape, &input("cross.x"), &input("x"), &spans, None);
        let watched = tape.watched();
        let weights = backend.download_f32(&watched[0].of_heads(&*backend, &[0, 1, 2, 3]));
        let expected = golden.numbers("cross.weights");
        assert_near("cross.weights", &weights[..expected.len()], &expected, LIMIT);

        // Any heads can be asked for, in any order.
        let head = expected.len() / 4;
        let some = backend.download_f32(&watched[0].of_heads(&*backend, &[3, 1]));
        assert_near("head 3", &some[..head], &expected[3 * head..], LIMIT);
        assert_near("head 1", &some[head..2 * head], &expected[head..2 * head], LIMIT);
    }
}

fn layer_cases() -> [(&'static str, StackConfig); 2] {
    let config = |norm, activation| StackConfig {
        activation,
        norm,
        dropout: 0.0,
        ..StackConfig::new(1, MultiHeadConfig::new(24, 4).unwrap(), 40)
    };
    [
        ("post_relu", config(NormPlacement::Post, Activation::Relu)),
        ("pre_gelu", config(NormPlacement::Pre, Activation::Gelu)),
    ]
}

#[test]
fn the_encoder_layer_is_that_of_pytorch() {
    let golden = Golden::open("encoder_layer");
    let lengths = golden.sequences("lengths");
    for backend in backends() {
        for (case, config) in layer_cases() {
            let builder = Builder::checkpoint(&backend, &golden.0);
            let layer = EncoderLayer::new(&builder, &config).unwrap();
            let x = golden.parameter(&*backend, "x");
            check_layer(&backend, &golden, (case, "probe"), &builder.parameters(), &[("x", &x)], |tape| {
                layer.forward(tape, &tape.parameter(&x), &lengths.attending(&*backend, &lengths), None)
            });
        }
    }
}

#[test]
fn the_decoder_layer_is_that_of_pytorch() {
    let golden = Golden::open("decoder_layer");
    let (lengths, memory_lengths) = (golden.sequences("lengths"), golden.sequences("memory.lengths"));
    for backend in backends() {
        let [own, cross] = [&lengths, &memory_lengths].map(|keys| lengths.attending(&*backend, keys));
        for (case, config) in layer_cases() {
            let builder = Builder::checkpoint(&backend, &golden.0);
            let layer = DecoderLayer::new(&builder, &config).unwrap();
            let (x, memory) = (golden.parameter(&*backend, "x"), golden.parameter(&*backend, "memory"));
            let inputs = [("x", &x), ("memory", &memory)];
            check_layer(&backend, &golden, (case, "probe"), &builder.parameters(), &inputs, |tape| {
                let memory = Some((&tape.parameter(&memory), &cross));
                layer.forward(tape, &tape.parameter(&x), &own, None, memory)
            });
        }
    }
}

fn golden_transformer(backend: &Arc<dyn Backend>) -> (Golden, Transformer, Batch) {
    let answers = Golden::open("transformer");
    let model = Transformer::load(backend, &golden("transformer")).unwrap_or_else(|error| panic!("{error}"));
    let sources = answers.sentences("source.ids", "source.lengths");
    let targets = answers.sentences("target.ids", "target.lengths");
    let pairs: Vec<_> = sources.into_iter().zip(targets).collect();
    let batch = Batch::new(&**backend, &pairs, model.config().start as i32);
    (answers, model, batch)
}

#[test]
fn the_decoder_is_shown_the_targets_behind_the_start_token() {
    let backend = backends().next().unwrap();
    let (answers, _, batch) = golden_transformer(&backend);
    let shown = HostVec::I32(answers.ids("decoder.ids"));
    assert_eq!(backend.download(&batch.input), shown);
}

#[test]
fn the_whole_transformer_computes_what_marian_does() {
    for backend in backends() {
        let (answers, model, batch) = golden_transformer(&backend);
        let tape = Tape::inference(&backend).watching();
        let (sources, targets) = (&batch.source_sequences, &batch.target_sequences);
        let memory = model.encode(&tape, &batch.source, sources);
        let hidden = model.decode(&tape, &batch.input, targets, &memory, sources);
        let logits = model.logits(&tape, &hidden);
        let near = |what: &str, a: &[f32]| assert_near(what, a, &answers.numbers(what), LIMIT);
        near("encoder.y", &backend.download_f32(memory.value()));
        near("decoder.y", &backend.download_f32(hidden.value()));
        let classes = |row: &[f32]| row[..60].to_vec();
        near(
            "logits",
            &backend.download_f32(logits.value()).chunks(61).flat_map(classes).collect::<Vec<_>>(),
        );
        let loss = model.loss(&tape, &batch, 0.1);
        near("loss", &backend.download_f32(loss.value()));

        // Two layers of the encoder, then self and cross attention of each of the decoder's two; then the loss again.
        let watched = tape.watched();
        assert_eq!(watched.len(), 12);
        let keys = |layer: usize| watched[layer].spans()[0].keys;
        assert_eq!([0, 1, 2, 3, 4, 5].map(keys), [7, 7, 6, 7, 6, 7]);
        let weights = backend.download_f32(&watched[5].of_heads(&*backend, &[0, 1, 2, 3]));
        near("cross.weights", &weights[..4 * 6 * 7]);
        assert!(tape.watched().is_empty());
    }
}

#[test]
fn the_whole_transformer_has_the_gradients_of_marian() {
    for backend in backends() {
        let (answers, model, batch) = golden_transformer(&backend);
        let tape = Tape::training(&backend, 0);
        let loss = model.loss(&tape, &batch, 0.1);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        let found = gradients_of(&*backend, &gradients, model.parameters());
        for (parameter, gradient) in model.parameters().iter().zip(found) {
            let name = format!("grad.{}", parameter.name());
            assert_gradient_near(&name, &gradient, &answers.numbers(&name), LIMIT);
        }
    }
}

/// bf16 has eight bits, so each rounding is off by up to one part in 256, and through four layers and back they add up.
/// Seen are 7e-4 for the loss and 8e-2 for the worst of the parameters, the same on every instruction set.
#[test]
fn in_bf16_the_transformer_has_nearly_the_loss_and_the_gradients_of_marian() {
    for backend in backends_in(Precision::Bf16) {
        let (answers, model, batch) = golden_transformer(&backend);
        let tape = Tape::training(&backend, 0);
        let loss = model.loss(&tape, &batch, 0.1);
        assert_near("loss", &backend.download_f32(loss.value()), &answers.numbers("loss"), 2e-3);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        let found = gradients_of(&*backend, &gradients, model.parameters());
        let name = |p: &Parameter| format!("grad.{}", p.name());
        let expected: Vec<_> = model.parameters().iter().map(|p| answers.numbers(&name(p))).collect();
        assert_near("the whole gradient", &found.concat(), &expected.concat(), 5e-2);
        for ((parameter, found), expected) in model.parameters().iter().zip(&found).zip(&expected) {
            // That of a bias of keys is zero.
            if !parameter.name().ends_with("k_proj.bias") {
                assert_near(&name(parameter), found, expected, 1e-1);
            }
        }
    }
}

#[test]
fn ten_steps_of_adam_have_the_losses_of_pytorch() {
    for backend in backends() {
        let (answers, model, batch) = golden_transformer(&backend);
        let mut adam = Adam::new(&*backend, model.parameters());
        for (step, expected) in (1..).zip(answers.numbers("adam.losses")) {
            let tape = Tape::training(&backend, 0);
            let loss = model.loss(&tape, &batch, 0.1);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            let (t, warmup) = (step as f32, 4f32);
            let rate = 32f32.powf(-0.5) * t.powf(-0.5).min(t * warmup.powf(-1.5));
            adam.step(&*backend, &adam_rule(rate), None, &gradients);
            let loss = backend.download_f32(loss.value());
            assert_near(&format!("adam.losses {step}"), &loss, &[expected], LIMIT);
        }
    }
}
