//! Folders of the families that share BERT's encoder, as transformers writes them, held against its answers.

use crate::common::bert::{LIMIT, assert_gradients, load};
use crate::common::{Golden, Scratch, assert_near, backends, backends_in, bits, golden, relative, weights};
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::Family;
use attentive_model::families::bert::{Batch, Bert, Relative, Task};
use attentive_tensor::{AttentionWeights, Backend, Precision, Tape};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The golden file, the folder in its directory, and what it is.
const CASES: [(&str, &str, Relative, Task); 14] = [
    ("roberta", "hidden", Relative::Roberta, Task::Hidden),
    ("roberta", "masked", Relative::Roberta, Task::MaskedLm),
    ("roberta", "sequence", Relative::Roberta, Task::SequenceClassification),
    ("roberta", "token", Relative::Roberta, Task::TokenClassification),
    ("roberta", "answer", Relative::Roberta, Task::QuestionAnswering),
    ("roberta", "multilingual", Relative::XlmRoberta, Task::MaskedLm),
    ("deberta", "hidden", Relative::DebertaV2, Task::Hidden),
    ("deberta", "masked", Relative::DebertaV2, Task::MaskedLm),
    ("deberta", "convolved", Relative::DebertaV2, Task::MaskedLm),
    ("deberta", "sequence", Relative::DebertaV2, Task::SequenceClassification),
    ("deberta", "token", Relative::DebertaV2, Task::TokenClassification),
    ("deberta", "answer", Relative::DebertaV2, Task::QuestionAnswering),
    ("deberta", "first", Relative::Deberta, Task::MaskedLm),
    ("deberta", "first_sequence", Relative::Deberta, Task::SequenceClassification),
];

fn folder(file: &str, case: &str) -> PathBuf {
    golden(file).join(case)
}

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

fn batch(backend: &dyn Backend, answers: &Golden) -> Batch {
    Batch::new(backend, &answers.sentences("ids", "lengths"))
}

#[test]
fn hidden_states_logits_and_attention_are_those_of_transformers() {
    for backend in backends() {
        for (file, case, relative, task) in CASES {
            let answers = Golden::open(file);
            let batch = batch(&*backend, &answers);
            let folder = folder(file, case);
            assert_eq!(Family::of(&folder).unwrap(), Family::Bert);
            assert_eq!(
                (Relative::of(&folder).unwrap(), Task::of(&folder).unwrap()),
                (relative, task),
                "{file}.{case}"
            );
            let model = load(&backend, &folder, task);
            assert!(model.unused().unknown.is_empty(), "{file}.{case}: {:?}", model.unused());
            let near = |what: &str, found: &[f32]| {
                let what = format!("{case}.{what}");
                assert_near(&what, found, &answers.numbers(&what), LIMIT);
            };
            let tape = Tape::inference(&backend).watching();
            let states = model.hidden_states(&tape, &batch);
            for (n, state) in states.iter().enumerate() {
                near(&format!("hidden.{n}"), &backend.download_f32(state.value()));
            }
            let watched = tape.watched();
            let of_third = |layer: &AttentionWeights| {
                let head = |head| backend.download_f32(&layer.matrix(&*backend, 2, head));
                (0..model.config().h).flat_map(head).collect::<Vec<_>>()
            };
            near("attention", &watched.iter().flat_map(of_third).collect::<Vec<_>>());
            let hidden = model.encode(&tape, &batch);
            let last = &states[states.len() - 1];
            let [a, b] = [&hidden, last].map(|x| bits(&backend.download_f32(x.value())));
            assert_eq!(a, b);
            if task == Task::Hidden {
                if let Some(pooled) = model.pooled(&tape, &hidden, &batch.sequences) {
                    near("pooled", &backend.download_f32(pooled.value()));
                }
                continue;
            }
            let logits = model.logits(&tape, &hidden, &batch.sequences).unwrap();
            near("logits", &backend.download_f32(logits.value()));
            if task != Task::QuestionAnswering {
                let loss = model.loss(&tape, &batch, &answers.ids(&format!("{case}.labels"))).unwrap();
                near("loss", &backend.download_f32(loss.value()));
            }
        }
    }
}

#[test]
fn in_int8_every_model_is_near_to_itself_in_f32() {
    for backend in backends() {
        for (file, case, _, task) in CASES {
            let answers = Golden::open(file);
            let (exact, batch) = (load(&backend, &folder(file, case), task), batch(&*backend, &answers));
            let int8 = Bert::load_in_int8(&backend, &folder(file, case), task).unwrap();
            let tape = Tape::inference(&backend);
            let [exact, int8] =
                [exact, int8].map(|model| backend.download_f32(model.encode(&tape, &batch).value()));
            let error = relative(&int8, &exact);
            // DeBERTa rounds the rows of its distances, too.
            assert!(error > 0.0 && error < 0.06, "{file}.{case} {}: {error}", backend.name());
        }
    }
}

