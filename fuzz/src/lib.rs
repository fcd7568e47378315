//! Broken bytes for every reader of bytes that others wrote.
//!
//! A target reads its input as a file of a model, a corpus, a run, or as a request. It may refuse what it reads; it must not
//! panic, hang or take memory without bound. `seeds/<target>/` has small inputs to begin with, and every input that once
//! broke something.
//!
//! - `tests/replay.rs` reads all seeds and some thousand mutations of them, in every run of the tests.
//! - `fuzz/run --minutes N` lets libFuzzer mutate them towards paths that no input has taken yet.
#![forbid(unsafe_code)]

mod boxes;
mod corpus;
mod html;
mod http;
mod hub;
mod model;
pub mod mutate;
mod picture;
mod scratch;
mod tokenizer;
mod training;
mod weights;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Reads one input; returns whether it accepts it.
pub type Reader = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// A reader of bytes, by name.
#[derive(Debug)]
pub struct Target {
    /// Also the name of its folder of seeds.
    pub name: &'static str,
    /// Prepares what stays the same for all inputs.
    pub start: fn() -> Reader,
    /// How many mutations a run of the tests tries: some seconds of them.
    pub mutations: u64,
}

/// All targets.
pub const TARGETS: [Target; 23] = [
    Target { name: "safetensors", start: weights::safetensors, mutations: 4000 },
    Target { name: "zip", start: weights::zip, mutations: 4000 },
    Target { name: "pickle", start: weights::pickle, mutations: 4000 },
    Target { name: "sentencepiece", start: tokenizer::sentencepiece, mutations: 1000 },
    Target { name: "tokenizer_json", start: tokenizer::tokenizer_json, mutations: 1000 },
    Target { name: "vocab", start: tokenizer::vocab, mutations: 1000 },
    Target { name: "vocab_txt", start: tokenizer::vocab_txt, mutations: 1000 },
    Target { name: "config", start: model::config, mutations: 1000 },
    Target { name: "bert_config", start: model::bert_config, mutations: 1000 },
    Target { name: "index", start: weights::index, mutations: 2000 },
    Target { name: "generation_config", start: model::generation_config, mutations: 4000 },
    Target { name: "train_toml", start: training::settings, mutations: 2000 },
    Target { name: "state", start: training::state, mutations: 200 },
    Target { name: "metrics", start: training::metrics, mutations: 4000 },
    Target { name: "corpus", start: corpus::corpus, mutations: 1000 },
    Target { name: "idx", start: training::idx, mutations: 300 },
    Target { name: "http", start: http::http, mutations: 1000 },
    Target { name: "html", start: html::html, mutations: 4000 },
    Target { name: "picture", start: picture::picture, mutations: 2000 },
    Target { name: "preprocessor", start: picture::preprocessor, mutations: 1000 },
    Target { name: "vit_config", start: picture::vit_config, mutations: 1000 },
    Target { name: "boxes", start: boxes::boxes, mutations: 2000 },
    Target { name: "hub", start: hub::hub, mutations: 500 },
];

impl Target {
    /// The target of a name.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// The files of its seeds, by name.
    pub fn seeds(&self) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(self.name);
        let files =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<PathBuf> =
            files.map(|file| file.expect("a folder of the repository").path()).collect();
        files.sort();
        files
    }
}

/// What libFuzzer calls with each input. The target is the one that the variable `ATTENTIVE_FUZZ` names.
pub fn guided(input: &[u8]) {
    static READER: Mutex<Option<Reader>> = Mutex::new(None);
    let mut reader = READER.lock().unwrap_or_else(PoisonError::into_inner);
    let reader = reader.get_or_insert_with(|| {
        // libFuzzer's own hook ends the process at every panic, also at those that the program catches.
        std::panic::set_hook(Box::new(|panic| {
            if !attentive_text::tokenizer::panic_is_caught() {
                eprintln!("{panic}");
            }
        }));
        let name = std::env::var("ATTENTIVE_FUZZ").unwrap_or_default();
        let target = Target::named(&name).unwrap_or_else(|| {
            eprintln!("ATTENTIVE_FUZZ names no target: {name:?}");
            std::process::exit(2);
        });
        (target.start)()
    });
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader(input))).is_err() {
        std::process::abort();
    }
}

/// A file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
