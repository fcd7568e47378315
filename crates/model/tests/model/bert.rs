//! BERT folders as transformers writes them, held against its answers (`golden/bert.py`).

use crate::common::bert::{LIMIT, assert_gradients, load};
use crate::common::{
    Golden, Scratch, adam_rule, assert_near, backends, backends_in, bits, golden, in_parts, shared, weights,
};
use attentive_model::Builder;
use attentive_model::checkpoint::{Checkpoint, stage_tensors};
use attentive_model::families::Family;
use attentive_model::families::bert::{Batch, Bert, BertConfig, Task};
use attentive_model::families::transformer::Transformer;
use attentive_tensor::{Adam, Backend, Gradients, Precision, Tape};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TASKS: [(&str, Task); 4] = [
    ("hidden", Task::Hidden),
    ("masked", Task::MaskedLm),
    ("sequence", Task::SequenceClassification),
    ("token", Task::TokenClassification),
];

fn folder(case: &str) -> PathBuf {
    golden("bert").join(case)
}

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

/// The texts of the golden file.
fn batch(backend: &dyn Backend, answers: &Golden) -> Batch {
    let sentences = |name| answers.sentences(name, "lengths");
    let texts: Vec<_> = sentences("ids").into_iter().zip(sentences("types")).collect();
    Batch::with_types(backend, &texts)
}

#[test]
fn hidden_states_logits_and_attention_are_those_of_transformers() {
    let answers = Golden::open("bert");
    for backend in backends() {
        let batch = batch(&*backend, &answers);
        for (case, task) in TASKS {
            let model = load(&backend, &folder(case), task);
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
            let of_third = |layer: &attentive_tensor::AttentionWeights| {
                (0..4)
                    .flat_map(|head| backend.download_f32(&layer.matrix(&*backend, 2, head)))
                    .collect::<Vec<_>>()
            };
            near("attention", &watched.iter().flat_map(of_third).collect::<Vec<_>>());
            let hidden = model.encode(&tape, &batch);
            assert_eq!(
                bits(&backend.download_f32(hidden.value())),
                bits(&backend.download_f32(states[2].value()))
            );
            match task {
                Task::Hidden => {
                    let pooled = model.pooled(&tape, &hidden, &batch.sequences).expect("a pooler");
                    near("pooled", &backend.download_f32(pooled.value()));
                }
                _ => {
                    let logits = model.logits(&tape, &hidden, &batch.sequences).unwrap();
                    near("logits", &backend.download_f32(logits.value()));
                    let loss = model.loss(&tape, &batch, &answers.ids(&format!("{case}.labels"))).unwrap();
                    near("loss", &backend.download_f32(loss.value()));
                }
            }
        }
    }
}

#[test]
fn gradients_of_one_step_are_those_of_transformers() {
    let answers = Golden::open("bert");
    for backend in backends() {
        let batch = batch(&*backend, &answers);
        for (case, task) in &TASKS[1..] {
            assert_gradients(&backend, &load(&backend, &folder(case), *task), &batch, &answers, case);
        }
    }
}

#[test]
fn in_bf16_answers_are_near() {
    let answers = Golden::open("bert");
    for backend in backends_in(Precision::Bf16) {
        let batch = batch(&*backend, &answers);
        for (case, task) in &TASKS[1..] {
            let model = load(&backend, &folder(case), *task);
            let tape = Tape::inference(&backend);
            let hidden = model.encode(&tape, &batch);
            let logits = model.logits(&tape, &hidden, &batch.sequences).unwrap();
            let what = format!("{case}.logits");
            assert_near(&what, &backend.download_f32(logits.value()), &answers.numbers(&what), 5e-2);
            // The whole backward pass runs in this type.
            let tape = Tape::training(&backend, 0);
            let loss = model.loss(&tape, &batch, &answers.ids(&format!("{case}.labels"))).unwrap();
            tape.backward(&loss, &mut Gradients::default());
        }
    }
}

