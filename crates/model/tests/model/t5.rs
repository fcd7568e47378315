//! T5 folders as transformers and the Hub have them: logits, attention, gradients, decoding with the cache, saving.

use crate::common::encoder_decoder::{assert_same_bits, batch, logits, pairs};
use crate::common::{
    Golden, Scratch, assert_near, backends, backends_in, golden, gradients_of, relative, weights,
};
use attentive_model::Builder;
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::Family;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::t5::{T5, T5Config};
use attentive_tensor::{Backend, Gradients, Precision, Tape};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// T5 of transformers computes norms and softmax in f32, whatever the rest is computed in.
const LIMIT: f64 = 2e-5;
const CASES: [&str; 2] = ["first", "later"];

fn folder(name: &str) -> PathBuf {
    golden("t5").join(name)
}

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

fn load(backend: &Arc<dyn Backend>, folder: &Path) -> T5 {
    T5::load(backend, folder).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn logits_and_attention_are_those_of_transformers() {
    let answers = Golden::open("t5");
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
            let config = model.config();
            let matrices = |watched: &[&attentive_tensor::AttentionWeights]| -> Vec<f32> {
                let heads = watched
                    .iter()
                    .flat_map(|layer| (0..config.h).map(|head| layer.matrix(&*backend, 0, head)));
                heads.flat_map(|matrix| backend.download_f32(&matrix)).collect()
            };
            let watched = tape.watched();
            let (encoder, decoder) = watched.split_at(config.encoder_layers);
            assert_eq!(decoder.len(), 2 * config.decoder_layers);
            let every_second = |first| decoder.iter().skip(first).step_by(2).collect::<Vec<_>>();
            for (what, seen) in [
                ("encoder_attentions", encoder.iter().collect()),
                ("decoder_attentions", every_second(0)),
                ("cross_attentions", every_second(1)),
            ] {
                assert_near(&format!("{case} {what}"), &matrices(&seen), &expected(what), LIMIT);
            }
        }
    }
}

#[test]
fn gradients_of_one_step_are_those_of_transformers() {
    let answers = Golden::open("t5");
    let pairs = pairs(&answers);
    for backend in backends() {
        for case in CASES {
            let model = T5::load_to_learn(&backend, &folder(case), Some(0.0)).unwrap();
            let tape = Tape::training(&backend, 0);
            let loss = model.loss(&tape, &batch(&*backend, &model, &pairs), 0.0);
            let expected = answers.numbers(&format!("{case}.loss"));
            assert_near("loss", &backend.download_f32(loss.value()), &expected, LIMIT);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            // The gradients take the places of the weights, and saving gives them the names of transformers.
            let found = gradients_of(&*backend, &gradients, model.parameters());
            for (parameter, gradient) in model.parameters().iter().zip(found) {
                let shape = parameter.value().shape();
                parameter.update(|_| backend.upload_f32(&gradient, shape));
            }
            let scratch = Scratch::new(&format!("t5-gradients-{case}"));
            let path = scratch.path().join("gradients.safetensors");
            model.stage_weights(&*backend, &path).unwrap().commit().unwrap();
            let file = Checkpoint::open(&path).unwrap();
            let stored = answers.0.names();
            let names = stored.iter().filter_map(|name| name.strip_prefix(&format!("{case}.grad.")));
            let names: Vec<&str> = names.collect();
            assert_eq!(names, file.names(), "{case}");
            for name in names {
                let expected = answers.numbers(&format!("{case}.grad.{name}"));
                assert_near(&format!("{case} {name}"), &file.get(name).unwrap().unwrap().0, &expected, LIMIT);
            }
        }
    }
}

/// In any batch, token by token or all at once, in f32 and bf16, packed or not, and with products in int8.
#[test]
fn the_cache_gives_the_bits_of_the_whole() {
    let pairs = pairs(&Golden::open("t5"));
    for precision in [Precision::F32, Precision::Bf16] {
        for backend in backends_in(precision) {
            for case in CASES {
                let packed = T5::load_packed(&backend, &folder(case)).unwrap();
                let int8 = T5::load_in_int8(&backend, &folder(case)).unwrap();
                for model in [load(&backend, &folder(case)), packed, int8] {
                    assert_same_bits(
                        &format!("{case} {} {precision}", backend.name()),
                        &backend,
                        &model,
                        &pairs,
                    );
                }
            }
        }
    }
}

#[test]
fn int8_is_near_to_f32() {
    let (answers, backend) = (Golden::open("t5"), backend());
    for case in CASES {
        let model = T5::load_in_int8(&backend, &folder(case)).unwrap();
        let found = logits(&Tape::inference(&backend), &model, &batch(&*backend, &model, &pairs(&answers)));
        let error = relative(&found, &answers.numbers(&format!("{case}.logits")));
        assert!(error < 0.05, "{case}: {error}");
    }
}

