//! `attentive info`: what it says of folders that it did not train.

use super::run;
use std::fs;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");

#[test]
fn the_folder_may_be_named_as_other_commands_take_it() {
    let plain = run(&format!("info {MODEL}"));
    assert_eq!((plain.code, plain.stderr.as_str()), (Some(0), ""));
    assert_eq!(run(&format!("info --model {MODEL}")).stdout, plain.stdout);
    run("info").refused(&["DIR"]);
    run("info a --model b").refused(&["--model"]);
}

#[test]
fn weights_that_contradict_the_configuration_are_refused_with_both_shapes() {
    let folder = std::env::temp_dir().join(format!("attentive-info-shapes-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::copy(format!("{MODEL}/model.safetensors"), folder.join("model.safetensors")).unwrap();
    let mut config: serde_json::Value =
        serde_json::from_slice(&fs::read(format!("{MODEL}/config.json")).unwrap()).unwrap();
    let (rows, width) = (config["vocab_size"].clone(), config["d_model"].as_u64().unwrap());
    config["d_model"] = (2 * width).into();
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let outcome = run(&format!("info {}", folder.display()));
    fs::remove_dir_all(&folder).unwrap();
    let shapes = format!("has shape [{rows}, {width}], but the model needs [{rows}, {}]", 2 * width);
    outcome.failed(&["model.safetensors", &shapes]);
}

#[test]
fn languages_and_search_are_told() {
    let table = run(&format!("info {MODEL}")).stdout;
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("languages").ends_with("into German (de), French (fr)"), "{table}");
    assert!(row("search").contains("greedy search, length penalty 1, at most 50 tokens more"), "{table}");
    let report = run(&format!("info {MODEL} --json")).json();
    assert_eq!(report["languages"], serde_json::json!({"source": null, "targets": ["de", "fr"]}));

    let folder = std::env::temp_dir().join(format!("attentive-info-{}", std::process::id()));
    let named = |name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        for file in ["config.json", "model.safetensors"] {
            fs::copy(format!("{MODEL}/{file}"), path.join(file)).unwrap();
        }
        run(&format!("info {}", path.display())).stdout
    };
    let (pair, other) = (named("opus-mt-en-de"), named("my-run"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(pair.contains("from English (en) into German (de)"), "{pair}");
    assert!(other.contains("not known"), "{other}");
    assert!(other.contains("beam 4, length penalty 1") && other.contains("none in the folder"), "{other}");
}
