//! Conversion of model folders: what changes is what was asked for, and what cannot be is refused with the
//! reason.

use crate::common::{
    Scratch, assert_near, backends, batch, bits, golden, in_parts, random, random_model, small_config,
};
use attentive_model::Builder;
use attentive_model::Converted;
use attentive_model::checkpoint::{Checkpoint, Stored, StoredType};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Conversion, Layout, Transformer, TransformerConfig, convert};
use attentive_model::layers::{Linear, NormPlacement, PositionKind};
use attentive_tensor::{Backend, Tape, quantise};
use half::bf16;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WEIGHTS: &str = "model.safetensors";
const FC1: &str = "model.encoder.layers.0.fc1.weight";

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

fn to(stored: StoredType) -> Conversion {
    Conversion { stored, layout: Layout::AsItIs }
}

const TO_MARIAN: Conversion = Conversion { stored: StoredType::F32, layout: Layout::Marian };

/// Converts into a new folder below that of the test.
fn converted(scratch: &Scratch, from: &Path, name: &str, conversion: Conversion) -> (PathBuf, Converted) {
    let out = scratch.path().join(name);
    let converted = convert(&backend(), from, &out, &conversion).unwrap_or_else(|error| panic!("{error}"));
    (out, converted)
}

/// The sentence that a conversion of a random model ends with.
fn refusal(
    test: &str,
    config: &TransformerConfig,
    conversion: Conversion,
    change: impl FnOnce(&Path),
) -> String {
    let (backend, scratch) = (backend(), Scratch::new(test));
    let from = scratch.path().join("from");
    random_model(&backend, config).save(&*backend, &from).unwrap();
    change(&from);
    let out = scratch.path().join("out");
    let error = convert(&backend, &from, &out, &conversion).unwrap_err().to_string();
    assert!(!out.exists(), "{error}, but something was written");
    error.replace(&format!("{}/", scratch.path().display()), "")
}

/// A folder with a model of these sizes and tokenizer files.
fn saved(scratch: &Scratch, config: &TransformerConfig) -> PathBuf {
    let (backend, from) = (backend(), scratch.path().join("from"));
    random_model(&backend, config).save(&*backend, &from).unwrap();
    fs::write(from.join("vocab.json"), "{}").unwrap();
    fs::write(from.join("generation_config.json"), "{\"num_beams\": 4}").unwrap();
    fs::write(from.join("train.log"), "not a part of the model").unwrap();
    from
}

fn config(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap()
}

fn stored(folder: &Path, name: &str) -> Stored {
    Checkpoint::open(folder.join(WEIGHTS)).unwrap().stored(name).unwrap().unwrap().0
}

fn numbers(folder: &Path, name: &str) -> Vec<f32> {
    stored(folder, name).into_f32()
}

fn logits(backend: &Arc<dyn Backend>, folder: &Path) -> Vec<f32> {
    let model = Transformer::load(backend, folder).unwrap_or_else(|error| panic!("{error}"));
    let batch = batch(&**backend, &[(5, 4), (12, 2)], model.config());
    let (sources, targets) = (&batch.source_sequences, &batch.target_sequences);
    let tape = Tape::inference(backend);
    let memory = model.encode(&tape, &batch.source, sources);
    let hidden = model.decode(&tape, &batch.input, targets, &memory, sources);
    backend.download_f32(model.logits(&tape, &hidden).value())
}

#[test]
fn in_f32_everything_stays_and_what_belongs_to_the_model_comes_along() {
    let scratch = Scratch::new("f32");
    let from = saved(&scratch, &small_config());
    let mut fields = config(&from);
    fields["transformers_version"] = json!("4.0");
    fields["torch_dtype"] = json!("float16");
    fs::write(from.join("config.json"), fields.to_string()).unwrap();
    let (out, converted) = converted(&scratch, &from, "out", to(StoredType::F32));
    let mut files: Vec<_> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, ["config.json", "generation_config.json", WEIGHTS, "vocab.json"]);
    assert_eq!(
        (config(&out)["transformers_version"].as_str(), &config(&out)["torch_dtype"]),
        (Some("4.0"), &Value::Null)
    );
    let [old, new] = [&from, &out].map(|folder| Checkpoint::open(folder.join(WEIGHTS)).unwrap());
    assert_eq!(old.names(), new.names());
    assert_eq!((converted.tensors, converted.bytes), (old.names().len(), converted.bytes_before));
    for name in old.names() {
        assert!(old.stored(&name).unwrap() == new.stored(&name).unwrap(), "{name}");
    }
}