#[test]
fn a_folder_with_old_names_answers_as_the_new_one() {
    let (backend, answers) = (backend(), Golden::open("bert"));
    let batch = batch(&*backend, &answers);
    let logits = |case| {
        let model = load(&backend, &folder(case), Task::MaskedLm);
        let tape = Tape::inference(&backend);
        let hidden = model.encode(&tape, &batch);
        bits(&backend.download_f32(model.logits(&tape, &hidden, &batch.sequences).unwrap().value()))
    };
    assert_eq!(logits("old"), logits("masked"));
    let model = load(&backend, &folder("old"), Task::MaskedLm);
    assert_eq!(
        model.unused().ignored,
        [
            "bert.embeddings.position_ids",
            "bert.pooler.dense.bias",
            "bert.pooler.dense.weight",
            "cls.seq_relationship.bias",
            "cls.seq_relationship.weight",
        ]
    );
    assert!(model.unused().unknown.is_empty(), "{:?}", model.unused());
    // Its pooler was made anew, so that only what is behind it differs.
    let [old, new] = ["old", "masked"].map(|case| {
        let model = load(&backend, &folder(case), Task::Hidden);
        let tape = Tape::inference(&backend);
        bits(&backend.download_f32(model.encode(&tape, &batch).value()))
    });
    assert_eq!(old, new);
}

#[test]
fn a_masked_model_gives_the_logits_of_masks_alone() {
    let (backend, answers) = (backend(), Golden::open("bert"));
    let batch = batch(&*backend, &answers);
    let model = load(&backend, &folder("masked"), Task::MaskedLm);
    let tape = Tape::inference(&backend);
    let hidden = model.encode(&tape, &batch);
    let all = backend.download_f32(model.logits(&tape, &hidden, &batch.sequences).unwrap().value());
    let some = backend.download_f32(model.logits_of_rows(&tape, &hidden, &[9, 3]).unwrap().value());
    assert_eq!(bits(&some), bits(&[&all[900..1000], &all[300..400]].concat()));
}

#[test]
fn what_is_saved_comes_back_to_the_same_bits_under_the_names_of_transformers() {
    let backend = backend();
    for (case, task) in TASKS {
        let (model, scratch) = (load(&backend, &folder(case), task), Scratch::new(&format!("bert-{case}")));
        model.save(&*backend, scratch.path()).unwrap();
        let again = load(&backend, scratch.path(), Task::of(scratch.path()).unwrap());
        assert_eq!((again.config(), again.task()), (model.config(), task));
        assert!(weights(&*backend, again.parameters()) == weights(&*backend, model.parameters()), "{case}");
        let [ours, theirs] = [scratch.path(), &folder(case)]
            .map(|folder| Checkpoint::open(folder.join("model.safetensors")).unwrap());
        let of_theirs: Vec<String> =
            theirs.names().into_iter().filter(|name| !name.starts_with("cls.predictions.decoder")).collect();
        assert_eq!(ours.names(), of_theirs, "{case}");
        for name in ours.names() {
            assert!(ours.get(&name).unwrap() == theirs.get(&name).unwrap(), "{case}: {name}");
        }
        let config = |folder: &Path| -> Value {
            serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap()
        };
        let (ours, theirs) = (config(scratch.path()), config(&folder(case)));
        for (field, value) in ours.as_object().unwrap() {
            let same = theirs.get(field).is_none_or(|theirs| match (theirs.as_f64(), value.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs(),
                _ => theirs == value,
            });
            assert!(same, "{case}, {field}: {value}, not {:?}", theirs.get(field));
        }
    }
}

/// Copies a golden folder to change something in it.
fn copy(case: &str, test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    for file in fs::read_dir(folder(case)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), scratch.path().join(file.file_name())).unwrap();
    }
    scratch
}

fn index_path(scratch: &Scratch) -> PathBuf {
    scratch.path().join("model.safetensors.index.json")
}

fn write_index(scratch: &Scratch, index: &Value) {
    fs::write(index_path(scratch), index.to_string()).unwrap();
}

