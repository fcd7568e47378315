//! Training on a device whose memory the host cannot read.

use crate::common::{adam_rule, backends_in, batch, bits, random_model, small_config};
use attentive_model::Builder;
use attentive_model::families::bert::{self, Bert, BertConfig, Task};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::TransformerConfig;
use attentive_tensor::sealed::SealedBackend;
use attentive_tensor::{Adam, Backend, Gradients, Precision, Tape, Tensor};
use std::sync::Arc;

/// Two whole steps of two passes each; the loss of the second knows what the first has changed.
fn two_steps(backend: &Arc<dyn Backend>) -> Tensor {
    let config = TransformerConfig { dropout: 0.1, attention_dropout: 0.1, ..small_config() };
    let model = random_model(backend, &config);
    let batch = batch(&**backend, &[(5, 4), (1, 9), (12, 2)], &config);
    let mut adam = Adam::new(&**backend, model.parameters());
    let step = |seed| {
        let tape = Tape::training(backend, seed);
        let loss = model.loss(&tape, &batch, 0.1);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        // Once more, so that gradients are added up.
        let tape = Tape::training(backend, seed + 10);
        let again = model.loss(&tape, &batch, 0.1);
        tape.backward(&again, &mut gradients);
        adam.step(&**backend, &adam_rule(1e-2), Some(0.5), &gradients);
        loss.value().clone()
    };
    (0..2).map(step).last().expect("two steps")
}

#[test]
fn a_training_step_never_asks_a_device_for_its_numbers() {
    for backend in [Precision::F32, Precision::Bf16].into_iter().flat_map(backends_in) {
        let sealed = Arc::new(SealedBackend::new(Arc::clone(&backend)));
        let loss = two_steps(&(Arc::clone(&sealed) as Arc<dyn Backend>));
        assert_eq!(sealed.downloads(), 0);
        let found = (&*sealed as &dyn Backend).download_f32(&loss);
        assert_eq!(sealed.downloads(), 1);
        let expected = backend.download_f32(&two_steps(&backend));
        assert!(expected[0].is_finite());
        assert_eq!(bits(&found), bits(&expected), "{}", backend.name());
    }
}

/// A step of a small BERT for each of its tasks, and the loss after it.
fn steps_of_bert(backend: &Arc<dyn Backend>) -> Vec<Tensor> {
    let config =
        BertConfig { d_model: 36, h: 3, d_ff: 70, layers: 2, max_positions: 20, ..BertConfig::base(50) };
    let texts: [&[i32]; 3] = [&[5, 6, 7, 8, 9], &[10], &[11, 12, 13]];
    let batch = bert::Batch::new(&**backend, &texts);
    let cases = [
        (Task::MaskedLm, vec![-1, 40, -1, -1, 3, -1, 7, 8, -1]),
        (Task::SequenceClassification, vec![1, 0, -1]),
        (Task::TokenClassification, vec![0, 1, 1, 0, 0, -1, -1, 1, 0]),
    ];
    let step = |(task, labels): (Task, Vec<i32>)| {
        let model = Bert::new(&Builder::random(backend, 1), &config, task).unwrap();
        let mut adam = Adam::new(&**backend, model.parameters());
        let loss = |seed| {
            let tape = Tape::training(backend, seed);
            let loss = model.loss(&tape, &batch, &labels).unwrap();
            (tape, loss)
        };
        let (tape, first) = loss(1);
        let mut gradients = Gradients::default();
        tape.backward(&first, &mut gradients);
        adam.step(&**backend, &adam_rule(1e-2), Some(0.5), &gradients);
        loss(2).1.value().clone()
    };
    cases.into_iter().map(step).collect()
}

#[test]
fn a_training_step_of_bert_never_asks_a_device_for_its_numbers() {
    for backend in [Precision::F32, Precision::Bf16].into_iter().flat_map(backends_in) {
        let sealed = Arc::new(SealedBackend::new(Arc::clone(&backend)));
        let found = steps_of_bert(&(Arc::clone(&sealed) as Arc<dyn Backend>));
        assert_eq!(sealed.downloads(), 0);
        for (found, expected) in found.iter().zip(steps_of_bert(&backend)) {
            let found = (&*sealed as &dyn Backend).download_f32(found);
            assert_eq!(bits(&found), bits(&backend.download_f32(&expected)), "{}", backend.name());
        }
    }
}
