//! GPT-2 folders as transformers and the Hub have them: logits, attention, gradients, decoding with the cache, saving.

use crate::common::{
    Golden, Scratch, assert_near, backends, backends_in, bits, golden, gradients_of, relative, weights,
};
use attentive_model::Builder;
use attentive_model::Sequences;
use attentive_model::checkpoint::{Checkpoint, Stored, StoredType};
use attentive_model::families::Family;
use attentive_model::families::convert;
use attentive_model::families::gpt2::{Batch, Gpt2, Gpt2Config};
use attentive_model::layers::{Branch, Cache};
use attentive_tensor::{Backend, Gradients, Precision, Tape};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LIMIT: f64 = 1e-5;

fn folder(name: &str) -> PathBuf {
    golden("gpt2").join(name)
}

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Gpt2 {
    Gpt2::load(backend, folder).unwrap_or_else(|error| panic!("{error}"))
}

/// The logits of texts, all tokens at once.
fn logits(backend: &Arc<dyn Backend>, model: &Gpt2, ids: &[i32], sequences: &Sequences) -> Vec<f32> {
    let tape = Tape::inference(backend);
    let hidden = model.decode(&tape, &backend.upload_i32(ids), sequences);
    backend.download_f32(model.logits(&tape, &hidden).value())
}

/// A folder of the same files, of which some can be changed.
fn copy(case: &str, test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    for entry in fs::read_dir(folder(case)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), scratch.path().join(entry.file_name())).unwrap();
    }
    scratch
}

#[test]
fn logits_and_attention_are_those_of_transformers() {
    let answers = Golden::open("gpt2");
    let (ids, sequences) = (answers.ids("ids"), answers.sequences("lengths"));
    for backend in backends() {
        for (case, expected) in [("saved", "saved"), ("hub", "saved"), ("untied", "untied")] {
            let model = load(&backend, &folder(case));
            assert_eq!(model.unused().unknown, [""; 0]);
            let name = |what: &str| format!("{expected}.{what}");
            let found = logits(&backend, &model, &ids, &sequences);
            assert_near(&format!("{case} logits"), &found, &answers.numbers(&name("logits")), LIMIT);

            let third = sequences.ranges().nth(2).unwrap();
            let tape = Tape::inference(&backend).watching();
            model.decode(&tape, &backend.upload_i32(&ids[third.clone()]), &Sequences::new([third.len()]));
            let (layers, heads) = (model.config().layers, model.config().h);
            let watched = tape.watched();
            assert_eq!(watched.len(), layers);
            let matrices =
                watched.iter().flat_map(|layer| (0..heads).map(|head| layer.matrix(&*backend, 0, head)));
            let found: Vec<f32> = matrices.flat_map(|matrix| backend.download_f32(&matrix)).collect();
            assert_near(&format!("{case} attention"), &found, &answers.numbers(&name("attention")), LIMIT);
        }
    }
}

/// The gradient of a fused projection is that of its three parts, side by side: `[d_model, 3·d_model]`.
#[test]
fn gradients_of_one_step_are_those_of_transformers() {
    let answers = Golden::open("gpt2");
    let texts = answers.sentences("ids", "lengths");
    for backend in backends() {
        for case in ["saved", "untied"] {
            let config = Gpt2Config {
                dropout: 0.0,
                embedding_dropout: 0.0,
                attention_dropout: 0.0,
                ..Gpt2Config::load(&folder(case)).unwrap()
            };
            let model = Gpt2::load_to_learn(&backend, &folder(case), &config).unwrap();
            let tape = Tape::training(&backend, 0);
            let loss = model.loss(&tape, &Batch::new(&*backend, &texts), 0.0);
            let expected = answers.numbers(&format!("{case}.loss"));
            assert_near("loss", &backend.download_f32(loss.value()), &expected, LIMIT);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            // The gradients take the places of the weights, and saving brings them into the order of transformers.
            let found = gradients_of(&*backend, &gradients, model.parameters());
            for (parameter, gradient) in model.parameters().iter().zip(found) {
                let shape = parameter.value().shape();
                parameter.update(|_| backend.upload_f32(&gradient, shape));
            }
            let scratch = Scratch::new(&format!("gpt2-gradients-{case}"));
            let path = scratch.path().join("gradients.safetensors");
            model.stage_weights(&*backend, &path).unwrap().commit().unwrap();
            let file = Checkpoint::open(&path).unwrap();
            let stored = answers.0.names();
            let names = stored.iter().filter_map(|name| name.strip_prefix(&format!("{case}.grad.")));
            let names: Vec<&str> = names.collect();
            assert_eq!(names, file.names(), "{case}");
            for name in names {
                let mut found = file.get(name).unwrap().unwrap().0;
                let mut expected = answers.numbers(&format!("{case}.grad.{name}"));
                if name.ends_with("c_attn.bias") {
                    // That of the keys is zero: softmax does not notice what is added to all scores of a query.
                    let d = config.d_model;
                    assert!(found[d..2 * d].iter().all(|g| g.abs() < 1e-5), "{name}");
                    found.drain(d..2 * d);
                    expected.drain(d..2 * d);
                }
                assert_near(&format!("{case} {name}"), &found, &expected, LIMIT);
            }
        }
    }
}