#[test]
fn weights_in_several_files_are_those_of_one() {
    let (backend, scratch) = (backend(), copy("sequence", "bert-parts"));
    let whole = load(&backend, scratch.path(), Task::SequenceClassification);
    in_parts(scratch.path(), &*backend);
    let parts = load(&backend, scratch.path(), Task::SequenceClassification);
    assert!(weights(&*backend, parts.parameters()) == weights(&*backend, whole.parameters()));
}

/// The sentence that comes of loading a folder, without its path.
fn sentence(scratch: &Scratch, task: Task) -> String {
    let error = Bert::load(&backend(), scratch.path(), task).unwrap_err().to_string();
    let folder = format!("{}/", scratch.path().display());
    error.strip_prefix(&folder).unwrap_or_else(|| panic!("no path: {error}")).to_owned()
}

#[test]
fn a_bad_index_is_told_in_one_sentence() {
    let (backend, scratch) = (backend(), copy("sequence", "bert-index"));
    in_parts(scratch.path(), &*backend);
    let good: Value = serde_json::from_slice(&fs::read(index_path(&scratch)).unwrap()).unwrap();
    let told = |change: &dyn Fn(&mut Value)| {
        let mut index = good.clone();
        change(&mut index);
        write_index(&scratch, &index);
        sentence(&scratch, Task::SequenceClassification)
    };
    for elsewhere in ["../model.safetensors", "/etc/passwd", "a/b", ".."] {
        assert_eq!(
            told(&|index| index["weight_map"]["classifier.weight"] = json!(elsewhere)),
            format!(
                "model.safetensors.index.json: `classifier.weight` is said to be in `{elsewhere}`, which is not a file of \
                 this folder"
            )
        );
    }
    assert_eq!(
        told(&|index| index["weight_map"]["more"] = json!("model-00001-of-00003.safetensors")),
        "model.safetensors.index.json: `more` is not in `model-00001-of-00003.safetensors`, where it should be"
    );
    assert_eq!(
        told(&|index| *index = json!({"metadata": {}})),
        "model.safetensors.index.json: missing field `weight_map` at line 1 column 15"
    );
    fs::remove_file(scratch.path().join("model-00002-of-00003.safetensors")).unwrap();
    let gone = told(&|_| {});
    assert!(
        gone.starts_with("model.safetensors.index.json: the file `model-00002-of-00003.safetensors` with ")
            && gone.ends_with(" of the tensors is missing from the folder"),
        "{gone}"
    );
}

#[test]
fn a_weight_that_the_task_needs_is_refused_by_its_name_in_the_file() {
    let scratch = copy("hidden", "bert-missing");
    assert_eq!(
        sentence(&scratch, Task::SequenceClassification),
        "model.safetensors: the tensor `classifier.weight` is missing"
    );
    assert_eq!(
        sentence(&scratch, Task::MaskedLm),
        "model.safetensors: the tensor `cls.predictions.transform.dense.weight` is missing"
    );
    let path = scratch.path().join("config.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3")).unwrap();
    assert_eq!(
        sentence(&scratch, Task::Hidden),
        "model.safetensors: the tensor `encoder.layer.2.attention.self.query.weight` is missing"
    );
    fs::write(&path, text.replace("\"intermediate_size\": 40", "\"intermediate_size\": 41")).unwrap();
    assert_eq!(
        sentence(&scratch, Task::Hidden),
        "model.safetensors: `encoder.layer.0.intermediate.dense.weight` has shape [40, 32], but the model needs [41, 32]"
    );
}

#[test]
fn what_a_task_does_not_need_is_listed_and_what_nobody_knows_is_told_apart() {
    let (backend, scratch) = (backend(), copy("sequence", "bert-unused"));
    let model = load(&backend, scratch.path(), Task::TokenClassification);
    assert_eq!(model.unused().ignored, ["bert.pooler.dense.bias", "bert.pooler.dense.weight"]);
    let path = scratch.path().join("config.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1")).unwrap();
    let shallow = load(&backend, scratch.path(), Task::Hidden);
    assert_eq!(shallow.unused().ignored, ["classifier.bias", "classifier.weight"]);
    assert_eq!(shallow.unused().unknown.len(), 16);
    assert!(shallow.unused().unknown.iter().all(|name| name.starts_with("bert.encoder.layer.1.")));
}

