//! `attentive embed`, `fill-mask`, `classify` and `tag`.

use super::{Outcome, finish, program, run};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

/// A small model with a tokenizer, in a folder that is gone when the test ends.
pub struct Model(PathBuf);

impl Model {
    pub fn new(model: &str, test: &str) -> Model {
        let folder = std::env::temp_dir().join(format!("attentive-encoders-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(Path::new(GOLDEN).join("bert").join(model).join(file), folder.join(file)).unwrap();
        }
        let answers = std::fs::read(Path::new(GOLDEN).join("tasks.json")).unwrap();
        let answers: serde_json::Value = serde_json::from_slice(&answers).unwrap();
        let words: Vec<&str> =
            answers["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        std::fs::write(folder.join("vocab.txt"), words.join("\n") + "\n").unwrap();
        Model(folder)
    }

    pub fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

/// Runs a command on an input.
fn run_with(line: &str, input: &str) -> Outcome {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("attentive-encoders-{}-{number}.txt", std::process::id()));
    std::fs::write(&path, input).unwrap();
    let mut program = program(line);
    program.stdin(Stdio::from(std::fs::File::open(&path).unwrap()));
    let outcome = finish(program);
    let _ = std::fs::remove_file(path);
    outcome
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn lines_become_vectors_in_three_formats() {
    let model = Model::new("hidden", "formats");
    let line = format!("embed --model {}", model.name());
    let text = run_with(&line, "a dog\n\nthe cat runs.\r\n");
    assert_eq!((text.code, text.stderr.as_str(), text.stdout.lines().count()), (Some(0), "", 3));
    let json = run_with(&format!("{line} --json"), "a dog\n\nthe cat runs.\r\n");
    for (text, json) in text.stdout.lines().zip(json.stdout.lines()) {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let numbers: Vec<f64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
        let embedding: Vec<f64> = serde_json::from_value(json["embedding"].clone()).unwrap();
        assert_eq!(numbers, embedding);
        assert!((numbers.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-5);
    }
    std::fs::write(model.file("texts.txt"), "a dog\n\nthe cat runs.").unwrap();
    let npy = model.file("vectors.npy");
    let outcome = run(&format!("{line} --input {} --output {npy}", model.file("texts.txt")));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
    let bytes = std::fs::read(npy).unwrap();
    assert_eq!(bytes.len(), 128 + 3 * 32 * 4);
    let header = String::from_utf8_lossy(&bytes[10..128]).into_owned();
    assert!(header.contains("'shape': (3, 32)") && header.contains("'<f4'"), "{header}");
    let first = f32::from_le_bytes(bytes[128..132].try_into().unwrap());
    assert_eq!(first.to_string(), text.stdout.split(' ').next().unwrap());
}

#[test]
fn texts_are_ranked_by_similarity() {
    let model = Model::new("hidden", "similar");
    let line = format!("embed --model {} --similar the.cat --top 2", model.name());
    let outcome = run_with(&line, "a dog\nthe . cat\nthe.cat\n");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", outcome.stderr);
    assert!(lines.iter().all(|line| line.starts_with("1.0000")), "{lines:?}");
    run_with(&format!("{line} --json"), "a dog\n").json();
}

#[test]
fn masks_classes_and_tags_are_told() {
    let masked = Model::new("masked", "told-masked");
    let json =
        run_with(&format!("fill-mask --model {} --json --top 2", masked.name()), "a [MASK] runs\n").json();
    assert_eq!(json["masks"][0].as_array().unwrap().len(), 2);
    let wrong = run_with(&format!("fill-mask --model {}", masked.name()), "a [MASK]\na dog\n");
    assert_eq!(wrong.code, Some(1));
    wrong.says(&["text 2", "[MASK]"]);

    let classes = Model::new("sequence", "told-classes");
    let json = run_with(&format!("classify --model {} --json", classes.name()), "a dog\n").json();
    assert_eq!(json["scores"].as_array().unwrap().len(), 3);
    assert_eq!(json["label"], json["scores"][0]["label"]);
    let pair = run_with(&format!("classify --model {} --pairs", classes.name()), "a dog\ta cat\n");
    assert_eq!((pair.code, pair.stdout.lines().count()), (Some(0), 1));
    run_with(&format!("classify --model {} --pairs", classes.name()), "a dog\n").failed(&["text 1", "tab"]);

    let tags = Model::new("token", "told-tags");
    let bio = run_with(&format!("tag --model {} --bio", tags.name()), "A dog runs.\n");
    let words: Vec<&str> = bio.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, ["A", "dog", "runs", ".", ""]);
    let json = run_with(&format!("tag --model {} --json", tags.name()), "A dog runs.\n").json();
    let entity = &json["entities"][0];
    assert!(entity["start"].is_u64() && entity["end"].is_u64() && entity["word"].is_string(), "{json}");
}

#[test]
fn a_long_text_is_cut_with_a_word_or_refused() {
    let model = Model::new("hidden", "long");
    let long = "a dog ".repeat(20);
    let line = format!("embed --model {}", model.name());
    let cut = run_with(&line, &format!("a dog\n{long}\n"));
    assert_eq!((cut.code, cut.stdout.lines().count()), (Some(0), 2));
    assert!(cut.stderr.contains("1 text cut"), "{}", cut.stderr);
    let refused = run_with(&format!("{line} --too-long error"), &format!("a dog\n{long}\n"));
    // The first text may have been answered before the second came.
    assert_eq!(refused.code, Some(1));
    refused.says(&["text 2", "42 tokens", "at most 16"]);
}

#[test]
fn a_model_that_cannot_do_it_says_what_is_needed() {
    let model = Model::new("hidden", "cannot");
    run(&format!("classify --model {} text", model.name()))
        .failed(&["classify", "BertForSequenceClassification"]);
    run(&format!("embed --model {GOLDEN}/marian/tied text")).failed(&["config.json", "marian", "bert"]);
}

#[test]
fn info_tells_what_a_bert_is_for() {
    let model = Model::new("sequence", "info");
    let table = run(&format!("info {}", model.name()));
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    for word in ["BertForSequenceClassification", "attentive classify", "bad, fair, good"] {
        assert!(table.stdout.contains(word), "{}", table.stdout);
    }
    let json = run(&format!("info {} --json", model.name())).json();
    assert_eq!((json["command"].as_str(), json["layers"].as_u64()), (Some("classify"), Some(2)));
}

#[test]
fn an_argument_is_one_text_whatever_is_in_it() {
    let model = Model::new("sequence", "argument");
    let mut program = program(&format!("classify --model {} --json", model.name()));
    program.arg("a dog\nruns.").arg("the cat");
    let outcome = finish(program);
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(0), 2), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with(r#"{"text":"a dog\nruns.","#), "{}", outcome.stdout);
}
