//! `attentive tokenize`.

use super::{Outcome, finish, program, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/text");

/// Runs the program and pipes `input` into it.
fn fed(line: &str, input: &[u8]) -> Outcome {
    let mut program = program(line);
    let file = Folder::new("input");
    let path = file.0.join("input");
    std::fs::write(&path, input).unwrap();
    program.stdin(std::fs::File::open(path).unwrap());
    finish(program)
}

/// What a successful run answers, line by line.
#[track_caller]
fn answered(outcome: &Outcome) -> Vec<&str> {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    outcome.stdout.strip_suffix('\n').map_or(vec![], |lines| lines.split('\n').collect())
}

/// A folder of its own for a test, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("attentive-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Two small texts.
fn texts(folder: &Folder) -> [PathBuf; 2] {
    let english = "A dog runs on the grass near the river.\nTwo dogs are running.\nThe old dog sleeps!\n";
    let german = "Ein Hund läuft im Gras am Fluß.\nZwei Hunde rennen.\nDer alte Hund schläft!\n";
    [folder.file("a.en", english.repeat(3).as_bytes()), folder.file("a.de", german.repeat(3).as_bytes())]
}

fn names(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn every_line_is_answered_with_a_line_empty_ones_too() {
    let text = "a dog runs\n\n  \nein Hund";
    let pieces = fed(&format!("tokenize --model {MODELS}/bert"), text.as_bytes());
    let lines = answered(&pieces);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!((lines[0], lines[1], lines[2]), ("[CLS] a dog runs [SEP]", "[CLS] [SEP]", "[CLS] [SEP]"));
    let empty = fed(&format!("tokenize --model {MODELS}/bert --ids"), b"");
    assert_eq!(answered(&empty), [""; 0]);
}

#[test]
fn numbers_and_pieces_give_the_text_back() {
    let text = "a dog runs on the grass.\n\ndie Katze schläft – 🐈\n";
    for ids in ["", "--ids"] {
        let tokens = fed(&format!("tokenize --model {MODELS}/unigram.model {ids}"), text.as_bytes());
        answered(&tokens);
        let again =
            fed(&format!("tokenize --model {MODELS}/unigram.model --decode {ids}"), tokens.stdout.as_bytes());
        assert_eq!(again.stdout, text, "{}", again.stderr);
    }
}

#[test]
fn the_sides_of_a_marian_folder_differ() {
    let [source, target] = ["source", "target"].map(|side| {
        fed(&format!("tokenize --model {MODELS}/marian --side {side} --ids"), b">>fra<< a dog runs\n").stdout
    });
    assert!(source.starts_with("2 ") && source.ends_with(" 0\n"), "{source}");
    assert!(target.starts_with("2 ") && target.ends_with(" 0\n"), "{target}");
    assert_ne!(source, target);
}

#[test]
fn a_line_is_answered_before_the_next_one_is_written() {
    let mut program = program(&format!("tokenize --model {MODELS}/bert"));
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for (question, expected) in
        [("a dog\n", "[CLS] a dog [SEP]\n"), ("two children\n", "[CLS] two children [SEP]\n")]
    {
        input.write_all(question.as_bytes()).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(answer, expected);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_joint_tokenizer_is_trained_saved_and_used() {
    let folder = Folder::new("joint");
    let [english, german] = texts(&folder).map(|path| path.display().to_string());
    for (kind, files) in [
        ("bpe", &["source.spm", "target.spm", "tokenizer.json", "tokenizer_config.json", "vocab.json"][..]),
        ("unigram", &["source.spm", "target.spm", "tokenizer.json", "tokenizer_config.json", "vocab.json"]),
        ("wordpiece", &["tokenizer.json", "tokenizer_config.json", "vocab.txt"]),
    ] {
        let out = folder.0.join(kind);
        let size = if kind == "wordpiece" { 65 } else { 45 };
        let (out_name, kind) = (out.display(), format!("--kind {kind}"));
        let trained =
            run(&format!("tokenize --train --vocab-size {size} {kind} {english} {german} --out {out_name}"));
        assert_eq!((trained.code, trained.stdout.as_str()), (Some(0), ""));
        assert_eq!(trained.stderr, format!("wrote a tokenizer with {size} tokens to {out_name}\n"));
        assert_eq!(names(&out), files);
        let ids = fed(&format!("tokenize --model {out_name} --ids"), "Zwei Hunde\n".as_bytes());
        let text = fed(&format!("tokenize --model {out_name} --ids --decode"), ids.stdout.as_bytes());
        assert_eq!(answered(&text), ["Zwei Hunde"]);
    }
}

#[test]
fn each_side_can_be_trained_alone() {
    let folder = Folder::new("separate");
    let [english, german] = texts(&folder).map(|path| path.display().to_string());
    let out = folder.0.join("out");
    let trained =
        run(&format!("tokenize --train --vocab-size 40 {english} --target {german} --out {}", out.display()));
    assert_eq!(trained.code, Some(0), "{}", trained.stderr);
    assert_eq!(names(&out), ["source.spm", "target.spm", "tokenizer_config.json", "vocab.json"]);
    let target = fed(&format!("tokenize --model {} --side target", out.display()), "Der Hund\n".as_bytes());
    assert!(target.stdout.ends_with(" </s>\n"), "{}", target.stdout);
}

#[test]
fn a_text_with_too_little_to_learn_gives_what_there_is_and_says_so() {
    let folder = Folder::new("little");
    let [english, _] = texts(&folder);
    let out = folder.0.join("out");
    let trained =
        run(&format!("tokenize --train --vocab-size 9000 {} --out {}", english.display(), out.display()));
    assert_eq!((trained.code, trained.stdout.as_str()), (Some(0), ""));
    trained.says(&["no more pieces that occur twice"]);
    assert!(out.join("vocab.json").exists());
}

#[test]
fn bad_input_is_told_in_one_sentence_and_nothing_is_written() {
    let folder = Folder::new("bad");
    let [english, _] = texts(&folder).map(|path| path.display().to_string());
    let broken = folder.file("broken.txt", b"good\nbad \xFF\n").display().to_string();
    let empty = folder.file("empty.txt", b"").display().to_string();
    let out = folder.0.join("out");
    let train = |rest: &str| run(&format!("tokenize --train --vocab-size 60 {rest} --out {}", out.display()));
    train(&format!("{english} {broken}")).failed(&["broken.txt", "line 2", "UTF-8"]);
    train(&empty).failed(&["empty.txt"]);
    train("nothing.txt").failed(&["nothing.txt"]);
    train(&folder.0.display().to_string()).failed(&["directory"]);
    run(&format!("tokenize --train --vocab-size 9 {english} --out {}", out.display()))
        .failed(&["characters", "9"]);
    assert!(!out.exists());

    let bert = format!("tokenize --model {MODELS}/bert");
    // What came before is answered.
    let stops = |options: &str, input: &[u8], words: &[&str]| {
        let outcome = fed(&format!("{bert} {options}"), input);
        assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(1), 1), "{}", outcome.stderr);
        outcome.says(words);
    };
    stops("", b"good\nbad \xFF\n", &["standard input", "line 2", "UTF-8"]);
    stops("--ids --decode", b"1 2\n1 x 2\n", &["line 2", "`x`"]);
    fed(&format!("{bert} --ids --decode"), b"123456\n").failed(&["line 1", "123456"]);
    stops("--decode", b"dog\nqwertz\n", &["line 2", "qwertz"]);
    run(&format!("tokenize --model {}", folder.0.display())).failed(&["the folder has no tokenizer"]);
    run("tokenize --model nothing.model").failed(&["nothing.model"]);
}

#[test]
fn a_tokenizer_json_at_which_a_library_would_panic_is_refused_in_one_sentence() {
    let folder = Folder::new("hostile");
    let tokenize = |part: &str, value: Value| {
        let model = json!({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []});
        let mut json = json!({"version": "1.0", "added_tokens": [], "model": model});
        for absent in ["truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"] {
            json[absent] = Value::Null;
        }
        json[part] = value;
        let path = folder.file("tokenizer.json", json.to_string().as_bytes());
        fed(&format!("tokenize --model {}", path.display()), b"abab a\n")
    };
    assert_eq!(answered(&tokenize("decoder", Value::Null)), ["a b a b a"]);
    for (part, value) in [
        // A table of four bytes that says that it has 67 million.
        ("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AQIDBA=="})),
        ("pre_tokenizer", json!({"type": "FixedLength", "length": 0})),
        // A merge of a token that is not in the vocabulary.
        ("model", json!({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "c"]]})),
    ] {
        tokenize(part, value).failed(&["tokenizer.json: "]);
    }
}

