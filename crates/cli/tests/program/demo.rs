//! `attentive demo`.

use super::{Outcome, finish, program, run};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A folder of its own for a test, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("attentive-demo-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the demo with a few steps, with `scratch` for what is not kept.
fn demo(arguments: &[&str], scratch: &Folder) -> Outcome {
    let mut program = program("demo");
    program.args(arguments).env("TMPDIR", &scratch.0);
    finish(program)
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_corpus_is_written_with_numbers_of_its_own_for_the_test() {
    let folder = Folder::new("corpus");
    let written = run(&format!("demo --write-corpus {}", folder.0.display()));
    assert_eq!((written.code, written.stderr.as_str()), (Some(0), ""));
    assert!(written.stdout.contains("attentive train --source"), "{}", written.stdout);
    let of = |name: &str| lines(&folder.0.join(name));
    let [train, test] = ["train.source", "test.source"].map(of);
    let train: HashSet<&str> = train.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    assert!(train.contains("twenty-one"));
    assert!(test.iter().all(|line| !train.contains(line.split_once(' ').unwrap().1)));
    assert_eq!(test.len(), of("test.target").len());
    assert!(folder.0.join("tokenizer/vocab.json").exists());
}

#[test]
fn json_tells_the_score_and_what_was_asked_and_nothing_is_left_behind() {
    let scratch = Folder::new("scratch");
    let asked = ["97", "two hundred and one", "one and twenty"];
    let outcome = demo(&[&["--steps", "3", "--json"], &asked[..]].concat(), &scratch);
    let report = outcome.json();
    assert_eq!((&report["steps"], &report["tested"]), (&3.into(), &2000.into()));
    assert!(report["exact"].as_u64().unwrap() < 2000);
    let of = |place: usize, name: &str| report["translations"][place][name].clone();
    assert_eq!(of(0, "reference"), "siebenundneunzig");
    assert_eq!((of(3, "number"), of(3, "reference")), (201.into(), "deux cent un".into()));
    assert_eq!((of(4, "source"), of(4, "reference")), ("one and twenty".into(), serde_json::Value::Null));
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0);
}

#[test]
fn the_same_seed_gives_the_same_bits_with_any_number_of_threads() {
    let scratch = Folder::new("bits");
    let weights = |name: &str, seed: &str, threads: &str| {
        let out = scratch.0.join(name);
        let arguments = ["--steps", "4", "--json", "--seed", seed, "--threads", threads, "--out"];
        demo(&[&arguments[..], &[out.to_str().unwrap()]].concat(), &scratch).json();
        std::fs::read(out.join("model.safetensors")).unwrap()
    };
    let one = weights("one", "5", "1");
    assert!(one == weights("two", "5", "2"));
    assert!(one != weights("other", "6", "1"));
}

#[test]
fn a_folder_that_is_kept_is_a_model_with_its_report_and_is_not_trained_again() {
    let scratch = Folder::new("kept");
    let out = scratch.0.join("out");
    let arguments = ["--steps", "4", "--out", out.to_str().unwrap(), "21"];
    let first = demo(&arguments, &scratch);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stdout.contains("twenty-one") && first.stdout.contains("German"), "{}", first.stdout);
    assert!(!first.stdout.contains('\x1b'), "{}", first.stdout);
    for name in ["config.json", "report.html", "events.out.tfevents.attentive", "vocab.json", "train.toml"] {
        assert!(out.join(name).exists(), "{name}");
    }
    let weights = std::fs::read(out.join("model.safetensors")).unwrap();
    let again = demo(&arguments, &scratch);
    assert_eq!((again.code, again.stdout), (Some(0), first.stdout));
    assert!(weights == std::fs::read(out.join("model.safetensors")).unwrap());
}

