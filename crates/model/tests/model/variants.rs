//! Every variant of the model and of attention has the gradients of its loss, and learns.

use crate::common::{adam_rule, backends, batch, gradients_of, random, random_model, small_config};
use attentive_model::Builder;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::TransformerConfig;
use attentive_model::layers::{
    AdditiveAttention, NormPlacement, PositionKind, dot_product_attention, scaled_dot_product_attention,
};
use attentive_tensor::check::numbers;
use attentive_tensor::{Activation, Adam, Backend, Gradients, Parameter, Tape, Var};
use std::sync::Arc;

/// Checks that the loss changes as its gradients say, in four random directions through all parameters at once.
fn check_gradients(
    name: &str,
    backend: &Arc<dyn Backend>,
    parameters: &[Parameter],
    loss: impl Fn(&Tape) -> Var,
) {
    const EPSILON: f32 = 5e-4;
    let tape = Tape::training(backend, 0);
    let mut gradients = Gradients::default();
    let y = loss(&tape);
    tape.backward(&y, &mut gradients);
    let gradients = gradients_of(&**backend, &gradients, parameters).concat();
    let size = gradients.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
    for seed in 0..4 {
        let direction = numbers(seed, gradients.len());
        let along = |factor: f32| {
            let mut rest = &direction[..];
            for parameter in parameters {
                let (shape, own) =
                    (parameter.value().shape(), rest.split_off(..parameter.value().shape().len()));
                let own = backend.upload_f32(own.expect("a number for each parameter"), shape);
                parameter.update(|value| {
                    let mut value = backend.own(value);
                    backend.add_assign(&mut value, &own, factor);
                    value
                });
            }
            f64::from(backend.download_f32(loss(&Tape::training(backend, 0)).value())[0])
        };
        let difference = along(EPSILON) - along(-2.0 * EPSILON);
        along(EPSILON);
        let found = difference / f64::from(2.0 * EPSILON);
        let expected: f64 =
            gradients.iter().zip(&direction).map(|(g, u)| f64::from(*g) * f64::from(*u)).sum();
        let error = (found - expected).abs();
        println!("{:.1e} {name}: gradient {expected:.4}, difference {found:.4}", error / size);
        assert!(error < 2e-3 * size, "{name}: gradient {expected}, difference {found}, norm {size}");
    }
}

/// The activation is smooth, because differences stumble over the kinks of ReLU, and decoding does not start from
/// padding, which has a gradient but takes none. `golden.rs` has both.
fn variants() -> Vec<(&'static str, TransformerConfig)> {
    let base = TransformerConfig { start: 1, activation: Activation::Gelu, ..small_config() };
    vec![
        ("base", base.clone()),
        ("d_k, d_v and d_model / h differ", TransformerConfig { d_k: Some(5), d_v: Some(7), ..base.clone() }),
        (
            "heads that do not divide d_model",
            TransformerConfig { h: 5, d_k: Some(8), d_v: Some(9), ..base.clone() },
        ),
        ("d_emb below d_model", TransformerConfig { d_emb: Some(20), ..base.clone() }),
        ("d_emb above d_model", TransformerConfig { d_emb: Some(50), ..base.clone() }),
        (
            "learned positions",
            TransformerConfig { positions: PositionKind::Learned, max_positions: 12, ..base.clone() },
        ),
        ("pre-norm", TransformerConfig { norm: NormPlacement::Pre, ..base.clone() }),
        ("gelu_tanh", TransformerConfig { activation: Activation::GeluTanh, ..base.clone() }),
        ("silu", TransformerConfig { activation: Activation::Silu, ..base.clone() }),
        ("no padding", TransformerConfig { pad: None, ..base.clone() }),
        (
            "heads and d_ff of its own in the decoder",
            TransformerConfig { decoder_h: Some(4), decoder_d_ff: Some(30), ..base.clone() },
        ),
        ("deeper encoder", TransformerConfig { encoder_layers: 3, decoder_layers: 1, ..base.clone() }),
        ("dropout", TransformerConfig { dropout: 0.1, attention_dropout: 0.1, ..base }),
    ]
}

#[test]
fn every_variant_has_the_gradients_of_its_loss() {
    let backend = backends().last().unwrap();
    for (name, config) in variants() {
        let model = random_model(&backend, &config);
        let batch = batch(&*backend, &[(5, 4), (1, 9), (12, 2)], &config);
        check_gradients(name, &backend, model.parameters(), |tape| model.loss(tape, &batch, 0.1));
    }
}

#[test]
fn every_variant_learns_a_batch_by_heart() {
    let backend = backends().last().unwrap();
    for (name, config) in variants() {
        let model = random_model(&backend, &config);
        let batch = batch(&*backend, &[(5, 4), (1, 9), (12, 2)], &config);
        let mut adam = Adam::new(&*backend, model.parameters());
        let mut losses = Vec::new();
        for step in 0..20 {
            let tape = Tape::training(&backend, step);
            let loss = model.loss(&tape, &batch, 0.0);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            adam.step(&*backend, &adam_rule(3e-3), Some(1.0), &gradients);
            losses.extend(backend.download_f32(loss.value()));
        }
        assert!(losses[19] < 0.5 * losses[0], "{name}: {losses:?}");
    }
}

#[test]
fn every_attention_has_the_gradients_of_its_output() {
    let backend = backends().last().unwrap();
    let builder = Builder::random(&backend, 1);
    let additive = AdditiveAttention::new(&builder, 6, 7).unwrap();
    let input = |seed, rows: usize, cols: usize| {
        Parameter::new("input", backend.upload_f32(&numbers(seed, rows * cols), [rows, cols]))
    };
    let (q, k, v) = (input(11, 4, 6), input(12, 9, 6), input(13, 9, 5));
    let attention = |kind: &str, tape: &Tape| {
        let [q, k, v] = [&q, &k, &v].map(|x| tape.parameter(x));
        let y = match kind {
            "additive" => additive.forward(tape, &q, &k, &v),
            "dot product" => dot_product_attention(tape, &q, &k, &v, false),
            "causal dot product" => dot_product_attention(tape, &q, &k, &v, true),
            _ => scaled_dot_product_attention(tape, &q, &k, &v, false, None),
        };
        tape.sum(&tape.mul(&y, &random(tape, 14, 4, 5)))
    };
    for kind in ["additive", "dot product", "causal dot product", "scaled dot product"] {
        let mut parameters = vec![q.clone(), k.clone(), v.clone()];
        if kind == "additive" {
            parameters.extend(builder.parameters());
        }
        check_gradients(kind, &backend, &parameters, |tape| attention(kind, tape));
    }
}
