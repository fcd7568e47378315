//! How a small model learns the numbers: what it is made of, and for how long.

use super::{NumberCorpus, tokenizer};
use crate::Error;
use crate::schedule::Schedule;
use crate::settings::Settings;
use std::path::Path;

/// Writes the corpus of a seed into a folder, with a tokenizer for it, and returns it.
pub fn prepare(folder: &Path, seed: u64) -> Result<NumberCorpus, Error> {
    let corpus = NumberCorpus::new(seed);
    corpus.write(folder)?;
    tokenizer().save(folder.join("tokenizer"))?;
    Ok(corpus)
}

/// The settings of a run that learns the corpus of this folder: with 177 thousand parameters, in about a minute on two
/// cores.
pub fn settings(folder: &Path, seed: u64) -> Settings {
    let file = |name: &str| vec![folder.join(name)];
    Settings {
        source: file("train.source"),
        target: file("train.target"),
        valid_source: file("valid.source"),
        valid_target: file("valid.target"),
        tokenizer: Some(folder.join("tokenizer")),
        preset: "tiny".to_owned(),
        d_model: Some(64),
        heads: Some(4),
        d_ff: Some(128),
        // There is nothing to be learned by heart: ten thousand numbers teach the rules for a million.
        dropout: Some(0.0),
        batch_tokens: 4096,
        schedule: Schedule::Cosine,
        learning_rate: Some(3e-3),
        warmup: 150,
        clip: 1.0,
        steps: Some(900),
        validate_every: 60,
        validate_lines: 0,
        log_every: 20,
        keep: 1,
        seed,
        ..Settings::default()
    }
}