#[test]
fn what_is_saved_has_the_names_and_numbers_of_transformers() {
    let backend = backend();
    for case in CASES {
        let model = load(&backend, &folder(case));
        assert_eq!(
            (model.config().tied_output, model.config().scaled_output),
            (case == "first", case == "first")
        );
        let scratch = Scratch::new(&format!("t5-saved-{case}"));
        model.save(&*backend, scratch.path()).unwrap();
        let [written, theirs] =
            [scratch.path(), &folder(case)].map(|f| Checkpoint::open(f.join("model.safetensors")).unwrap());
        assert_eq!(written.names(), theirs.names());
        for name in theirs.names() {
            assert!(written.get(&name).unwrap() == theirs.get(&name).unwrap(), "{name}");
        }
        let again = load(&backend, scratch.path());
        assert_eq!(again.config(), model.config());
        assert_eq!(weights(&*backend, again.parameters()), weights(&*backend, model.parameters()));
        let read = again.read_weights(&*backend, &scratch.path().join("model.safetensors")).unwrap();
        assert_eq!(read.len(), model.parameters().len());
    }
}

#[test]
fn shapes_tell_the_parameters_of_the_hubs_models() {
    let backend = backend();
    let count = |config: &T5Config| T5::new(&Builder::shapes(&backend), config).unwrap().parameter_count();
    // google/t5-v1_1-small and google/t5-v1_1-base.
    assert_eq!(count(&T5Config::preset("small", 32_128).unwrap()), 76_961_152);
    assert_eq!(count(&T5Config::preset("base", 32_128).unwrap()), 247_577_856);
    let shapes = T5::load_shapes(&backend, &folder("later")).unwrap();
    assert_eq!(shapes.parameter_count(), load(&backend, &folder("later")).parameter_count());
}

/// A copy of a folder with other fields in `config.json`.
fn changed(case: &str, test: &str, fields: Value) -> Scratch {
    let scratch = Scratch::new(test);
    for entry in fs::read_dir(folder(case)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), scratch.path().join(entry.file_name())).unwrap();
    }
    let path = scratch.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    fs::write(&path, config.to_string()).unwrap();
    scratch
}

#[test]
fn an_output_that_is_there_decides_and_scaling_has_two_spellings() {
    let backend = backend();
    let read = |case: &str, fields: Value| {
        let scratch = changed(case, "t5-output", fields);
        let config = load(&backend, scratch.path()).config().clone();
        (config.tied_output, config.scaled_output, config.model_type)
    };
    let t5 = |tied, scaled| (tied, scaled, "t5".to_owned());
    assert_eq!(read("first", json!({})), t5(true, true));
    assert_eq!(
        read("first", json!({"tie_word_embeddings": false, "scale_decoder_outputs": null})),
        t5(true, false)
    );
    assert_eq!(read("later", json!({"tie_word_embeddings": true})), t5(false, true));
    assert_eq!(
        read("later", json!({"tie_word_embeddings": true, "scale_decoder_outputs": false})),
        t5(false, false)
    );
    assert_eq!(read("later", json!({"model_type": "mt5"})), (false, false, "mt5".to_owned()));
}

#[test]
fn a_broken_folder_is_told_with_its_file_and_field() {
    for (field, value, expected) in [
        ("d_model", json!(0), "d_model: must be at least 1, not 0"),
        ("num_layers", json!(5000), "num_layers: must be at most 1024, not 5000"),
        ("dropout_rate", json!(1.0), "dropout_rate: must be from 0 to below 1, not 1"),
        ("layer_norm_epsilon", json!(-1.0), "layer_norm_epsilon: must be at least 0, not -1"),
        (
            "relative_attention_num_buckets",
            json!(3),
            "relative_attention_num_buckets: 3 are too few to tell distances apart",
        ),
        (
            "relative_attention_max_distance",
            json!(2),
            "relative_attention_max_distance: must be between 4 and 1048576, not 2",
        ),
        ("eos_token_id", json!(234), "eos_token_id: token 234 must be below vocab_size 234"),
        (
            "is_encoder_decoder",
            json!(false),
            "is_encoder_decoder: false is not supported for this model type, only true",
        ),
        ("model_type", json!("bert"), "this is a model of type `bert`, but `t5` or `mt5` is needed here"),
    ] {
        let scratch = changed("first", "t5-broken", json!({field: value}));
        let error = T5::load(&backend(), scratch.path()).unwrap_err().to_string();
        let error = error.replace(&format!("{}/", scratch.path().display()), "");
        assert_eq!(error, format!("config.json: {expected}"));
    }
    let scratch = changed("first", "t5-unknown", json!({"feed_forward_proj": "gated-mish"}));
    let error = T5::load(&backend(), scratch.path()).unwrap_err().to_string();
    assert!(error.contains("feed_forward_proj: `mish` is not supported"), "{error}");
    let scratch = changed("first", "t5-deep", json!({"num_layers": 3}));
    let error = T5::load(&backend(), scratch.path()).unwrap_err().to_string();
    assert!(error.contains("the tensor `encoder.block.2.layer.0."), "{error}");
}

#[test]
fn the_registry_knows_it_by_its_type_and_its_class() {
    assert_eq!(Family::of(&folder("first")).unwrap(), Family::T5);
    for (fields, family) in [
        (json!({"model_type": "mt5"}), Family::T5),
        (json!({"model_type": null, "architectures": ["MT5ForConditionalGeneration"]}), Family::T5),
    ] {
        assert_eq!(Family::of(changed("first", "t5-registry", fields).path()).unwrap(), family);
    }
}
