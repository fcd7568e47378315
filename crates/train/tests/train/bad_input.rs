//! What is wrong with a corpus is told in one sentence, and nothing is left on the disk.

use crate::common::{Scratch, pair_files};
use attentive_train::corpus::{CorpusFiles, FieldNames};
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use std::path::Path;

/// Checks that a corpus is refused with a sentence that has all of `words` in it, and that no cache was made.
#[track_caller]
fn refused(scratch: &Scratch, files: &CorpusFiles, words: &[&str]) {
    let error = scratch.open(files).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
    assert!(!scratch.cache().exists(), "{error}");
}

fn tsv(path: &Path) -> CorpusFiles {
    CorpusFiles::Tsv(vec![path.to_owned()])
}

#[test]
fn different_line_counts_name_both_files_and_both_counts() {
    let scratch = Scratch::new("counts");
    let (two, three) = (scratch.write("two", "a\nb\n"), scratch.write("three", "a\nb\nc"));
    refused(&scratch, &pair_files(&two, &three), &["two has 2 lines", "three has 3"]);
}

#[test]
fn broken_utf8_is_named_by_file_and_line() {
    let scratch = Scratch::new("utf8");
    let (good, broken) = (scratch.write("good", "a\nb\nc\n"), scratch.write("broken", b"a\n\nc\xc3\n"));
    refused(&scratch, &pair_files(&good, &broken), &["broken: line 3 is not UTF-8"]);
    refused(&scratch, &pair_files(&broken, &good), &["broken: line 3 is not UTF-8"]);
}

#[test]
fn an_empty_corpus_names_its_files() {
    let scratch = Scratch::new("empty");
    let (a, b) = (scratch.write("a", ""), scratch.write("b", ""));
    refused(&scratch, &pair_files(&a, &b), &["the corpus is empty", "/a, ", "/b"]);
    refused(&scratch, &tsv(&a), &["the corpus is empty"]);
}

#[test]
fn source_and_target_cannot_be_one_file_under_any_name() {
    let scratch = Scratch::new("same");
    let file = scratch.write("text", "a\n");
    refused(&scratch, &pair_files(&file, &file), &["text is given as source and as target"]);
    let other_name = scratch.0.join("cached").join("..").join("text");
    std::fs::create_dir(scratch.path("cached")).unwrap();
    refused(&scratch, &pair_files(&file, &other_name), &["text is given as source and as target"]);
}

#[test]
fn a_directory_and_a_missing_file_are_named() {
    let scratch = Scratch::new("directory");
    let file = scratch.write("text", "a\n");
    refused(&scratch, &pair_files(&file, &scratch.0), &["is a directory: name the files in it"]);
    refused(&scratch, &pair_files(&file, &scratch.path("nowhere")), &["nowhere: "]);
}

#[test]
#[cfg(unix)]
fn a_file_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("permission");
    for name in ["secret.tsv", "secret.tsv.gz"] {
        let file = scratch.write(name, "a\tb\n");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).unwrap();
        if std::fs::File::open(&file).is_ok() {
            eprintln!("skipped: whoever runs this may read everything");
            return;
        }
        refused(&scratch, &tsv(&file), &[name, "ermission denied"]);
    }
}

#[test]
fn compressed_files_that_are_cut_off_or_damaged_are_named() {
    let scratch = Scratch::new("cut-off");
    let text: String = (0..5000).map(|i| format!("{i}\t{}\n", i * i)).collect();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let compressed = [
        ("cut.tsv.gz", encoder.finish().unwrap()),
        ("cut.tsv.zst", compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)),
    ];
    for (name, bytes) in compressed {
        for length in [0, 5, 100, bytes.len() / 2, bytes.len() - 1] {
            let file = scratch.write(name, &bytes[..length]);
            refused(&scratch, &tsv(&file), &[name, "incomplete or damaged"]);
        }
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 0x55;
        let file = scratch.write(name, &damaged);
        refused(&scratch, &tsv(&file), &[name, "incomplete or damaged"]);
        let file = scratch.write(name, "this is no archive at all\n");
        refused(&scratch, &tsv(&file), &[name, "incomplete or damaged"]);
    }
}

#[test]
fn an_error_in_a_compressed_file_names_the_file_that_was_given() {
    let scratch = Scratch::new("named");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"a\tb\nno tab\n").unwrap();
    let file = scratch.write("pairs.tsv.gz", encoder.finish().unwrap());
    refused(&scratch, &tsv(&file), &["pairs.tsv.gz: line 2 has 1 tab-separated fields"]);
}

#[test]
fn lines_that_hold_no_pair_are_named() {
    let scratch = Scratch::new("lines");
    let file = scratch.write("table", "a\tb\na b\n");
    refused(&scratch, &tsv(&file), &["table: line 2 has 1 tab-separated fields"]);
    let file = scratch.write("objects", "{\"en\": \"a\", \"de\": \"b\"}\n{\"en\": \"a\"}\n");
    let fields = FieldNames { source: "en".to_owned(), target: "de".to_owned() };
    let files = CorpusFiles::Jsonl { files: vec![file], fields };
    refused(&scratch, &files, &["objects: line 2 has no field `de`"]);
}

#[test]
fn every_source_file_needs_its_target_file() {
    let scratch = Scratch::new("uneven");
    let (a, b) = (scratch.write("a", "a\n"), scratch.write("b", "b\n"));
    let files = CorpusFiles::Pairs { sources: vec![a.clone(), a], targets: vec![b] };
    refused(&scratch, &files, &["2 source files and 1 target files"]);
    let none = CorpusFiles::Pairs { sources: vec![], targets: vec![] };
    refused(&scratch, &none, &["the corpus is empty"]);
}

#[test]
fn a_line_that_never_ends_is_named_and_not_read_to_its_end() {
    let scratch = Scratch::new("endless");
    let (good, long) =
        (scratch.write("good", "a\nb\n"), scratch.write("long", "a\n".to_owned() + &"x".repeat(3 << 20)));
    refused(&scratch, &pair_files(&good, &long), &["long: line 2 is longer than 1 MiB"]);
    let mut zeros = GzEncoder::new(Vec::new(), Compression::fast());
    zeros.write_all(&vec![0; 8 << 20]).unwrap();
    let zeros = scratch.write("zeros.gz", zeros.finish().unwrap());
    refused(&scratch, &pair_files(&zeros, &good), &["zeros.gz: line 1 is longer than 1 MiB"]);
}