#[test]
fn files_are_read_one_after_the_other() {
    let folder = Folder::new("files");
    let [one, two] =
        [("one", &b"dog\n"[..]), ("two", b"\ndog dog")].map(|(name, text)| folder.file(name, text));
    let line = format!("tokenize --model {MODELS}/bert --ids");
    let piped = fed(&line, b"dog\n\ndog dog\n");
    let read = run(&format!("{line} {} {}", one.display(), two.display()));
    assert_eq!((read.code, &read.stdout), (Some(0), &piped.stdout), "{}", read.stderr);
    let broken = folder.file("broken", b"\xFF\n");
    run(&format!("{line} {}", broken.display())).failed(&["broken, line 1", "UTF-8"]);
    run(&format!("{line} missing.txt")).failed(&["missing.txt"]);
}

#[test]
fn wrong_usage_is_refused() {
    run("tokenize").refused(&["--model"]);
    run("tokenize --train a.txt --out b").refused(&["--vocab-size"]);
    run("tokenize --train --vocab-size 100 a.txt").refused(&["--out"]);
    run("tokenize --train --vocab-size 100 --out b").refused(&["FILES"]);
    run("tokenize --train --vocab-size 2 a.txt --out b").refused(&["--vocab-size", "8"]);
    run("tokenize --model a --train --vocab-size 100 a.txt --out b").refused(&["--model", "--train"]);
    run("tokenize --model a --kind word").refused(&["bpe", "unigram", "wordpiece"]);
    run("tokenize --model a --vocab-size 100").refused(&["--train"]);
}

