//! Folders of BART, mBART and M2M-100 as transformers saves them: logits, attention, gradients, decoding with the cache, saving.

use crate::common::encoder_decoder::{assert_same_bits, batch, logits, pairs};
use crate::common::{
    Golden, Scratch, assert_gradient_near, assert_near, backends, backends_in, golden, gradients_of, relative,
};
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::Family;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::Transformer;
use attentive_tensor::{Backend, Gradients, Precision, Tape};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LIMIT: f64 = 1e-5;
const CASES: [&str; 3] = ["bart", "mbart", "m2m"];

fn folder(name: &str) -> PathBuf {
    golden("bart").join(name)
}

fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Transformer {
    Transformer::load(backend, folder).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn logits_and_attention_are_those_of_transformers() {
    let answers = Golden::open("bart");
    let pairs = pairs(&answers);
    for backend in backends() {
        for case in CASES {
            let model = load(&backend, &folder(case));
            assert_eq!(model.unused().unknown, [""; 0]);
            let expected = |what: &str| answers.numbers(&format!("{case}.{what}"));
            let found = logits(&Tape::inference(&backend), &model, &batch(&*backend, &model, &pairs));
            assert_near(&format!("{case} logits"), &found, &expected("logits"), LIMIT);
            let tape = Tape::inference(&backend).watching();
            logits(&tape, &model, &batch(&*backend, &model, &pairs[2..3]));
            let watched = tape.watched();
            let cross = watched.last().unwrap();
            let heads = (0..model.config().h).map(|head| cross.matrix(&*backend, 0, head));
            let found: Vec<f32> = heads.flat_map(|matrix| backend.download_f32(&matrix)).collect();
            assert_near(&format!("{case} attention"), &found, &expected("cross_attentions"), LIMIT);
        }
    }
}

#[test]
fn gradients_of_one_step_are_those_of_transformers() {
    let answers = Golden::open("bart");
    let pairs = pairs(&answers);
    for backend in backends() {
        for case in CASES {
            let model = Transformer::load_to_learn(&backend, &folder(case), Some(0.0), Some(0.0)).unwrap();
            let tape = Tape::training(&backend, 0);
            let loss = model.loss(&tape, &batch(&*backend, &model, &pairs), 0.0);
            let expected = answers.numbers(&format!("{case}.loss"));
            assert_near("loss", &backend.download_f32(loss.value()), &expected, LIMIT);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            let found = gradients_of(&*backend, &gradients, model.parameters());
            for (parameter, gradient) in model.parameters().iter().zip(found) {
                let name = parameter.name();
                let expected = answers.numbers(&format!("{case}.grad.{name}"));
                if name.ends_with("k_proj.bias") {
                    assert_gradient_near(name, &gradient, &expected, 1e-4);
                    continue;
                }
                // Where a model hardly looks at its source, the gradient of these scores is little more than rounding.
                let norm = |x: &[f32]| x.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
                let difference: Vec<f32> = gradient.iter().zip(&expected).map(|(a, b)| a - b).collect();
                let limit = 1e-4 * norm(&expected).max(1e-5);
                assert!(norm(&difference) < limit, "{case} {name}: {:e}", norm(&difference));
            }
        }
    }
}

/// In any batch, token by token or all at once, in f32 and bf16, and with products in int8.
#[test]
fn the_cache_gives_the_bits_of_the_whole() {
    let pairs = pairs(&Golden::open("bart"));
    for precision in [Precision::F32, Precision::Bf16] {
        for backend in backends_in(precision) {
            for (case, int8) in CASES.into_iter().flat_map(|case| [(case, false), (case, true)]) {
                let load = if int8 { Transformer::load_in_int8 } else { Transformer::load_packed };
                let name = format!("{case} {} {precision}, int8: {int8}", backend.name());
                assert_same_bits(&name, &backend, &load(&backend, &folder(case)).unwrap(), &pairs);
            }
        }
    }
}

#[test]
fn int8_is_near_to_f32() {
    let (answers, backend) = (Golden::open("bart"), backends().last().expect("an instruction set"));
    for case in CASES {
        let model = Transformer::load_in_int8(&backend, &folder(case)).unwrap();
        let found = logits(&Tape::inference(&backend), &model, &batch(&*backend, &model, &pairs(&answers)));
        let error = relative(&found, &answers.numbers(&format!("{case}.logits")));
        assert!(error < 0.05, "{case}: {error}");
    }
}

#[test]
fn what_is_saved_has_the_names_numbers_and_choices_of_transformers() {
    let backend = backends().last().expect("an instruction set");
    for case in CASES {
        let model = load(&backend, &folder(case));
        let scratch = Scratch::new(&format!("bart-saved-{case}"));
        model.save(&*backend, scratch.path()).unwrap();
        let [written, theirs] =
            [scratch.path(), &folder(case)].map(|f| Checkpoint::open(f.join("model.safetensors")).unwrap());
        let mut names = written.names();
        names.retain(|name| name != "final_logits_bias" || theirs.has(name));
        assert_eq!(names, theirs.names());
        for name in theirs.names() {
            assert!(written.get(&name).unwrap() == theirs.get(&name).unwrap(), "{name}");
        }
        let config = |folder: &Path| -> Value {
            serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap()
        };
        let [written, theirs] = [scratch.path(), &folder(case)].map(config);
        for field in ["model_type", "architectures", "scale_embedding", "max_position_embeddings"] {
            assert_eq!(written[field], theirs[field], "{case} {field}");
        }
        assert_eq!(load(&backend, scratch.path()).config(), model.config());
        assert_eq!(Family::of(scratch.path()).unwrap(), Family::Transformer);
    }
}
