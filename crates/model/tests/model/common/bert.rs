//! What the tests of BERT and of its relatives share.

use super::{Golden, Scratch, assert_near};
use attentive_model::Builder;
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::bert::{Batch, Bert, BertConfig, Task};
use attentive_tensor::{Backend, Gradients, Parameter, Tape};
use std::path::Path;
use std::sync::Arc;

/// PyTorch in f32 comes within 1e-6.
pub const LIMIT: f64 = 1e-5;

pub fn load(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Bert {
    Bert::load(backend, folder, task).unwrap_or_else(|error| panic!("{error}"))
}

/// The gradient that transformers has for a parameter of ours: saving tells what it is called.
pub fn stored_names(backend: &Arc<dyn Backend>, model: &Bert) -> Vec<(String, Parameter)> {
    // The numbers of each parameter are its own number: so the file says which is which.
    let scratch = Scratch::new("bert-names");
    let number = |(i, p): (usize, &Parameter)| {
        let (shape, before) = (p.value().shape(), p.value());
        p.update(|_| backend.upload_f32(&vec![i as f32; shape.len()], shape));
        before
    };
    let before: Vec<_> = model.parameters().iter().enumerate().map(number).collect();
    model.save(&**backend, scratch.path()).unwrap();
    for (p, value) in model.parameters().iter().zip(before) {
        p.update(|_| value);
    }
    let file = Checkpoint::open(scratch.path().join("model.safetensors")).unwrap();
    let named = |name: String| {
        let number = file.get(&name).unwrap().unwrap().0[0] as usize;
        (name, model.parameters()[number].clone())
    };
    file.names().into_iter().map(named).collect()
}

/// The same weights in a model that drops nothing.
fn without_dropout(backend: &Arc<dyn Backend>, model: &Bert, task: Task) -> Bert {
    let config = BertConfig {
        dropout: 0.0,
        attention_dropout: 0.0,
        classifier_dropout: None,
        ..model.config().clone()
    };
    let plain = Bert::new(&Builder::random(backend, 1), &config, task).unwrap();
    for (to, from) in plain.parameters().iter().zip(model.parameters()) {
        assert_eq!(to.name(), from.name());
        to.update(|_| from.value());
    }
    plain
}

/// Holds the gradients of one step against those that a golden file has for a case.
pub fn assert_gradients(
    backend: &Arc<dyn Backend>,
    model: &Bert,
    batch: &Batch,
    answers: &Golden,
    case: &str,
) {
    // In transformers nothing was dropped either.
    let model = without_dropout(backend, model, model.task());
    let tape = Tape::training(backend, 0);
    let loss = model.loss(&tape, batch, &answers.ids(&format!("{case}.labels"))).unwrap();
    let mut gradients = Gradients::default();
    tape.backward(&loss, &mut gradients);
    let mut compared = 0;
    for (name, parameter) in stored_names(backend, &model) {
        let expected = format!("{case}.grad.{name}");
        if !answers.0.has(&expected) {
            continue;
        }
        compared += 1;
        let found = backend.download_f32(gradients.get(&parameter).unwrap());
        let expected_numbers = answers.numbers(&expected);
        if expected_numbers.iter().all(|g| g.abs() < 1e-6) {
            // Softmax does not notice what is added to all scores of a query, such as a bias of keys.
            assert!(found.iter().all(|g| g.abs() < 1e-5), "{expected}: {found:?}");
        } else {
            assert_near(&expected, &found, &expected_numbers, LIMIT);
        }
    }
    let all = answers.0.names().iter().filter(|name| name.starts_with(&format!("{case}.grad."))).count();
    assert_eq!(compared, all, "{case}");
}
