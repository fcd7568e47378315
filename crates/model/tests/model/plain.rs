//! Conversion of folders of every family that only changes the type of numbers: what stays is the same to the bit, and
//! `config.json` says what is there. `golden/saved.py` lets transformers read such folders.

use crate::common::{Scratch, backends, bits, golden};
use attentive_model::checkpoint::{Checkpoint, StoredType};
use attentive_model::families::convert;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn converted(scratch: &Scratch, folder: &Path) -> PathBuf {
    let backend = backends().last().expect("an instruction set");
    let out = scratch.path().join("out");
    convert(&backend, folder, &out, StoredType::F32)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    out
}

fn weights(folder: &Path) -> Checkpoint {
    Checkpoint::open(folder.join("model.safetensors")).unwrap_or_else(|error| panic!("{error}"))
}

fn field(folder: &Path, name: &str) -> Value {
    let config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    config[name].clone()
}

#[test]
fn numbers_and_names_of_todays_folders_stay() {
    for case in [
        "bert/sequence",
        "deberta/first",
        "roberta/token",
        "t5/later",
        "vit/deit",
        "detr/basic",
        "detr/bottleneck",
    ] {
        let (scratch, old) = (Scratch::new(&format!("plain-{}", case.replace('/', "-"))), golden(case));
        let new = converted(&scratch, &old);
        assert_eq!(field(&new, "architectures"), field(&old, "architectures"), "{case}");
        let (old, new) = (weights(&old), weights(&new));
        assert!(!new.names().is_empty());
        for name in new.names() {
            let [a, b] = [&old, &new].map(|file| file.get(&name).unwrap().expect(&name));
            assert_eq!((bits(&a.0), a.1), (bits(&b.0), b.1), "{case} {name}");
        }
        // Counters of batches say nothing that a model is computed with.
        let gone = |name: &&String| !new.names().contains(name) && !name.ends_with("num_batches_tracked");
        assert_eq!(old.names().iter().find(gone), None, "{case}");
    }
}

#[test]
fn a_folder_that_leaves_a_head_behind_does_not_name_it() {
    let changes = [
        ("bert/old", "architectures", json!(["BertForPreTraining"]), json!(["BertForMaskedLM"])),
        // The head for masked words is written under BERT's names.
        ("deberta/modern", "legacy", json!(false), json!(true)),
    ];
    for (case, name, before, after) in changes {
        let scratch = Scratch::new(&format!("plain-{}", case.replace('/', "-")));
        let (old, new) = (golden(case), converted(&scratch, &golden(case)));
        assert_eq!((field(&old, name), field(&new, name)), (before, after), "{case}");
    }
    assert!(
        weights(&golden("deberta/modern")).names().iter().any(|name| name.starts_with("lm_predictions."))
    );
}