#[test]
fn a_folder_with_another_run_or_model_is_left_alone() {
    let scratch = Folder::new("occupied");
    let out = scratch.0.join("out");
    let arguments =
        |seed: &'static str| ["--steps", "2", "--seed", seed, "--out", out.to_str().unwrap(), "21"];
    assert_eq!(demo(&arguments("1"), &scratch).code, Some(0));
    let corpus = std::fs::read(out.join("numbers/train.source")).unwrap();
    let other = demo(&arguments("2"), &scratch);
    assert!(other.code == Some(2) && other.stderr.lines().count() == 1, "{}", other.stderr);
    other.says(&["seed", "started with 1"]);
    assert!(corpus == std::fs::read(out.join("numbers/train.source")).unwrap());

    std::fs::remove_dir_all(&out).unwrap();
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(out.join("model.safetensors"), "weights").unwrap();
    demo(&arguments("1"), &scratch).failed(&["there is a model in"]);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_it_with_130() {
    let scratch = Folder::new("interrupt");
    for what in ["demo", "demo --pictures"] {
        let out = scratch.0.join(what);
        let mut command = program(what);
        command.arg("--out").arg(&out).env("TMPDIR", &scratch.0);
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let begin = std::time::Instant::now();
        while !out.join("metrics.jsonl").exists() {
            assert!(begin.elapsed().as_secs() < 120, "the demo did not begin");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{what}");
    }
}

#[test]
fn shapes_are_looked_for_and_drawn_without_colours() {
    let scratch = Folder::new("shapes");
    let out = scratch.0.join("out");
    let arguments = ["--pictures", "--steps", "2", "--out", out.to_str().unwrap()];
    let first = demo(&arguments, &scratch);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    for words in ["AP50 of the boxes in 200 pictures", "in the picture: ", "attentive detect --model"] {
        assert!(first.stdout.contains(words), "`{words}` is not in: {}", first.stdout);
    }
    first.says(&["A DETR", "learns to", "  step   loss", "AP50"]);
    assert!(!first.stdout.contains('\x1b') && !first.stderr.contains('\x1b'), "{}", first.stdout);
    for name in ["config.json", "preprocessor_config.json", "report.html", "train.toml"] {
        assert!(out.join(name).exists(), "{name}");
    }
    let drawn = std::fs::read(out.join("found.png")).unwrap();
    assert!(drawn.starts_with(b"\x89PNG"));
    let weights = std::fs::read(out.join("model.safetensors")).unwrap();
    let again = demo(&arguments, &scratch);
    assert_eq!((again.code, again.stdout), (Some(0), first.stdout));
    assert!(weights == std::fs::read(out.join("model.safetensors")).unwrap());
    // A run that learned something else is not touched.
    demo(&["--steps", "2", "--out", out.to_str().unwrap()], &scratch).says(&["task", "started with"]);

    let report = demo(&["--pictures", "--steps", "1", "--json"], &scratch).json();
    assert_eq!((&report["steps"], &report["tested"]), (&1.into(), &200.into()));
    assert!((0.0..=1.0).contains(&report["ap50"].as_f64().unwrap()), "{report}");
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 1);
}

#[test]
fn without_a_question_examples_and_the_attention_of_one_are_shown_without_colours() {
    let scratch = Folder::new("shown");
    let shown = demo(&["--steps", "2", "--quiet"], &scratch);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    for words in
        ["777,777", "(expected: ", "exactly right", ">>de<<", "twenty", "Cross-attention while translating"]
    {
        assert!(shown.stdout.contains(words), "`{words}` is not in: {}", shown.stdout);
    }
    assert!(!shown.stdout.contains('\x1b') && !shown.stdout.contains("Your turn"), "{}", shown.stdout);
}

/// The longest test of all, about a minute: it is what the program promises first.
#[test]
fn it_learns_to_translate_numbers_that_it_has_never_seen() {
    let scratch = Folder::new("learns");
    let report = demo(&["--json", "4321"], &scratch).json();
    assert!(report["accuracy"].as_f64().unwrap() >= 0.99, "{report}");
    for answer in report["translations"].as_array().unwrap() {
        assert_eq!(answer["translation"], answer["reference"]);
    }
}

#[test]
fn what_is_no_number_below_a_million_is_wrong_usage() {
    run("demo 1000000").refused(&["1000000", "below a million"]);
    run("demo 12 dozen").refused(&["`dozen`"]);
    run("demo --steps 0").refused(&["--steps"]);
    run("demo --write-corpus a --out b").refused(&["--write-corpus", "--out"]);
    run("demo --pictures 21").refused(&["--pictures", "NUMBER"]);
}
