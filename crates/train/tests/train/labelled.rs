//! Texts with labels and sentences with tags, from files of every kind.

use crate::common::{Scratch, shared};
use attentive_train::corpus::Error;
use attentive_train::corpus::labelled::{
    Columns, Labelled, LabelledText, Labels, Reading, TaggedSentence, read_tags, read_texts,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use std::path::PathBuf;

fn texts(scratch: &Scratch, files: &[PathBuf]) -> Result<Labelled<LabelledText>, Error> {
    read_texts(files, Reading::default(), &scratch.cache())
}

fn tags(scratch: &Scratch, files: &[PathBuf]) -> Result<Labelled<TaggedSentence>, Error> {
    read_tags(files, Reading::default(), &scratch.cache())
}

fn example(text: &str, pair: Option<&str>, label: &str) -> LabelledText {
    LabelledText { text: text.to_owned(), pair: pair.map(str::to_owned), label: label.to_owned() }
}

/// Checks that an error is one sentence that has all of `words` in it, and that no cache was made.
#[track_caller]
fn refused<T: std::fmt::Debug>(scratch: &Scratch, read: Result<T, Error>, words: &[&str]) {
    let error = read.unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
    assert!(!scratch.cache().exists(), "{error}");
}

#[test]
fn tables_of_every_layout_have_the_same_examples() {
    let scratch = Scratch::new("labelled-tsv");
    let expected =
        [example("a good film", None, "1"), example("a bad one", None, "0"), example("good", None, "1")];
    for (name, text) in [
        ("label last", "a good film\t1\na bad one\t0\ngood\t1\n"),
        ("label first", "1\ta good film\n0\ta bad one\n1\tgood"),
        ("header", "sentence\tlabel\na good film\t1\na bad one\t0\n\ngood\t1\n\n"),
        ("header of more columns", "id\tlabel\ttext\n0\t1\ta good film\n1\t0\ta bad one\n2\t1\tgood\n"),
        ("byte order mark", "\u{feff}text\tlabel\r\na good film\t1\r\na bad one\t0\r\ngood\t1\r\n"),
    ] {
        let read = texts(&scratch, &[scratch.write("texts.tsv", text)]).unwrap();
        assert_eq!(read.examples, expected, "{name}");
        assert_eq!(read.labels.names(), ["0", "1"], "{name}");
        assert_eq!(read.bytes, text.len() as u64, "{name}");
    }
}

#[test]
fn two_texts_and_a_label_are_read() {
    let scratch = Scratch::new("labelled-pairs");
    let expected = [example("a", Some("b c"), "yes"), example("d", Some(""), "no")];
    for (name, text) in [
        ("pairs.tsv", "a\tb c\tyes\nd\t\tno\n"),
        ("first.tsv", "yes\ta\tb c\nno\td\t\n"),
        ("header.tsv", "premise\thypothesis\tlabel\na\tb c\tyes\nd\t\tno\n"),
        (
            "pairs.jsonl",
            "{\"text\":\"a\",\"text_pair\":\"b c\",\"label\":\"yes\"}\n{\"sentence2\":\"\",\"label\":\"no\",\"sentence1\":\"d\"}\n",
        ),
    ] {
        // Two lines are too few to tell.
        let columns = if name == "first.tsv" { Columns::LabelFirst } else { Columns::LabelLast };
        let reading = Reading { columns: Some(columns), ..Reading::default() };
        let read = read_texts(&[scratch.write(name, text)], reading, &scratch.cache()).unwrap();
        assert_eq!(read.examples, expected, "{name}");
        assert_eq!(read.labels.names(), ["no", "yes"], "{name}");
    }
}

#[test]
fn several_files_of_several_kinds_are_one_corpus() {
    let scratch = Scratch::new("labelled-kinds");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"x y\tc\n").unwrap();
    let json = compress_to_vec(&b"{\"text\":\"z\",\"label\":\"a\"}\n"[..], CompressionLevel::Fastest);
    let files = [
        scratch.write("one.tsv", "w\tb\n"),
        scratch.write("two.tsv.gz", gzip.finish().unwrap()),
        scratch.write("three.jsonl.zst", json),
    ];
    let read = texts(&scratch, &files).unwrap();
    assert_eq!(read.examples, [example("w", None, "b"), example("x y", None, "c"), example("z", None, "a")]);
    assert_eq!(read.labels.names(), ["a", "b", "c"]);
    assert_ne!(read.checksum, texts(&scratch, &files[..1]).unwrap().checksum);
}