#[test]
fn a_table_that_contradicts_the_tied_one_is_named() {
    let (backend, scratch) = (backend(), copy("masked", "bert-tied"));
    let path = scratch.path().join("model.safetensors");
    let file = Checkpoint::open(&path).unwrap();
    let mut tensors: Vec<_> =
        file.names().into_iter().map(|name| (file.get(&name).unwrap().unwrap(), name)).collect();
    tensors.push(((vec![1.0; 3200], [100, 32].into()), "cls.predictions.decoder.weight".to_owned()));
    let tensors: Vec<_> = tensors
        .into_iter()
        .map(|((numbers, shape), name)| (name, backend.upload_f32(&numbers, shape)))
        .collect();
    stage_tensors(&path, &*backend, &tensors, None).unwrap().commit().unwrap();
    assert_eq!(
        sentence(&scratch, Task::MaskedLm),
        "model.safetensors: `cls.predictions.decoder.weight` differs from `bert.embeddings.word_embeddings.weight`, but the \
         head of this model shares the table of its embeddings"
    );
    // Nobody else looks at it.
    assert!(load(&backend, scratch.path(), Task::Hidden).unused().unknown.is_empty());
}

#[test]
fn a_broken_config_is_told_with_its_file_and_field() {
    let scratch = copy("sequence", "bert-config");
    let path = scratch.path().join("config.json");
    let good: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (field, value, expected) in [
        ("hidden_size", json!(0), "hidden_size: must be at least 1, not 0"),
        ("hidden_size", json!(1u64 << 40), "hidden_size: must be at most 262144, not 1099511627776"),
        ("num_hidden_layers", json!(5000), "num_hidden_layers: must be at most 1024, not 5000"),
        (
            "num_attention_heads",
            json!(5),
            "num_attention_heads: d_model 32 is not divisible by 5 heads: choose another number of heads, or set d_k and d_v",
        ),
        ("hidden_dropout_prob", json!(1.0), "hidden_dropout_prob: must be from 0 to below 1, not 1"),
        ("layer_norm_eps", json!(-1.0), "layer_norm_eps: must be at least 0, not -1"),
        ("pad_token_id", json!(100), "pad_token_id: token 100 must be below vocab_size 100"),
        (
            "position_embedding_type",
            json!("relative_key"),
            "position_embedding_type: `relative_key` is not supported, only absolute",
        ),
        ("is_decoder", json!(true), "is_decoder: true is not supported for this model type, only false"),
        (
            "id2label",
            json!({"0": "a", "2": "b"}),
            "id2label: must have a name for each class, counted from 0 without gaps",
        ),
        ("id2label", json!({}), "id2label: must be at least 1, not 0"),
        (
            "model_type",
            json!("llama"),
            "the model type `llama` is not supported, only `marian`, `attentive-transformer`, `bart`, `mbart`, `m2m_100`, `bert`, `roberta`, \
             `xlm-roberta`, `deberta`, `deberta-v2`, `gpt2`, `openai-gpt`, `gpt_neo`, \
             `t5`, `mt5`, `detr`, `attentive-detr`, `vit`, `deit`, `dinov2` and `dinov2_with_registers`",
        ),
        (
            "model_type",
            json!("marian"),
            "this is a model of type `marian`, but `bert`, `roberta`, `xlm-roberta`, `deberta` or `deberta-v2` is needed here",
        ),
    ] {
        let mut config = good.clone();
        config[field] = value;
        fs::write(&path, config.to_string()).unwrap();
        assert_eq!(sentence(&scratch, Task::SequenceClassification), format!("config.json: {expected}"));
    }
    let mut config = good.clone();
    config["architectures"] = json!(["BertForMultipleChoice"]);
    fs::write(&path, config.to_string()).unwrap();
    let error = Task::of(scratch.path()).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "config.json: architectures: `BertForMultipleChoice` is not supported; supported are BertModel, \
             BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification, BertForQuestionAnswering"
        ),
        "{error}"
    );
}

