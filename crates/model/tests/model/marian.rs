//! Marian folders as others write them, held against the answers of transformers (`golden/marian.py`).

use crate::common::{Golden, Scratch, assert_near, backends, golden, shared};
use attentive_model::Sequences;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Transformer, TransformerConfig};
use attentive_tensor::{Activation, Backend, Tape};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// PyTorch in f32 comes within 3e-7.
const LIMIT: f64 = 1e-5;

const CASES: [&str; 6] = ["tied", "separate", "untied", "half", "brain", "uneven"];

fn folder(case: &str) -> PathBuf {
    golden("marian").join(case)
}

fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Transformer {
    Transformer::load(backend, folder).unwrap_or_else(|error| panic!("{error}"))
}

/// All logits of the batch of a case.
fn logits(backend: &Arc<dyn Backend>, model: &Transformer, answers: &Golden, case: &str) -> Vec<f32> {
    let ids = |name: &str| backend.upload_i32(&answers.ids(&format!("{case}.{name}.ids")));
    let sequences = |name: &str| answers.sequences(&format!("{case}.{name}.lengths"));
    let (sources, targets): (Sequences, Sequences) = (sequences("source"), sequences("decoder"));
    let tape = Tape::inference(backend);
    let memory = model.encode(&tape, &ids("source"), &sources);
    let hidden = model.decode(&tape, &ids("decoder"), &targets, &memory, &sources);
    backend.download_f32(model.logits(&tape, &hidden).value())
}

#[test]
fn folders_of_others_answer_as_they_do_in_transformers() {
    let answers = Golden::open("marian");
    for backend in backends() {
        for case in CASES {
            let model = load(&backend, &folder(case));
            let found = logits(&backend, &model, &answers, case);
            assert_near(case, &found, &answers.numbers(&format!("{case}.logits")), LIMIT);
        }
    }
}

#[test]
fn what_the_configurations_ask_for_is_in_the_models() {
    let config = |case| TransformerConfig::load(&folder(case)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config("tied").activation, Activation::Silu);
    let separate = config("separate");
    assert_eq!((separate.vocab_size, separate.target_vocabulary()), (23, 17));
    assert_eq!((separate.shared_embeddings, separate.tied_output), (false, true));
    assert!(!separate.scaled_embeddings && config("tied").scaled_embeddings);
    assert_eq!((config("untied").shared_embeddings, config("untied").tied_output), (false, false));
    let uneven = config("uneven");
    assert_eq!((uneven.h, uneven.decoder_heads(), uneven.decoder_d_ff), (3, 2, Some(28)));
    // transformers has a table for each here, although they are called shared.
    let backend = backends().next().expect("an instruction set");
    assert!(config("half").shared_embeddings && !load(&backend, &folder("half")).config().shared_embeddings);
}

#[test]
fn what_was_imported_can_be_saved_and_loaded_again() {
    let (backend, answers) = (backends().last().expect("an instruction set"), Golden::open("marian"));
    for case in CASES {
        let (model, scratch) = (load(&backend, &folder(case)), Scratch::new(case));
        model.save(&*backend, scratch.path()).unwrap();
        let again = load(&backend, scratch.path());
        assert_eq!(again.config(), model.config());
        let pad = model.config().pad.expect("padding");
        let width = model.config().target_vocabulary();
        let [before, after] = [&model, &again].map(|model| logits(&backend, model, &answers, case));
        for (i, (a, b)) in before.iter().zip(&after).enumerate() {
            // Padding is kept from being produced in what we save.
            let same = if i % width == pad { *b < -9_000.0 } else { a == b };
            assert!(same, "{case}, logit {i}: {a} and {b}");
        }
    }
}

#[test]
fn the_reference_checkpoint_has_the_first_logits_of_transformers() {
    let Some(folder) = shared("reference/marian-multi30k") else { return };
    let answers = Golden::open("marian");
    let expected = answers.numbers("reference.logits");
    for backend in backends() {
        let model = load(&backend, &folder);
        let found = logits(&backend, &model, &answers, "reference");
        assert_eq!(found.len(), expected.len());
        // The last is padding, which is never produced.
        let pairs = found.iter().zip(&expected).take(model.config().vocab_size - 1);
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{worst:.1e} the reference checkpoint");
        assert!(worst < 1e-4, "a logit is off by {worst}");
    }
}