#[test]
fn every_example_of_its_help_is_a_valid_command() {
    let help = run("tokenize --help").stdout;
    let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  attentive ")).collect();
    assert_eq!(examples.len(), 5, "{help}");
    for example in examples {
        let line = example.split("  ").next().unwrap().split(" <").next().unwrap();
        assert_eq!(run(&format!("{line} --help")).code, Some(0), "{line}");
    }
}

#[test]
fn wordpiece_for_each_side_gets_two_folders() {
    let folder = Folder::new("wordpieces");
    let [english, german] = texts(&folder).map(|path| path.display().to_string());
    let out = folder.0.join("out");
    let line = "tokenize --train --kind wordpiece --vocab-size 60";
    let trained = run(&format!("{line} {english} --target {german} --out {}", out.display()));
    assert_eq!(trained.code, Some(0), "{}", trained.stderr);
    assert_eq!(names(&out), ["source", "target"]);
    let target = out.join("target");
    let pieces = fed(&format!("tokenize --model {}", target.display()), "Zwei Hunde\n".as_bytes());
    assert!(pieces.stdout.starts_with("[CLS] ") && !pieces.stdout.contains("[UNK]"), "{}", pieces.stdout);
}

#[test]
fn rare_characters_have_pieces_unless_less_is_asked_for() {
    let folder = Folder::new("coverage");
    let text = folder.0.join("text");
    std::fs::write(&text, "a man and a dog\n".repeat(2000) + "a man, 2 dogs\n").unwrap();
    let again = |options: &str| {
        let out = folder.0.join(format!("out{options}").replace(' ', ""));
        let line = format!("tokenize --train --vocab-size 30 {options} {} --out", text.display());
        assert_eq!(run(&format!("{line} {}", out.display())).code, Some(0));
        let ids = fed(&format!("tokenize --model {} --ids", out.display()), b"2 dogs\n");
        fed(&format!("tokenize --model {} --ids --decode", out.display()), ids.stdout.as_bytes()).stdout
    };
    assert_eq!(again(""), "2 dogs\n");
    assert_ne!(again("--character-coverage 0.9995"), "2 dogs\n");
    run("tokenize --train --kind characters --vocab-size 30 text --out out")
        .misused(&["--vocab-size", "each character"]);
    run("tokenize --train --vocab-size 30 --character-coverage 1.5 text --out out").refused(&["coverage"]);
}

#[test]
fn lines_before_a_broken_one_are_answered() {
    let folder = Folder::new("before");
    let text = folder.0.join("text");
    std::fs::write(&text, "a man and a dog\n".repeat(10)).unwrap();
    let out = folder.0.join("out").display().to_string();
    run(&format!("tokenize --train --vocab-size 20 {} --out {out}", text.display()));
    let outcome = fed(&format!("tokenize --model {out}"), b"a dog\na man\n\xff\n");
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(1), 2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("line 3"), "{}", outcome.stderr);
}
