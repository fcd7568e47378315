//! Model folders: what is saved comes back, is a Marian model where Marian can express it, and whatever is wrong with a
//! folder is told in one sentence.

use crate::common::{Scratch, backends, batch, bits, golden, random_model, small_config, weights};
use attentive_model::Error;
use attentive_model::checkpoint::{self, Checkpoint, Staged};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Transformer, TransformerConfig};
use attentive_model::layers::{NormPlacement, PositionKind};
use attentive_tensor::{Activation, Backend, HostVec, Tape};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What Marian cannot express, all at once and one at a time.
fn own_configs() -> Vec<TransformerConfig> {
    let base = small_config();
    vec![
        TransformerConfig {
            d_emb: Some(20),
            d_k: Some(5),
            d_v: Some(7),
            norm: NormPlacement::Pre,
            positions: PositionKind::Learned,
            activation: Activation::Silu,
            attention_dropout: 0.3,
            pad: None,
            ..base.clone()
        },
        TransformerConfig { d_emb: Some(20), ..base.clone() },
        TransformerConfig { d_k: Some(5), ..base.clone() },
        TransformerConfig { norm: NormPlacement::Pre, ..base.clone() },
        TransformerConfig { positions: PositionKind::Interleaved, ..base.clone() },
        TransformerConfig { pad: None, ..base.clone() },
        TransformerConfig { h: 5, d_k: Some(7), d_v: Some(7), ..base },
    ]
}

#[test]
fn what_is_saved_comes_back_to_the_same_bits() {
    let (backend, scratch) = (backend(), Scratch::new("round-trip"));
    let plain = TransformerConfig { dropout: 0.1, activation: Activation::GeluTanh, ..small_config() };
    let separate = TransformerConfig {
        target_vocab_size: Some(90),
        shared_embeddings: false,
        tied_output: false,
        scaled_embeddings: false,
        pad: Some(70),
        start: 70,
        ..small_config()
    };
    let untied = TransformerConfig { tied_output: false, ..small_config() };
    let apart = TransformerConfig { shared_embeddings: false, ..small_config() };
    let uneven = TransformerConfig { decoder_h: Some(4), decoder_d_ff: Some(50), ..small_config() };
    for config in own_configs().into_iter().chain([plain, separate, untied, apart, uneven]) {
        let model = random_model(&backend, &config);
        model.save(&*backend, scratch.path()).unwrap();
        let loaded = Transformer::load(&backend, scratch.path()).unwrap();
        assert_eq!(loaded.config(), &config);
        let names =
            |model: &Transformer| model.parameters().iter().map(|p| p.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&loaded), names(&model));
        assert!(weights(&*backend, loaded.parameters()) == weights(&*backend, model.parameters()));
        let batch = batch(&*backend, &[(5, 4), (12, 2)], &config);
        let loss = |model: &Transformer| {
            bits(&backend.download_f32(model.loss(&Tape::inference(&backend), &batch, 0.1).value()))
        };
        assert_eq!(loss(&loaded), loss(&model));
    }
}

#[test]
fn what_marian_can_express_is_saved_as_a_marian_model() {
    let (backend, scratch) = (backend(), Scratch::new("marian"));
    let model = Transformer::load(&backend, &golden("transformer")).unwrap();
    model.save(&*backend, scratch.path()).unwrap();

    let ours = Checkpoint::open(scratch.path().join(WEIGHTS)).unwrap();
    let theirs = Checkpoint::open(golden("transformer").join(WEIGHTS)).unwrap();
    assert_eq!(ours.names(), theirs.names());
    for name in ours.names() {
        let ((a, a_shape), (b, b_shape)) =
            (ours.get(&name).unwrap().unwrap(), theirs.get(&name).unwrap().unwrap());
        assert_eq!(a_shape, b_shape, "{name}");
        // What is added to the logits keeps padding from being produced.
        let same =
            if name == "final_logits_bias" { a[..60] == b[..60] && a[60] == -10_000.0 } else { a == b };
        assert!(same, "{name}");
    }

    let (ours, theirs) =
        (read_json(&scratch.path().join(CONFIG)), read_json(&golden("transformer").join(CONFIG)));
    assert_eq!(ours["model_type"], "marian");
    for (field, value) in ours.as_object().unwrap() {
        // Marian always has its norms behind the sublayers, and no field to say so.
        assert!(
            &theirs[field] == value || field == "normalize_before",
            "{field}: {value}, not {}",
            theirs[field]
        );
    }
}

