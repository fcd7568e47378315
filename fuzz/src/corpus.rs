//! Texts to learn from.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_train::corpus::labelled::{Labels, Reading, read_tags, read_texts};
use attentive_train::corpus::{Corpus, CorpusFiles, FieldNames};
use std::path::PathBuf;

/// The first byte says what kind of file the others are: a digit for pairs, a letter for what has labels.
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
        if kind.is_ascii_alphabetic() {
            return labelled(*kind, &scratch, one);
        }
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

/// Reads what has labels, and reads it again with labels that are known.
fn labelled(kind: u8, scratch: &Scratch, one: impl Fn(&str) -> Vec<PathBuf>) -> bool {
    let cache = scratch.path("cache");
    let known = Labels::sorted(["0", "1", "O", "B-PER"].map(str::to_owned));
    let readings = [Reading::default(), Reading { labels: Some(&known), columns: None }];
    let read = |reading: Reading<'_>| match kind % 4 {
        0 => read_texts(&one("texts.tsv"), reading, &cache).is_ok(),
        1 => read_texts(&one("texts.jsonl"), reading, &cache).is_ok(),
        2 => read_tags(&one("tags.conll"), reading, &cache).is_ok(),
        _ => read_tags(&one("tags.jsonl"), reading, &cache).is_ok(),
    };
    readings.map(read).contains(&true)
}