#[test]
fn sentences_with_tags_are_read_from_tables_and_objects() {
    let scratch = Scratch::new("tagged");
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let sentence = |words: &[&str], tags: &[&str]| TaggedSentence { words: owned(words), tags: owned(tags) };
    let expected = [sentence(&["EU", "rejects"], &["B-ORG", "O"]), sentence(&["Peter"], &["B-PER"])];
    for (name, text) in [
        (
            "tags.conll",
            "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP B-PER\n",
        ),
        ("tags.bio", "EU\tB-ORG\r\nrejects\tO\r\n\r\nPeter\tB-PER\r\n\r\n"),
        (
            "tags.jsonl",
            "{\"tokens\":[\"EU\",\"rejects\"],\"ner_tags\":[\"B-ORG\",\"O\"]}\n{\"words\":[\"Peter\"],\"labels\":[\"B-PER\"]}\n",
        ),
    ] {
        let read = tags(&scratch, &[scratch.write(name, text)]).unwrap();
        assert_eq!(read.examples, expected, "{name}");
        assert_eq!(read.labels.names(), ["B-ORG", "B-PER", "O"], "{name}");
    }
}

#[test]
fn a_label_that_training_never_saw_is_named_with_file_and_line() {
    let scratch = Scratch::new("unseen");
    let labels = Labels::sorted(["good".to_owned(), "bad".to_owned()]);
    let reading = Reading { labels: Some(&labels), ..Reading::default() };
    let file = scratch.write("dev.tsv", "good\tfine\ngood\tnice\nugly\tno\n");
    let read = read_texts(&[file], reading, &scratch.cache());
    refused(&scratch, read, &["dev.tsv: line 3 has the label `ugly`", "training never saw", "`bad`, `good`"]);
    let file = scratch.write("dev.bio", "a\tgood\n\nb\tO\n");
    refused(&scratch, read_tags(&[file], reading, &scratch.cache()), &["dev.bio: line 3 has the label `O`"]);
    // The order is the model's, and the columns are found by what is known.
    let labels = Labels::in_order(vec!["good".to_owned(), "bad".to_owned()]);
    let reading = Reading { labels: Some(&labels), ..Reading::default() };
    let read = read_texts(&[scratch.write("one.tsv", "bad\tx\n")], reading, &scratch.cache()).unwrap();
    assert_eq!((read.examples, read.labels.number("bad")), (vec![example("x", None, "bad")], Some(1)));
}

#[test]
fn broken_lines_are_named_and_nothing_is_left_behind() {
    let scratch = Scratch::new("labelled-broken");
    let long = "1\t".to_owned() + &"x".repeat(2 << 20);
    for (name, contents, words) in [
        ("a.tsv", &b"a\t1\nb\n"[..], &["a.tsv: line 2 has 1 tab-separated fields"][..]),
        ("b.tsv", b"a\tb\tc\td\n", &["b.tsv: line 1 has 4 tab-separated fields", "`text_pair`"]),
        ("c.tsv", b"sentence\tlabel\na\t\n", &["c.tsv: line 2 has an empty label"]),
        ("d.tsv", b"a\t1\n\xe9\t0\n", &["d.tsv: line 2 is not UTF-8"]),
        ("e.tsv", b"", &["the corpus is empty"]),
        ("f.tsv", b"text\tlabel\n", &["the corpus is empty"]),
        ("g.tsv", long.as_bytes(), &["g.tsv: line 1 is longer than 1 MiB"]),
        ("h.jsonl", b"{\"text\":\"a\",\"label\":1}\n[\n", &["h.jsonl: line 2 is not a JSON object"]),
        ("i.tsv.gz", b"no archive", &["i.tsv.gz", "incomplete or damaged"]),
    ] {
        let read = texts(&scratch, &[scratch.write(name, contents)]);
        refused(&scratch, read, words);
    }
    for (name, text, words) in [
        ("a.bio", "a O\n\nb\n", &["a.bio: line 3 must be a word and its tag"][..]),
        ("b.bio", "\n\n", &["the corpus is empty"]),
        (
            "c.jsonl",
            "{\"tokens\":[\"a\"],\"tags\":[0]}\n",
            &["c.jsonl: line 1 has a field `tags`", "in quotes"],
        ),
    ] {
        let read = tags(&scratch, &[scratch.write(name, text)]);
        refused(&scratch, read, words);
    }
    refused(&scratch, texts(&scratch, std::slice::from_ref(&scratch.0)), &["is a directory"]);
    refused(&scratch, texts(&scratch, &[]), &["the corpus is empty"]);
}

#[test]
fn sst2_and_wikiann_are_read_as_they_are() {
    let Some(data) = shared("data") else { return };
    let scratch = Scratch::new("labelled-real");
    for (name, count) in [("train", 6920), ("dev", 872), ("test", 1821)] {
        let read = texts(&scratch, &[data.join(format!("sst2/{name}.tsv"))]).unwrap();
        assert_eq!(
            (read.examples.len(), read.labels.names()),
            (count, &["0".to_owned(), "1".to_owned()][..])
        );
        assert!(read.examples.iter().all(|example| example.label.len() == 1 && example.pair.is_none()));
    }
    for (name, count) in [("train", 20_000), ("dev", 10_000), ("test", 10_000)] {
        let read = tags(&scratch, &[data.join(format!("wikiann-en/{name}.bio"))]).unwrap();
        assert_eq!(read.examples.len(), count);
        assert_eq!(read.labels.names(), ["B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O"]);
    }
}
