//! Small BERT models with the answers of transformers: `golden/bert` and `golden/tasks.json`.

use super::Running;
use attentive_serve::{ModelPlace, Settings};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

/// What transformers answers.
pub fn answers() -> Value {
    serde_json::from_slice(&std::fs::read(golden().join("tasks.json")).unwrap()).unwrap()
}

/// A model of `golden/bert` with a tokenizer, in a folder that is gone when the test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(model: &str) -> Folder {
        Folder::of("bert", model)
    }

    /// A model of the same words of another family in `golden`.
    pub fn of(family: &str, model: &str) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("attentive-http-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(golden().join(family).join(model).join(file), folder.join(file)).unwrap();
        }
        let words: Vec<String> = serde_json::from_value(answers()["words"].clone()).unwrap();
        std::fs::write(folder.join("vocab.txt"), words.join("\n") + "\n").unwrap();
        Folder(folder)
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn named(&self, name: &str) -> ModelPlace {
        ModelPlace::named(name, &self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server with an embedding model `words` and a classifier `moods`, and without any other if `translates` is false.
pub fn start(settings: Settings, translates: bool) -> Running {
    let (words, moods) = (Folder::new("hidden"), Folder::new("sequence"));
    let mut models = vec![words.named("words"), moods.named("moods")];
    if translates {
        models.insert(0, ModelPlace::numbers());
    }
    // The folders are not needed any more when the models have been read.
    Running::start_with(settings, models)
}

/// Checks numbers against those of transformers.
#[track_caller]
pub fn near(found: &Value, expected: &Value) {
    let (found, expected) = (found.as_array().unwrap(), expected.as_array().unwrap());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
}