#[test]
fn the_registry_tells_families_apart() {
    assert_eq!(Family::of(&folder("masked")).unwrap(), Family::Bert);
    assert_eq!(Family::of(&golden("marian/tied")).unwrap(), Family::Transformer);
    let error = Transformer::load(&backend(), &folder("masked")).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "config.json: this is a model of type `bert`, but `marian`, `attentive-transformer`, `bart`, `mbart` or `m2m_100` is needed here"
        ),
        "{error}"
    );
    let scratch = copy("masked", "bert-registry");
    let path = scratch.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config.as_object_mut().unwrap().remove("model_type");
    fs::write(&path, config.to_string()).unwrap();
    assert_eq!(Family::of(scratch.path()).unwrap(), Family::Bert);
}

#[test]
fn a_new_classifier_is_drawn_around_zero_and_learns_while_the_rest_comes_from_the_folder() {
    let backend = backend();
    let labels: Vec<String> = ["no", "yes", "perhaps", "often"].map(str::to_owned).to_vec();
    let load = |case, task| {
        let config = BertConfig { labels: labels.clone(), ..BertConfig::load(&folder(case)).unwrap() };
        Bert::load_to_learn(&backend, &folder(case), &config, task, 3).unwrap()
    };
    let model = load("masked", Task::SequenceClassification);
    assert_eq!(model.config().labels, labels);
    let find = |name: &str| {
        let found = model.parameters().iter().find(|p| p.name() == name).expect(name);
        backend.download_f32(&found.value())
    };
    assert!(find("classifier.bias").iter().chain(&find("pooler.bias")).all(|x| *x == 0.0));
    for name in ["classifier.weight", "pooler.weight"] {
        let numbers = find(name);
        let deviation = (numbers.iter().map(|x| x * x).sum::<f32>() / numbers.len() as f32).sqrt();
        assert!((0.015..0.025).contains(&deviation), "{name}: {deviation}");
    }
    let theirs = Bert::load(&backend, &folder("masked"), Task::Hidden).unwrap();
    let table = backend.download_f32(&theirs.parameters()[0].value());
    assert_eq!(bits(&find("embed_tokens.weight")), bits(&table));

    for (case, task) in [
        ("hidden", Task::SequenceClassification),
        ("hidden", Task::TokenClassification),
        ("hidden", Task::MaskedLm),
    ] {
        let model = load(case, task);
        let texts: [&[i32]; 4] = [&[5, 6, 7], &[8, 9], &[10, 11, 12, 13], &[14]];
        let batch = Batch::new(&*backend, &texts);
        let each = if task == Task::SequenceClassification { 4 } else { 10 };
        let wanted: Vec<i32> = (0..each).map(|i| if i == 2 { -1 } else { i % 4 }).collect();
        let mut adam = Adam::new(&*backend, model.parameters());
        let mut losses = Vec::new();
        for step in 0..60 {
            let tape = Tape::training(&backend, step);
            let loss = model.loss(&tape, &batch, &wanted).unwrap();
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            adam.step(&*backend, &adam_rule(1e-2), Some(1.0), &gradients);
            losses.extend(backend.download_f32(loss.value()));
        }
        assert!(losses[59] < 0.6 * losses[0], "{task:?}: {losses:?}");
    }
}

#[test]
fn bert_base_has_110_million_parameters() {
    let config = BertConfig::base(30_522);
    let model = Bert::new(&Builder::shapes(&backend()), &config, Task::Hidden).unwrap();
    assert_eq!(model.parameter_count(), 109_482_240);
}