#[test]
fn what_marian_cannot_express_is_not_called_a_marian_model() {
    let (backend, scratch) = (backend(), Scratch::new("own"));
    for config in own_configs() {
        random_model(&backend, &config).save(&*backend, scratch.path()).unwrap();
        let written = read_json(&scratch.path().join(CONFIG));
        assert_eq!(written["model_type"], "attentive-transformer", "{config:?}");
        assert_eq!(written["architectures"], json!([]));
    }
}

/// The sentence that comes of loading a good folder with one thing changed, without the folder's path.
fn sentence(test: &str, change: impl FnOnce(&Path)) -> String {
    let (backend, scratch) = (backend(), Scratch::new(test));
    random_model(&backend, &small_config()).save(&*backend, scratch.path()).unwrap();
    change(scratch.path());
    let error = Transformer::load(&backend, scratch.path()).unwrap_err().to_string();
    let folder = format!("{}/", scratch.path().display());
    error.strip_prefix(&folder).unwrap_or_else(|| panic!("no path: {error}")).to_owned()
}

fn with_field(test: &str, field: &str, value: Value) -> String {
    sentence(test, |folder| {
        let mut config = read_json(&folder.join(CONFIG));
        config[field] = value;
        fs::write(folder.join(CONFIG), config.to_string()).unwrap();
    })
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    assert_eq!(
        sentence("gone", |folder| fs::remove_dir_all(folder).unwrap()),
        "config.json: no such file; a model is a folder with config.json and model.safetensors or pytorch_model.bin"
    );
    assert_eq!(
        sentence("no-weights", |folder| fs::remove_file(folder.join(WEIGHTS)).unwrap()),
        "model.safetensors: there is neither this file nor pytorch_model.bin"
    );
}

