//! Texts to learn from.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_train::corpus::{Corpus, CorpusFiles, FieldNames};
use std::path::PathBuf;

/// The first byte says what kind of file the others are.
pub(crate) fn corpus() -> Reader {
    let scratch = Scratch::new("corpus");
    let fields = FieldNames { source: "en".to_owned(), target: "de".to_owned() };
    Box::new(move |input| {
        let Some((kind, bytes)) = input.split_first() else { return false };
        let _ = std::fs::remove_dir_all(scratch.path("cache"));
        let pair = |source: &str, target: &str| CorpusFiles::Pairs {
            sources: vec![scratch.write(source, bytes)],
            targets: vec![scratch.write(target, bytes)],
        };
        let one = |name: &str| -> Vec<PathBuf> { vec![scratch.write(name, bytes)] };
        let files = match kind % 5 {
            0 => pair("source", "target"),
            1 => pair("source.gz", "target.gz"),
            2 => pair("source.zst", "target.zst"),
            3 => CorpusFiles::Tsv(one("pairs.tsv")),
            _ => CorpusFiles::Jsonl { files: one("pairs.jsonl"), fields: fields.clone() },
        };
        let Ok(corpus) = Corpus::open(&files, &scratch.path("cache")) else { return false };
        let _ = (corpus.size(), corpus.multi_sentence_share(None));
        let all: Vec<u32> = (0..corpus.len() as u32).collect();
        corpus.read(&all, |_, _, _| true).is_ok()
    })
}