#[test]
fn a_partial_loss_is_the_share_of_a_batch_and_leaves_out_what_has_no_target() {
    let backend = backend();
    let model = load(&backend, &folder("saved"));
    let tape = Tape::inference(&backend);
    let number =
        |batch: &Batch, of| backend.download_f32(model.partial_loss(&tape, batch, 0.0, of).value())[0];
    let texts = [vec![5, 6, 7, 8, 9], vec![3, 4, 5]];
    let whole = number(&Batch::new(&*backend, &texts), 6);
    let parts: f32 = texts.iter().map(|text| number(&Batch::new(&*backend, &[text]), 6)).sum();
    assert!((whole - parts).abs() < 1e-5 * whole, "{whole} {parts}");
    let last = Batch::with_targets(&*backend, &[(&texts[0][..4], [-100, -100, -100, 9])]);
    let both = Batch::with_targets(&*backend, &[(&texts[0][..4], [-100, -100, 8, 9])]);
    let third = Batch::with_targets(&*backend, &[(&texts[0][..3], [-100, -100, 8])]);
    let sum = number(&last, 1) + number(&third, 1);
    assert!((number(&both, 1) - sum).abs() < 1e-5 * sum);
}

/// Token by token, as a prompt and tokens behind it, in any batch, in f32 and bf16, packed or not.
#[test]
fn the_cache_gives_the_bits_of_the_whole() {
    let ids: Vec<i32> = Golden::open("gpt2").ids("ids")[10..40].to_vec();
    for precision in [Precision::F32, Precision::Bf16] {
        for backend in backends_in(precision) {
            let packed = Gpt2::load_packed(&backend, &folder("hub")).unwrap();
            for model in [load(&backend, &folder("saved")), packed] {
                let vocabulary = model.config().vocab_size;
                let expected = logits(&backend, &model, &ids, &Sequences::new([ids.len()]));
                let tape = Tape::inference(&backend);
                let step = |ids: &[i32], branches: &[Branch], cache: &mut Cache| {
                    let hidden = model.step(&tape, &backend.upload_i32(ids), branches, cache);
                    backend.download_f32(model.logits(&tape, &hidden).value())
                };
                let name = format!("{} {precision}", backend.name());
                let mut cache = Cache::default();
                for (position, expected) in expected.chunks(vocabulary).enumerate() {
                    let branch = Branch::token(0, (position > 0).then_some(0));
                    let found = step(&ids[position..=position], &[branch], &mut cache);
                    assert_eq!(bits(&found), bits(expected), "{name}");
                }
                // Another prompt is read in the same step, and one waits while the other goes on.
                let mut cache = Cache::default();
                let prompts = [20, 3].map(|tokens| Branch { slot: 0, parent: None, tokens });
                let found = step(&[&ids[..20], &ids[..3]].concat(), &prompts, &mut cache);
                assert_eq!(bits(&found[..20 * vocabulary]), bits(&expected[..20 * vocabulary]), "{name}");
                assert_eq!(bits(&found[20 * vocabulary..]), bits(&expected[..3 * vocabulary]), "{name}");
                let one = Branch { slot: 0, parent: Some(0), tokens: 0 };
                let other = Branch { slot: 0, parent: Some(1), tokens: 10 };
                let found = step(&ids[3..13], &[one, other], &mut cache);
                assert_eq!(bits(&found), bits(&expected[3 * vocabulary..13 * vocabulary]), "{name}");
                let found = step(&ids[20..21], &[Branch::token(0, Some(0))], &mut cache);
                assert_eq!(bits(&found), bits(&expected[20 * vocabulary..21 * vocabulary]), "{name}");
            }
        }
    }
}

