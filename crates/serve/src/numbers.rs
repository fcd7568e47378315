//! The model that comes with the program: numbers in words, from English into German and French.
//!
//! Its files are in `crates/serve/model`, with the commands that make them. For the moment of loading they are a
//! folder on the disk, since that is what models are read from.

use crate::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../model/", $name)).as_slice())),*]
    };
}

static FILES: [(&str, &[u8]); 7] = files![
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
    "vocab.json",
];

/// What a person should know before trying it.
pub(crate) const NOTE: &str = "It comes with the program and knows numbers only, written out as words.";

/// Something to try a model with.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Example {
    pub text: String,
    /// The code of the language to translate it into, where there are several.
    pub target: Option<String>,
}

/// A folder that goes when it is dropped.
pub(crate) struct Unpacked(PathBuf);

impl Unpacked {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes the model into a new folder with a unique name.
pub(crate) fn unpack() -> Result<Unpacked, Error> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let place = std::env::temp_dir();
    let path = place.join(format!("attentive-numbers-{}-{number}", std::process::id()));
    let failed = |source| Error::Unpack { folder: place.clone(), source };
    // An existing folder belongs to another process, and is not written to.
    std::fs::create_dir(&path).map_err(failed)?;
    let folder = Unpacked(path);
    for (name, bytes) in FILES {
        std::fs::write(folder.path().join(name), bytes).map_err(failed)?;
    }
    Ok(folder)
}

/// Numbers whose translations have something to show: words that cross, words that become several.
pub(crate) fn examples() -> Vec<Example> {
    let example =
        |(text, target): (&str, &str)| Example { text: text.to_owned(), target: Some(target.to_owned()) };
    [
        ("four thousand three hundred and twenty-one", "de"),
        ("ninety-seven", "fr"),
        ("twenty-one", "de"),
        ("seventy-one thousand two hundred", "fr"),
        ("seven hundred and seventy-seven thousand seven hundred and seventy-seven", "de"),
    ]
    .map(example)
    .into()
}
