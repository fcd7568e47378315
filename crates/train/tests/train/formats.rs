//! The same pairs from files of every kind.

use crate::common::{Scratch, batches, batching, epoch, pair, pair_files, write_pairs};
use attentive_train::corpus::{Corpus, CorpusFiles, ExampleBatch, FieldNames};
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use std::sync::Arc;

const PAIRS: usize = 120;

fn one_epoch(corpus: Corpus) -> Vec<ExampleBatch> {
    epoch(&mut batches(&Arc::new(corpus), batching(1, 50)))
}

fn expected(scratch: &Scratch) -> Vec<ExampleBatch> {
    one_epoch(scratch.open(&write_pairs(scratch, PAIRS)).unwrap())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn tsv() -> String {
    (0..PAIRS).map(pair).map(|(source, target)| format!("{source}\t{target}\n")).collect()
}

#[test]
fn a_table_has_the_same_pairs_whatever_ends_its_lines() {
    let scratch = Scratch::new("tsv");
    let expected = expected(&scratch);
    let without_last_end = tsv().trim_end_matches('\n').to_owned();
    for text in [tsv(), tsv().replace('\n', "\r\n"), without_last_end] {
        let file = scratch.write("pairs.tsv", text);
        assert_eq!(one_epoch(scratch.open(&CorpusFiles::Tsv(vec![file])).unwrap()), expected);
    }
}

#[test]
fn objects_have_the_same_pairs() {
    let scratch = Scratch::new("jsonl");
    let expected = expected(&scratch);
    let line = |(source, target)| format!("{}\n", serde_json::json!({"de": target, "n": [1], "en": source}));
    let file = scratch.write("pairs.jsonl", (0..PAIRS).map(pair).map(line).collect::<String>());
    let fields = FieldNames { source: "en".to_owned(), target: "de".to_owned() };
    let corpus = scratch.open(&CorpusFiles::Jsonl { files: vec![file], fields }).unwrap();
    assert_eq!(one_epoch(corpus), expected);
}

#[test]
fn compressed_files_have_the_same_pairs_also_in_several_pieces() {
    let scratch = Scratch::new("compressed");
    let expected = expected(&scratch);
    let read = |name: &str| std::fs::read(scratch.path(name)).unwrap();
    let (source, target) = (read("pairs.en"), read("pairs.de"));
    let (first, second) = source.split_at(source.len() / 2);

    let gz = pair_files(
        &scratch.write("pairs.en.gz", [gzip(first), gzip(second)].concat()),
        &scratch.write("pairs.de.gz", gzip(&target)),
    );
    assert_eq!(one_epoch(scratch.open(&gz).unwrap()), expected);

    // Between the frames is one that decoders skip: its magic number, its length, three bytes.
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3].to_vec();
    let zst = pair_files(
        &scratch.write("pairs.en.zst", [zstandard(first), skipped, zstandard(second)].concat()),
        &scratch.write("pairs.de.zst", zstandard(&target)),
    );
    assert_eq!(one_epoch(scratch.open(&zst).unwrap()), expected);
}

#[test]
fn a_compressed_file_is_unpacked_once_and_again_only_when_it_has_changed() {
    let scratch = Scratch::new("once-unpacked");
    let file = scratch.write("pairs.tsv.gz", gzip(tsv().as_bytes()));
    let files = CorpusFiles::Tsv(vec![file]);
    let unpacked = || -> Vec<_> {
        let entries = std::fs::read_dir(scratch.cache()).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap())).collect()
    };
    assert_eq!(scratch.open(&files).unwrap().len(), PAIRS);
    let first = unpacked();
    assert_eq!(first.len(), 1);
    assert_eq!(scratch.open(&files).unwrap().len(), PAIRS);
    assert_eq!(unpacked(), first);

    scratch.write("pairs.tsv.gz", gzip(b"only\tone\n"));
    assert_eq!(scratch.open(&files).unwrap().len(), 1);
    assert_eq!(unpacked().len(), 2);
}