#[test]
fn parts_of_a_batch_add_up_to_its_loss() {
    let (backend, answers) = (backend(), Golden::open("bert"));
    let texts: Vec<_> =
        answers.sentences("ids", "lengths").into_iter().zip(answers.sentences("types", "lengths")).collect();
    let labels = answers.sentences("masked.labels", "lengths");
    let model = load(&backend, &folder("masked"), Task::MaskedLm);
    let loss = |range: std::ops::Range<usize>, of| {
        let batch = Batch::with_types(&*backend, &texts[range.clone()]);
        let tape = Tape::inference(&backend);
        let loss = model.partial_loss(&tape, &batch, &labels[range].concat(), 0.0, of).unwrap();
        backend.download_f32(loss.value())[0]
    };
    let of = labels.iter().flatten().filter(|label| **label >= 0).count();
    let (whole, parts) = (loss(0..4, of), loss(0..2, of) + loss(2..4, of));
    assert!((whole - parts).abs() < 1e-5, "{whole} and {parts}");
    // No labels at all are no reason to fail.
    let none = model.loss(&Tape::training(&backend, 0), &Batch::with_types(&*backend, &texts[..1]), &[-1; 7]);
    assert_eq!(backend.download_f32(none.unwrap().value()), [0.0]);
}

#[test]
fn a_text_gives_the_same_bits_alone_and_in_a_batch() {
    for backend in [Precision::F32, Precision::Bf16].into_iter().flat_map(backends_in) {
        let model = load(&backend, &folder("hidden"), Task::Hidden);
        let texts: [&[i32]; 3] = [&[5, 6, 7, 8, 9], &[50], &[80, 81, 82, 83, 84, 85, 86, 87]];
        let tape = Tape::inference(&backend);
        let vectors = |texts: &[&[i32]]| {
            let batch = Batch::new(&*backend, texts);
            let hidden = model.encode(&tape, &batch);
            let mean = model.mean(&tape, &hidden, &batch.sequences);
            let pooled = model.pooled(&tape, &hidden, &batch.sequences).expect("a pooler");
            [mean, pooled].map(|x| bits(&backend.download_f32(x.value())))
        };
        let together = vectors(&texts);
        for (i, text) in texts.iter().enumerate() {
            let alone = vectors(&[text]);
            for (alone, together) in alone.iter().zip(&together) {
                assert_eq!(alone[..], together[i * 32..][..32], "{}", backend.name());
            }
        }
    }
}

#[test]
fn packed_weights_give_the_same_bits() {
    for backend in backends() {
        let answers = Golden::open("bert");
        let batch = batch(&*backend, &answers);
        for (case, task) in &TASKS[1..] {
            let logits = |model: Bert| {
                let tape = Tape::inference(&backend);
                let hidden = model.encode(&tape, &batch);
                bits(&backend.download_f32(model.logits(&tape, &hidden, &batch.sequences).unwrap().value()))
            };
            let packed = Bert::load_packed(&backend, &folder(case), *task).unwrap();
            assert_eq!(logits(packed), logits(load(&backend, &folder(case), *task)), "{case}");
        }
    }
}

#[test]
fn minilm_has_the_vectors_of_transformers() {
    let Some(folder) = shared("reference/minilm") else { return };
    let answers = Golden::open("bert");
    let texts = answers.sentences("minilm.ids", "minilm.lengths");
    let expected = answers.numbers("minilm.vectors");
    for backend in backends() {
        let model = load(&backend, &folder, Task::Hidden);
        assert_eq!(model.unused().unknown, Vec::<String>::new());
        let tape = Tape::inference(&backend);
        let batch = Batch::new(&*backend, &texts);
        let hidden = model.encode(&tape, &batch);
        let mean = backend.download_f32(model.mean(&tape, &hidden, &batch.sequences).value());
        let mut worst = 0f32;
        for (found, expected) in mean.chunks(384).zip(expected.chunks(384)) {
            let norm = found.iter().map(|x| x * x).sum::<f32>().sqrt();
            worst = found.iter().zip(expected).map(|(a, b)| (a / norm - b).abs()).fold(worst, f32::max);
        }
        println!("{worst:.1e} {}", backend.name());
        assert!(worst < 1e-5, "a number of a vector is off by {worst}");
    }
}