#[test]
fn weights_in_several_files_become_one() {
    let scratch = Scratch::new("several");
    let (backend, from) = (backend(), saved(&scratch, &small_config()));
    let (before, bytes) = (logits(&backend, &from), fs::metadata(from.join(WEIGHTS)).unwrap().len());
    in_parts(&from, &*backend);
    assert_eq!(bits(&logits(&backend, &from)), bits(&before));
    let (out, converted) = converted(&scratch, &from, "out", to(StoredType::F32));
    assert_eq!(bits(&logits(&backend, &out)), bits(&before));
    // Three headers differ a little from one.
    assert!(bytes.abs_diff(converted.bytes_before) < bytes / 100, "{converted:?}, not {bytes}");
}

#[test]
fn in_bf16_matrices_are_rounded_and_the_rest_is_not() {
    let scratch = Scratch::new("bf16");
    let from = saved(&scratch, &small_config());
    let (out, converted) = converted(&scratch, &from, "out", to(StoredType::Bf16));
    let rounded: Vec<bf16> = numbers(&from, FC1).into_iter().map(bf16::from_f32).collect();
    assert_eq!(stored(&out, FC1), Stored::Bf16(rounded));
    for name in ["model.encoder.layers.0.fc1.bias", "model.decoder.layers.1.final_layer_norm.weight"] {
        assert_eq!(stored(&out, name), stored(&from, name));
    }
    assert_eq!((&config(&out)["dtype"], &config(&out)["model_type"]), (&json!("bfloat16"), &json!("marian")));
    assert!(converted.bytes * 100 < converted.bytes_before * 55, "{converted:?}");
    let backend = backend();
    assert_near("bf16", &logits(&backend, &out), &logits(&backend, &from), 1e-2);
}

#[test]
fn in_int8_every_row_has_the_scale_that_quantising_at_load_gives_it() {
    let scratch = Scratch::new("int8");
    let from = saved(&scratch, &small_config());
    let (out, converted) = converted(&scratch, &from, "out", to(StoredType::Int8));
    for (name, width) in [(FC1, 36), ("model.shared.weight", 36), ("model.decoder.layers.1.fc2.weight", 70)] {
        let Stored::Int8 { rows, scales } = stored(&out, name) else { panic!("{name} is not in int8") };
        let mut expected = vec![0; rows.len()];
        let old = numbers(&from, name);
        let each = old.chunks(width).zip(expected.chunks_mut(width));
        assert_eq!(scales, each.map(|(row, to)| quantise(row, to)).collect::<Vec<_>>(), "{name}");
        assert_eq!(rows, expected, "{name}");
    }
    assert_eq!(
        stored(&out, "model.encoder.layers.0.fc1.bias"),
        stored(&from, "model.encoder.layers.0.fc1.bias")
    );
    // Programs that do not know the method refuse it.
    assert_eq!(config(&out)["quantization_config"], json!({"quant_method": "attentive_int8", "version": 1}));
    assert!(converted.bytes * 100 < converted.bytes_before * 40, "{converted:?}");
    let backend = backend();
    assert_near("int8", &logits(&backend, &out), &logits(&backend, &from), 3e-2);
}

/// The numbers of a dense layer in int8, quantised at load or before.
#[test]
fn a_layer_from_an_int8_file_computes_the_same_bits_as_one_that_is_quantised_at_load() {
    let scratch = Scratch::new("same-bits");
    let from = saved(&scratch, &small_config());
    let (out, _) = converted(&scratch, &from, "out", to(StoredType::Int8));
    for backend in backends() {
        let tape = Tape::inference(&backend);
        let x = random(&tape, 7, 5, 36);
        let [at_load, before] = [&from, &out].map(|folder| {
            let checkpoint = Checkpoint::open(folder.join(WEIGHTS)).unwrap();
            let builder = Builder::checkpoint(&backend, &checkpoint).in_int8();
            let layer = Linear::new(&builder.at("model.encoder.layers.0.fc1"), 36, 70).unwrap();
            assert_eq!(builder.parameters().len(), 2);
            bits(&backend.download_f32(layer.forward(&tape, &x).value()))
        });
        assert_eq!(at_load, before);
    }
}

#[test]
fn int8_stays_as_it_is_and_becomes_f32_again() {
    let scratch = Scratch::new("again");
    let from = saved(&scratch, &small_config());
    let (int8, _) = converted(&scratch, &from, "int8", to(StoredType::Int8));
    let (again, _) = converted(&scratch, &int8, "again", to(StoredType::Int8));
    assert!(fs::read(int8.join(WEIGHTS)).unwrap() == fs::read(again.join(WEIGHTS)).unwrap());
    let (f32, _) = converted(&scratch, &int8, "f32", to(StoredType::F32));
    assert!(matches!(stored(&f32, FC1), Stored::F32(_)));
    assert_eq!(config(&f32).get("quantization_config"), None);
    let backend = backend();
    assert_eq!(bits(&logits(&backend, &f32)), bits(&logits(&backend, &int8)));
}