#[test]
fn gradients_of_one_step_are_those_of_transformers() {
    for backend in backends() {
        for (file, case, _, task) in CASES {
            if matches!(task, Task::Hidden | Task::QuestionAnswering) {
                continue;
            }
            let answers = Golden::open(file);
            let model = load(&backend, &folder(file, case), task);
            assert_gradients(&backend, &model, &batch(&*backend, &answers), &answers, case);
        }
    }
}

#[test]
fn a_deberta_whose_head_has_new_names_answers_as_transformers_does() {
    let (backend, answers) = (backend(), Golden::open("deberta"));
    let model = load(&backend, &folder("deberta", "modern"), Task::MaskedLm);
    assert!(model.unused().unknown.is_empty(), "{:?}", model.unused());
    let tape = Tape::inference(&backend);
    let batch = batch(&*backend, &answers);
    let hidden = model.encode(&tape, &batch);
    let logits = model.logits(&tape, &hidden, &batch.sequences).unwrap();
    assert_near(
        "modern.logits",
        &backend.download_f32(logits.value()),
        &answers.numbers("modern.logits"),
        LIMIT,
    );
    let scratch = Scratch::new("deberta-modern");
    model.save(&*backend, scratch.path()).unwrap();
    let again = load(&backend, scratch.path(), Task::MaskedLm);
    assert!(weights(&*backend, again.parameters()) == weights(&*backend, model.parameters()));
}

#[test]
fn in_bf16_answers_are_near() {
    for backend in backends_in(Precision::Bf16) {
        for (file, case, _, task) in CASES.iter().filter(|(.., task)| *task != Task::Hidden) {
            let answers = Golden::open(file);
            let batch = batch(&*backend, &answers);
            let model = load(&backend, &folder(file, case), *task);
            let tape = Tape::inference(&backend);
            let hidden = model.encode(&tape, &batch);
            let logits = model.logits(&tape, &hidden, &batch.sequences).unwrap();
            let what = format!("{case}.logits");
            assert_near(&what, &backend.download_f32(logits.value()), &answers.numbers(&what), 5e-2);
        }
    }
}

#[test]
fn what_is_saved_comes_back_to_the_same_bits_under_the_names_of_transformers() {
    let backend = backend();
    for (file, case, _, task) in CASES {
        let (model, scratch) =
            (load(&backend, &folder(file, case), task), Scratch::new(&format!("{file}-{case}")));
        model.save(&*backend, scratch.path()).unwrap();
        let again = load(&backend, scratch.path(), Task::of(scratch.path()).unwrap());
        assert_eq!((again.config(), again.task()), (model.config(), task));
        assert!(weights(&*backend, again.parameters()) == weights(&*backend, model.parameters()), "{case}");
        let [ours, theirs] = [scratch.path(), &folder(file, case)]
            .map(|folder| Checkpoint::open(folder.join("model.safetensors")).unwrap());
        let theirs_names: Vec<String> =
            theirs.names().into_iter().filter(|name| !name.contains(".decoder.")).collect();
        assert_eq!(ours.names(), theirs_names, "{file}.{case}");
        for name in ours.names() {
            assert!(ours.get(&name).unwrap() == theirs.get(&name).unwrap(), "{case}: {name}");
        }
        let config = |folder: &Path| -> Value {
            serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap()
        };
        let (ours, theirs) = (config(scratch.path()), config(&folder(file, case)));
        for (field, value) in ours.as_object().unwrap() {
            let same = theirs.get(field).is_none_or(|theirs| match (theirs.as_f64(), value.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs(),
                _ => theirs == value,
            });
            assert!(same, "{case}, {field}: {value}, not {:?}", theirs.get(field));
        }
    }
}

#[test]
fn a_text_gives_the_same_bits_alone_in_a_batch_and_with_packed_weights() {
    for backend in [Precision::F32, Precision::Bf16].into_iter().flat_map(backends_in) {
        for (file, case, _, task) in CASES.iter().filter(|(.., task)| *task == Task::Hidden) {
            let folder = folder(file, case);
            let (model, packed) =
                (load(&backend, &folder, *task), Bert::load_packed(&backend, &folder, *task).unwrap());
            let texts: [&[i32]; 3] = [&[5, 6, 7, 8, 9], &[50], &[80, 81, 82, 83, 84, 85, 86, 87]];
            let tape = Tape::inference(&backend);
            let vectors = |model: &Bert, texts: &[&[i32]]| {
                let batch = Batch::new(&*backend, texts);
                let hidden = model.encode(&tape, &batch);
                bits(&backend.download_f32(model.mean(&tape, &hidden, &batch.sequences).value()))
            };
            let together = vectors(&model, &texts);
            assert_eq!(vectors(&packed, &texts), together, "{file}.{case} {}", backend.name());
            for (i, text) in texts.iter().enumerate() {
                assert_eq!(vectors(&model, &[text])[..], together[i * 32..][..32], "{file}.{case}");
            }
        }
    }
}