#[test]
fn a_truncated_file_is_refused_wherever_it_was_cut() {
    let said = [
        (0, "it is empty"),
        (5, "it ends too early"),
        (1000, "too few for a header"),
        (100_000, "it has 100000 bytes"),
    ];
    for (keep, words) in said {
        let sentence = sentence(&format!("cut-{keep}"), |folder| {
            let path = folder.join(WEIGHTS);
            let bytes = fs::read(&path).unwrap();
            assert!(keep < bytes.len());
            fs::write(&path, &bytes[..keep]).unwrap();
        });
        assert!(sentence.starts_with("model.safetensors: not a complete safetensors file: "), "{sentence}");
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn a_missing_tensor_is_named() {
    let backend = backend();
    let missing = sentence("missing", |folder| {
        let model = Transformer::load(&backend, folder).unwrap();
        let most: Vec<_> =
            model.parameters().iter().filter(|p| !p.name().ends_with("layers.1.fc2.bias")).cloned().collect();
        checkpoint::stage(&folder.join(WEIGHTS), &*backend, &most, &[]).unwrap().commit().unwrap();
    });
    assert_eq!(missing, "model.safetensors: the tensor `model.encoder.layers.1.fc2.bias` is missing");
}

#[test]
fn a_wrong_shape_is_told_with_both_shapes() {
    assert_eq!(
        with_field("shape", "d_model", json!(39)),
        "model.safetensors: `model.shared.weight` has shape [101, 36], but the model needs [101, 39]"
    );
}

/// Gives a folder a bias of the logits.
fn write_bias(backend: &Arc<dyn Backend>, folder: &Path, bias: &[f32]) {
    let model = Transformer::load(backend, folder).unwrap();
    let bias = ("final_logits_bias", bias.to_vec(), [1, bias.len()].into());
    let path = folder.join(WEIGHTS);
    checkpoint::stage(&path, &**backend, model.parameters(), &[bias]).unwrap().commit().unwrap();
}

#[test]
fn a_bias_of_the_logits_is_added_counts_in_the_loss_and_is_saved() {
    let (backend, scratch) = (backend(), Scratch::new("bias"));
    let plain = random_model(&backend, &small_config());
    plain.save(&*backend, scratch.path()).unwrap();
    let bias: Vec<f32> = (0..101).map(|token| 0.1 * (token % 7) as f32).collect();
    write_bias(&backend, scratch.path(), &bias);
    let model = Transformer::load(&backend, scratch.path()).unwrap();

    let batch = batch(&*backend, &[(5, 4), (12, 2)], &small_config());
    let (sources, targets) = (&batch.source_sequences, &batch.target_sequences);
    let tape = Tape::inference(&backend);
    let memory = model.encode(&tape, &batch.source, sources);
    let hidden = model.decode(&tape, &batch.input, targets, &memory, sources);
    let [without, with] =
        [&plain, &model].map(|model| backend.download_f32(model.logits(&tape, &hidden).value()));
    for (i, (a, b)) in without.iter().zip(&with).enumerate() {
        assert!((a + bias[i % 101] - b).abs() < 1e-5, "logit {i}: {a} and {b}");
    }
    // The mean of -log softmax over the hundred classes, by its definition.
    let HostVec::I32(tokens) = backend.download(&batch.target) else { panic!("tokens are i32") };
    let loss = |(row, &token): (&[f32], &i32)| {
        let denominator: f64 = row[..100].iter().map(|&x| f64::from(x).exp()).sum();
        denominator.ln() - f64::from(row[token as usize])
    };
    let expected = with.chunks(101).zip(&tokens).map(loss).sum::<f64>() / tokens.len() as f64;
    let found = f64::from(backend.download_f32(model.loss(&tape, &batch, 0.0).value())[0]);
    assert!((found - expected).abs() < 1e-4, "{found} and {expected}");

    model.save(&*backend, scratch.path()).unwrap();
    let again = Checkpoint::open(scratch.path().join(WEIGHTS)).unwrap();
    let (saved, _) = again.get("final_logits_bias").unwrap().unwrap();
    assert_eq!((&saved[..100], saved[100]), (&bias[..100], -10_000.0));
}

#[test]
fn a_bias_of_another_size_is_told_with_both_shapes() {
    let backend = backend();
    let sentence = sentence("bias-shape", |folder| write_bias(&backend, folder, &[0.0; 100]));
    assert_eq!(
        sentence,
        "model.safetensors: `final_logits_bias` has shape [1, 100], but the model needs [1, 101]"
    );
}

#[test]
fn a_layer_too_many_is_unknown_to_the_model() {
    let (backend, scratch) = (backend(), Scratch::new("surplus"));
    random_model(&backend, &small_config()).save(&*backend, scratch.path()).unwrap();
    let whole = Transformer::load(&backend, scratch.path()).unwrap();
    assert_eq!(whole.unused().unknown, [""; 0]);
    let mut config = read_json(&scratch.path().join(CONFIG));
    config["decoder_layers"] = json!(1);
    fs::write(scratch.path().join(CONFIG), config.to_string()).unwrap();
    let shallow = Transformer::load(&backend, scratch.path()).unwrap();
    let unknown = &shallow.unused().unknown;
    assert_eq!(unknown.len(), whole.parameters().len() - shallow.parameters().len());
    assert!(unknown.iter().all(|name| name.starts_with("model.decoder.layers.1.")), "{unknown:?}");
}

/// `bert.rs` has more of them.
#[test]
fn a_bad_index_and_pointers_to_weights_are_named() {
    let parts = sentence("parts", |folder| {
        fs::remove_file(folder.join(WEIGHTS)).unwrap();
        fs::write(folder.join("model.safetensors.index.json"), "{}").unwrap();
    });
    assert_eq!(parts, "model.safetensors.index.json: missing field `weight_map` at line 1 column 2");
    let pointer = sentence("pointer", |folder| {
        fs::write(folder.join(WEIGHTS), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
            .unwrap();
    });
    assert_eq!(
        pointer,
        "model.safetensors: this is a Git LFS pointer and not the file itself: fetch the file with `git lfs pull`"
    );
}

#[test]
fn a_broken_config_is_told_with_its_file_and_field() {
    let broken = sentence("broken", |folder| fs::write(folder.join(CONFIG), "{\"model_type\": ").unwrap());
    assert_eq!(broken, "config.json: EOF while parsing a value at line 1 column 15");
    let empty = sentence("empty", |folder| fs::write(folder.join(CONFIG), "{}").unwrap());
    assert_eq!(empty, "config.json: missing field `model_type` at line 1 column 2");
    for (field, value, expected) in [
        (
            "activation_function",
            json!("softplus"),
            "activation_function: `softplus` is not supported; supported are relu, gelu, gelu_new, swish, silu, tanh, sigmoid, \
             quick_gelu, relu2, gelu_python, gelu_pytorch_tanh, gelu_fast, gelu_accurate, gelu_python_tanh",
        ),
        (
            "model_type",
            json!("llama"),
            "the model type `llama` is not supported, only `marian`, `attentive-transformer`, `bart`, `mbart`, `m2m_100`, `bert`, `roberta`, \
             `xlm-roberta`, `deberta`, `deberta-v2`, `gpt2`, `openai-gpt`, `gpt_neo`, \
             `t5`, `mt5`, `detr`, `attentive-detr`, `vit`, `deit`, `dinov2` and `dinov2_with_registers`",
        ),
        (
            "positions",
            json!("rotary"),
            "positions: `rotary` is not supported; supported are halves, interleaved, learned, tensor2tensor",
        ),
        (
            "decoder_attention_heads",
            json!(5),
            "decoder_attention_heads: d_model 36 is not divisible by 5 heads: choose another number of heads, or set d_k and d_v",
        ),
        (
            "is_encoder_decoder",
            json!(false),
            "is_encoder_decoder: false is not supported for this model type, only true",
        ),
        (
            "normalize_before",
            json!(true),
            "normalize_before: true is not supported for this model type, only false",
        ),
        (
            "static_position_embeddings",
            json!(false),
            "static_position_embeddings: false is not supported for this model type, only true",
        ),
        (
            "quantization_config",
            json!({"quant_method": "gptq", "bits": 4}),
            "quantization_config: the method `gptq` is not supported: use the model without quantization",
        ),
        (
            "quantization_config",
            json!({"quant_method": "attentive_int8", "version": 2}),
            "quantization_config: version 2 of attentive_int8 is not supported, only 1: convert the model again",
        ),
        (
            "decoder_vocab_size",
            json!(80),
            "decoder_vocab_size: 80 target tokens cannot share the embeddings of 101 source tokens",
        ),
        ("encoder_layers", json!(0), "encoder_layers: must be at least 1, not 0"),
        ("dropout", json!(1.5), "dropout: must be from 0 to below 1, not 1.5"),
        ("max_position_embeddings", json!(0), "max_position_embeddings: must be at least 1, not 0"),
        (
            "max_position_embeddings",
            json!(1u64 << 31),
            "max_position_embeddings: must be at most 1073741824, not 2147483648",
        ),
        ("encoder_layers", json!(1u64 << 31), "encoder_layers: must be at most 1024, not 2147483648"),
        ("eos_token_id", json!(101), "eos_token_id: token 101 must be below vocab_size 101"),
        (
            "decoder_start_token_id",
            json!(200),
            "decoder_start_token_id: token 200 must be below vocab_size 101",
        ),
        ("pad_token_id", json!(101), "pad_token_id: token 101 must be below vocab_size 101"),
        (
            "d_model",
            json!(37),
            "encoder_attention_heads: d_model 37 is not divisible by 3 heads: choose another number of heads, or set d_k and d_v",
        ),
    ] {
        assert_eq!(with_field(field, field, value), format!("config.json: {expected}"));
    }
}

/// Changes `config.json` by taking fields out of it.
fn without(folder: &Path, fields: &[&str]) {
    let mut config = read_json(&folder.join(CONFIG));
    for field in fields {
        config.as_object_mut().unwrap().remove(*field).unwrap();
    }
    fs::write(folder.join(CONFIG), config.to_string()).unwrap();
}

#[test]
fn a_missing_field_is_what_transformers_takes_for_it() {
    let (backend, scratch) = (backend(), Scratch::new("defaults"));
    random_model(&backend, &small_config()).save(&*backend, scratch.path()).unwrap();
    let optional = [
        "dropout",
        "attention_dropout",
        "share_encoder_decoder_embeddings",
        "tie_word_embeddings",
        "is_encoder_decoder",
    ];
    without(scratch.path(), &optional);
    let config = TransformerConfig::load(scratch.path()).unwrap();
    assert_eq!(config, TransformerConfig { dropout: 0.1, ..small_config() });

    without(scratch.path(), &["scale_embedding"]);
    assert!(!TransformerConfig::load(scratch.path()).unwrap().scaled_embeddings);
    let unpadded = sentence("unpadded", |folder| without(folder, &["pad_token_id"]));
    assert!(unpadded.starts_with("config.json: missing field `pad_token_id`"), "{unpadded}");
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_staged_but_not_committed_leaves_the_old_file_whole_and_nothing_behind() {
    let scratch = Scratch::new("staged");
    let file = scratch.path().join("file");
    Staged::new(&file, b"old").unwrap().commit().unwrap();
    // Two at once do not get into each other's way.
    let (one, other) = (Staged::new(&file, b"one").unwrap(), Staged::new(&file, b"other").unwrap());
    assert_eq!((entries(scratch.path()).len(), fs::read(&file).unwrap()), (3, b"old".to_vec()));
    drop(one);
    assert_eq!((entries(scratch.path()).len(), fs::read(&file).unwrap()), (2, b"old".to_vec()));
    other.commit().unwrap();
    assert_eq!(
        (entries(scratch.path()), fs::read(&file).unwrap()),
        (vec!["file".to_owned()], b"other".to_vec())
    );
}

#[test]
fn a_name_that_a_process_left_behind_is_not_written_to() {
    let scratch = Scratch::new("left");
    let file = scratch.path().join("file");
    let left = |number| scratch.path().join(format!(".file.{}.{number}.part", std::process::id()));
    // Other tests count on meanwhile.
    (0..200).for_each(|number| fs::write(left(number), "left").unwrap());
    Staged::new(&file, b"new").unwrap().commit().unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert!((0..200).all(|number| fs::read(left(number)).unwrap() == b"left"));
}

#[test]
fn a_failed_write_leaves_the_old_file_whole() {
    let scratch = Scratch::new("failed");
    // A name that is just short enough, so that the longer one beside it cannot be; unlike a lack of rights this stops
    // even an administrator.
    let file = scratch.path().join("x".repeat(250));
    fs::write(&file, "old").unwrap();
    let error = Staged::new(&file, b"new").unwrap_err();
    assert!(matches!(&error, Error::File { path, .. } if path == &file), "{error}");
    assert_eq!((entries(scratch.path()).len(), fs::read(&file).unwrap()), (1, b"old".to_vec()));
}

#[test]
fn a_write_that_fails_at_the_end_leaves_nothing_behind() {
    let scratch = Scratch::new("taken");
    let taken = scratch.path().join("taken");
    fs::create_dir_all(taken.join("inside")).unwrap();
    let error = Staged::new(&taken, b"new").unwrap().commit().unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: ", taken.display())), "{error}");
    assert!(taken.join("inside").is_dir());
    assert_eq!(entries(scratch.path()), ["taken"]);
}

#[test]
fn a_folder_below_a_file_cannot_be_written() {
    let (backend, scratch) = (backend(), Scratch::new("below"));
    let file = scratch.path().join("file");
    fs::write(&file, "whole").unwrap();
    let error = random_model(&backend, &small_config()).save(&*backend, &file.join("model")).unwrap_err();
    assert!(error.to_string().starts_with(&file.display().to_string()), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"whole");
}