#[test]
fn interleaved_models_become_marians_by_another_order_of_their_width() {
    let base = TransformerConfig { positions: PositionKind::Interleaved, ..small_config() };
    let separate = TransformerConfig { shared_embeddings: false, tied_output: false, ..base.clone() };
    for (test, before) in [("tied", base), ("untied", separate)] {
        let scratch = Scratch::new(&format!("layout-{test}"));
        let from = saved(&scratch, &before);
        let (out, _) = converted(&scratch, &from, "out", TO_MARIAN);
        let fields = config(&out);
        assert_eq!(
            (&fields["model_type"], &fields["architectures"]),
            (&json!("marian"), &json!(["MarianMTModel"]))
        );
        assert_eq!(fields.get("positions"), None);
        let after = TransformerConfig::load(&out).unwrap();
        assert_eq!(after, TransformerConfig { positions: PositionKind::Halves, ..before });
        for backend in backends() {
            assert_near(test, &logits(&backend, &out), &logits(&backend, &from), 1e-5);
        }
        // In int8 rows keep their scales whether they are ordered before or after.
        let (int8, _) = converted(&scratch, &from, "int8", to(StoredType::Int8));
        let [direct, by_way] = [(&from, "direct"), (&int8, "by-way")].map(|(from, name)| {
            converted(&scratch, from, name, Conversion { stored: StoredType::Int8, ..TO_MARIAN }).0
        });
        assert!(fs::read(direct.join(WEIGHTS)).unwrap() == fs::read(by_way.join(WEIGHTS)).unwrap());
    }
}

#[test]
fn what_marian_cannot_express_is_refused_with_the_reason() {
    let base = || TransformerConfig { positions: PositionKind::Interleaved, ..small_config() };
    for (config, reason) in [
        (
            TransformerConfig { norm: NormPlacement::Pre, ..base() },
            "it has pre-norm, and Marian has post-norm",
        ),
        (
            TransformerConfig { positions: PositionKind::Learned, ..base() },
            "its positional encodings are learned, and Marian's are sinusoids",
        ),
        (
            TransformerConfig { d_k: Some(5), ..base() },
            "the width of its heads is not d_model / h, as Marian needs",
        ),
        (
            TransformerConfig { d_emb: Some(20), ..base() },
            "the width of its embeddings is not d_model, as Marian needs",
        ),
        (TransformerConfig { pad: None, ..base() }, "it has no padding token, which Marian needs"),
    ] {
        let sentence = refusal("not-marian", &config, TO_MARIAN, |_| ());
        assert_eq!(sentence, format!("layout: the model cannot have the Marian layout: {reason}"));
    }
}

#[test]
fn a_folder_that_cannot_be_converted_is_told_and_nothing_is_written() {
    let plain = small_config();
    let shape = refusal("shape", &plain, to(StoredType::Bf16), |from| {
        let text = fs::read_to_string(from.join("config.json"))
            .unwrap()
            .replace("\"d_model\": 36", "\"d_model\": 39");
        fs::write(from.join("config.json"), text).unwrap();
    });
    assert_eq!(
        shape,
        "from/model.safetensors: `model.shared.weight` has shape [101, 36], but the model needs [101, 39]"
    );
    let infinite = refusal("infinite", &plain, to(StoredType::Int8), |from| {
        let path = from.join(WEIGHTS);
        let mut bytes = fs::read(&path).unwrap();
        // The first tensor begins behind the header.
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        bytes[8 + header..][..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
        fs::write(&path, bytes).unwrap();
    });
    assert_eq!(
        infinite,
        "from/model.safetensors: `model.shared.weight` has a number in row 0, counted from 0, that is not finite (NaN or \
         infinity): the weights are damaged"
    );

    let (scratch, backend) = (Scratch::new("there"), backend());
    let from = saved(&scratch, &plain);
    let error = convert(&backend, &from, &from, &to(StoredType::Bf16)).unwrap_err().to_string();
    let sentence = "the folder already has a model: choose another folder, or remove the model first";
    assert_eq!(error, format!("{}: {sentence}", from.display()));
}

#[test]
fn files_of_pytorch_become_safetensors() {
    let (scratch, backend) = (Scratch::new("torch"), backend());
    for case in ["tied", "untied"] {
        let from = golden("marian").join(case);
        let (out, _) = converted(&scratch, &from, case, to(StoredType::F32));
        assert_eq!(bits(&logits(&backend, &out)), bits(&logits(&backend, &from)));
        assert!(out.join("generation_config.json").exists() && !out.join("pytorch_model.bin").exists());
    }
}
