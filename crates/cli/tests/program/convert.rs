//! `attentive convert`.

use super::run;
use super::translate::{damage, make_model};
use std::path::PathBuf;

const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/marian");

/// A name for a folder that is not there yet, and is gone when the test ends.
struct Out(PathBuf);

impl Out {
    fn new(test: &str) -> Out {
        Out(std::env::temp_dir().join(format!("attentive-convert-{test}-{}", std::process::id())))
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn size(&self) -> u64 {
        std::fs::metadata(self.0.join("model.safetensors")).unwrap().len()
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_folder_is_written_in_each_precision_and_can_be_converted_again() {
    for precision in ["f32", "bf16", "int8"] {
        let (out, again) = (Out::new(precision), Out::new(&format!("{precision}-again")));
        let line = format!("convert --precision {precision} --model");
        let outcome = run(&format!("{line} {MODELS}/tied --out {}", out.name()));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
        outcome.says(&["tensors to", &out.name(), "MB"]);
        assert!(out.0.join("config.json").exists() && out.0.join("generation_config.json").exists());
        let report = run(&format!("{line} {} --out {} --json", out.name(), again.name())).json();
        assert_eq!((&report["precision"], &report["bytes"]), (&precision.into(), &again.size().into()));
        assert_eq!(report["bytes_before"], out.size());
        let same = |file: &str| {
            std::fs::read(out.0.join(file)).unwrap() == std::fs::read(again.0.join(file)).unwrap()
        };
        assert!(same("model.safetensors") && same("config.json"));
        assert_eq!(run(&format!("info {} --json", out.name())).json()["weights"], precision);
    }
}

#[test]
fn a_folder_that_cannot_translate_text_is_told_to_be_so() {
    let (bare, whole) = (Out::new("bare"), Out::new("whole"));
    let outcome = run(&format!("convert --model {MODELS}/tied --out {}", bare.name()));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.says(&["cannot read text", "source.spm, target.spm and vocab.json"]);
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");
    let outcome = run(&format!("convert --model {model} --out {}", whole.name()));
    assert_eq!((outcome.code, outcome.stderr.lines().count()), (Some(0), 1), "{}", outcome.stderr);
    let again = Out::new("bare-again");
    let report = run(&format!("convert --json --model {} --out {}", bare.name(), again.name())).json();
    assert!(report["no_tokenizer"].as_str().unwrap().contains("vocab.json"), "{report}");
}

#[test]
fn what_training_wrote_about_its_lines_stays() {
    let (trained, out) = (Out::new("trained"), Out::new("trained-converted"));
    run(&format!("convert --model {MODELS}/tied --out {}", trained.name()));
    let config = std::fs::read_to_string(trained.0.join("config.json")).unwrap();
    let key = "{\n  \"attentive_multi_sentence_share\": 0.25,";
    std::fs::write(trained.0.join("config.json"), config.replacen('{', key, 1)).unwrap();
    run(&format!("convert --model {} --out {} --precision int8", trained.name(), out.name()));
    let config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.0.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["attentive_multi_sentence_share"], 0.25);
}

#[test]
fn a_file_of_weights_that_ends_too_early_is_noticed_without_reading_it() {
    let out = Out::new("truncated");
    run(&format!("convert --model {MODELS}/tied --out {}", out.name()));
    let file = std::fs::File::options().write(true).open(out.0.join("model.safetensors")).unwrap();
    file.set_len(out.size() - 1).unwrap();
    run(&format!("info {}", out.name())).failed(&["model.safetensors", "not a complete safetensors file"]);
}

#[test]
fn the_layout_of_marian_is_taken_where_it_is_there_already() {
    let out = Out::new("layout");
    let outcome = run(&format!("convert --model {MODELS}/separate --out {} --layout marian", out.name()));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

#[test]
fn what_cannot_be_is_told_in_one_sentence() {
    let out = Out::new("refused");
    run(&format!("convert --model nothing --out {}", out.name())).failed(&["nothing/config.json"]);
    run(&format!("convert --model {MODELS} --out {}", out.name())).failed(&["config.json"]);
    assert!(!out.0.exists());
    run(&format!("convert --model {MODELS}/tied --out {MODELS}/half"))
        .failed(&["half", "already has a model"]);
}

#[test]
fn a_weight_that_is_no_number_is_not_converted_to_any_precision() {
    let (broken, out) = (Out::new("damaged"), Out::new("damaged-converted"));
    make_model(&broken.0);
    let tensor = "model.encoder.layers.0.fc1.weight";
    damage(&broken.0, tensor, 32);
    for options in ["", "--precision f32", "--precision bf16", "--precision int8"] {
        run(&format!("convert --model {} --out {} {options}", broken.name(), out.name())).failed(&[
            "model.safetensors",
            tensor,
            "row 1, ",
            "not finite",
        ]);
        assert!(!out.0.join("model.safetensors").exists(), "{options}");
    }
}

#[test]
fn wrong_usage_is_refused() {
    run("convert --model a").refused(&["--out"]);
    run("convert --out a").refused(&["--model"]);
    run("convert --model a --out b --precision int4").refused(&["f32", "bf16", "int8"]);
    run("convert --model a --out b --layout paper").refused(&["marian"]);
}

#[test]
fn every_example_of_its_help_is_a_valid_command() {
    let help = run("convert --help").stdout;
    let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  attentive ")).collect();
    assert_eq!(examples.len(), 8, "{help}");
    for example in examples {
        let line = example.split("  ").next().unwrap();
        assert_eq!(run(&format!("{line} --help")).code, Some(0), "{line}");
    }
}