#[test]
fn int8_is_near_to_f32() {
    let answers = Golden::open("gpt2");
    let backend = backend();
    let model = Gpt2::load_in_int8(&backend, &folder("hub")).unwrap();
    let found = logits(&backend, &model, &answers.ids("ids"), &answers.sequences("lengths"));
    let error = relative(&found, &answers.numbers("saved.logits"));
    assert!(error < 0.03, "{error}");
}

#[test]
fn both_layouts_are_one_model_and_what_is_saved_has_the_names_of_today() {
    let backend = backend();
    let [saved, hub] = ["saved", "hub"].map(|case| load(&backend, &folder(case)));
    assert_eq!(weights(&*backend, saved.parameters()), weights(&*backend, hub.parameters()));
    assert_eq!(saved.unused().ignored, [""; 0]);
    assert_eq!(hub.unused().ignored, ["h.0.attn.bias", "h.1.attn.bias"]);
    assert_eq!(saved.config(), &Gpt2Config { ..hub.config().clone() });
    for (case, model) in [("saved", hub), ("untied", load(&backend, &folder("untied")))] {
        let scratch = Scratch::new(&format!("gpt2-saved-{case}"));
        model.save(&*backend, scratch.path()).unwrap();
        let [written, theirs] =
            [scratch.path(), &folder(case)].map(|f| Checkpoint::open(f.join("model.safetensors")).unwrap());
        assert_eq!(written.names(), theirs.names());
        for name in theirs.names() {
            assert!(written.get(&name).unwrap() == theirs.get(&name).unwrap(), "{name}");
        }
        let again = load(&backend, scratch.path());
        assert_eq!(again.config(), model.config());
        let read = again.read_weights(&*backend, &scratch.path().join("model.safetensors")).unwrap();
        for (parameter, tensor) in model.parameters().iter().zip(read) {
            let [a, b] = [parameter.value(), tensor].map(|tensor| bits(&backend.download_f32(&tensor)));
            assert_eq!(a, b, "{}", parameter.name());
        }
    }
}

#[test]
fn a_converted_folder_has_the_layout_of_transformers_in_the_other_type() {
    let backend = backend();
    let ids = Golden::open("gpt2").ids("ids");
    let sequences = Golden::open("gpt2").sequences("lengths");
    for (case, like) in [("saved", "saved"), ("hub", "saved"), ("untied", "untied")] {
        for stored in [StoredType::F32, StoredType::Bf16] {
            let scratch = Scratch::new(&format!("gpt2-convert-{case}-{stored:?}"));
            let out = scratch.path().join("out");
            let converted = convert(&backend, &folder(case), &out, stored).unwrap();
            let [new, theirs] =
                [&out, &folder(like)].map(|f| Checkpoint::open(f.join("model.safetensors")).unwrap());
            assert_eq!((new.names(), converted.tensors), (theirs.names(), theirs.names().len()), "{case}");
            for name in theirs.names() {
                let (numbers, shape) = new.stored(&name).unwrap().unwrap();
                assert_eq!(
                    matches!(numbers, Stored::Bf16(_)),
                    stored == StoredType::Bf16 && shape[..].len() == 2
                );
                let (expected, its_shape) = theirs.get(&name).unwrap().unwrap();
                assert_eq!(shape, its_shape, "{name}");
                let limit = if stored == StoredType::Bf16 { 4e-3 } else { 0.0 };
                assert!(relative(&numbers.into_f32(), &expected) <= limit, "{name}");
            }
            let config: Value = serde_json::from_slice(&fs::read(out.join("config.json")).unwrap()).unwrap();
            let dtype = if stored == StoredType::Bf16 { "bfloat16" } else { "float32" };
            assert_eq!((&config["dtype"], &config["model_type"]), (&json!(dtype), &json!("gpt2")));
            let [old, new] =
                [&folder(case), &out].map(|f| logits(&backend, &load(&backend, f), &ids, &sequences));
            assert!(relative(&new, &old) < 1e-2, "{case} {stored:?}");
        }
    }
    let scratch = Scratch::new("gpt2-convert-int8");
    let out = scratch.path().join("out");
    let error = convert(&backend, &folder("hub"), &out, StoredType::Int8).unwrap_err().to_string();
    assert!(error.contains("int8 is not supported for this model type, only f32 and bf16"), "{error}");
    assert!(!out.exists());
}

#[test]
fn shapes_tell_the_parameters_of_the_hubs_models() {
    let backend = backend();
    let count =
        |config: Gpt2Config| Gpt2::new(&Builder::shapes(&backend), &config).unwrap().parameter_count();
    assert_eq!(count(Gpt2Config::base(50_257)), 124_439_808);
    assert_eq!(count(Gpt2Config::preset("big", 50_257).unwrap()), 354_823_168);
    let shapes = Gpt2::load_shapes(&backend, &folder("hub")).unwrap();
    assert_eq!(shapes.parameter_count(), load(&backend, &folder("saved")).parameter_count());
}

#[test]
fn random_residual_projections_are_drawn_smaller() {
    let backend = backend();
    let config = Gpt2Config::preset("tiny", 300).unwrap();
    let model = Gpt2::new(&Builder::random(&backend, 3), &config).unwrap();
    for parameter in model.parameters().iter().filter(|p| p.name().ends_with("weight")) {
        let numbers = backend.download_f32(&parameter.value());
        let found = (numbers.iter().map(|x| x * x).sum::<f32>() / numbers.len() as f32).sqrt();
        let name = parameter.name();
        let expected = match name {
            _ if name.contains("norm") => 1.0,
            _ if name.contains("out_proj") || name.contains("fc2") => 0.01,
            _ => 0.02,
        };
        assert!((found / expected - 1.0).abs() < 0.05, "{name}: {found}");
    }
}

#[test]
fn a_broken_folder_is_told_with_its_file_and_field() {
    let scratch = copy("saved", "gpt2-config");
    let path = scratch.path().join("config.json");
    let good: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let sentence = || {
        let error = Gpt2::load(&backend(), scratch.path()).unwrap_err().to_string();
        error.replace(&format!("{}/", scratch.path().display()), "")
    };
    for (field, value, expected) in [
        ("n_embd", json!(0), "n_embd: must be at least 1, not 0"),
        ("n_layer", json!(5000), "n_layer: must be at most 1024, not 5000"),
        (
            "n_head",
            json!(5),
            "n_head: d_model 32 is not divisible by 5 heads: choose another number of heads, or set d_k and d_v",
        ),
        ("embd_pdrop", json!(1.0), "embd_pdrop: must be from 0 to below 1, not 1"),
        ("layer_norm_epsilon", json!(-1.0), "layer_norm_epsilon: must be at least 0, not -1"),
        (
            "scale_attn_by_inverse_layer_idx",
            json!(true),
            "scale_attn_by_inverse_layer_idx: true is not supported for this model type, only false",
        ),
        (
            "add_cross_attention",
            json!(true),
            "add_cross_attention: true is not supported for this model type, only false",
        ),
        (
            "model_type",
            json!("bert"),
            "this is a model of type `bert`, but `gpt2`, `openai-gpt` or `gpt_neo` is needed here",
        ),
    ] {
        let mut config = good.clone();
        config[field] = value;
        fs::write(&path, config.to_string()).unwrap();
        assert_eq!(sentence(), format!("config.json: {expected}"));
    }
    let mut config = good.clone();
    config["n_layer"] = json!(3);
    fs::write(&path, config.to_string()).unwrap();
    assert!(sentence().starts_with("model.safetensors: the tensor `transformer.h.2."), "{}", sentence());
    config["n_layer"] = json!(1);
    fs::write(&path, config.to_string()).unwrap();
    let unknown = load(&backend(), scratch.path()).unused().unknown.clone();
    assert!(unknown.contains(&"transformer.h.1.attn.c_attn.bias".to_owned()), "{unknown:?}");
}

#[test]
fn the_registry_knows_it_by_its_type_and_its_class() {
    assert_eq!(Family::of(&folder("hub")).unwrap(), Family::Gpt2);
    let scratch = copy("saved", "gpt2-registry");
    let path = scratch.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config.as_object_mut().unwrap().remove("model_type");
    fs::write(&path, config.to_string()).unwrap();
    assert_eq!(Family::of(scratch.path()).unwrap(), Family::Gpt2);
}

/// What a head that differs from the table of a tied model says is not what the model would say.
#[test]
fn an_output_that_contradicts_the_table_is_refused() {
    let scratch = copy("untied", "gpt2-tied");
    let path = scratch.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["tie_word_embeddings"] = json!(true);
    fs::write(&path, config.to_string()).unwrap();
    let error = Gpt2::load(&backend(), scratch.path()).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "`lm_head.weight` differs from `transformer.wte.weight`, but config.json ties them: set tie_word_embeddings to \
             false there"
        ),
        "{error}"
    );
}
