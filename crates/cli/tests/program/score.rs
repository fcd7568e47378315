//! `attentive score`: what it prints, and what it says about files that cannot be scored.

use super::{Outcome, finish, program, run};
use serde_json::json;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

/// A folder of files that the program runs in.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str, files: &[(&str, &[u8])]) -> Folder {
        let folder = std::env::temp_dir().join(format!("attentive-score-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, contents) in files {
            std::fs::write(folder.join(name), contents).unwrap();
        }
        Folder(folder)
    }

    fn run(&self, line: &str) -> Outcome {
        let mut program = program(line);
        program.current_dir(&self.0);
        finish(program)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const REFERENCE: &[u8] = "The cat sat on the mat.\nIt was 3.5 m long – „so“!\n".as_bytes();
const OTHER_REFERENCE: &[u8] = b"A cat was sitting on the mat.\nIts length was 3.5 m!\n";
const HYPOTHESIS: &[u8] = "the cat sat on a mat.\nIt was 3,5 m long - „so“!\n".as_bytes();

fn texts(test: &str) -> Folder {
    Folder::new(test, &[("ref", REFERENCE), ("ref2", OTHER_REFERENCE), ("hyp", HYPOTHESIS)])
}

#[test]
fn a_table_has_every_score_with_its_signature() {
    let outcome = texts("table").run("score --reference ref --hypothesis hyp");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        outcome.stdout,
        "\
BLEU      20.78  nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0
chrF2     58.34  nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0
chrF2++   59.53  nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0
TER       23.08  nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0
"
    );
}

#[test]
fn json_has_all_digits_of_sacrebleu_in_one_line() {
    let folder = texts("json");
    let line =
        folder.run("score --reference ref ref2 --hypothesis hyp --tokenize intl --lowercase --json").json();
    let scores = [41.48459784830179, 60.09037646072789, 61.80607287748461, 24.0];
    for (name, expected) in ["bleu", "chrf", "chrf++", "ter"].into_iter().zip(scores) {
        let score = line[name].as_f64().unwrap();
        assert!((score - expected).abs() < 1e-9, "{name}: {score}");
    }
    let signatures = json!({
        "bleu": "nrefs:2|case:lc|eff:no|tok:intl|smooth:exp|version:2.6.0",
        "chrf": "nrefs:2|case:lc|eff:yes|nc:6|nw:0|space:no|version:2.6.0",
        "chrf++": "nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no|version:2.6.0",
        "ter": "nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0",
    });
    assert_eq!(line["signature"], signatures);
    let keys: Vec<_> = line.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["bleu", "chrf", "chrf++", "ter", "signature"]);
}

#[test]
fn a_dash_is_standard_input() {
    let folder = texts("stdin");
    let mut program = program("score --reference ref --hypothesis - --json");
    program.current_dir(&folder.0).stdin(Stdio::from(File::open(folder.0.join("hyp")).unwrap()));
    let expected = folder.run("score --reference ref --hypothesis hyp --json").json();
    assert_eq!(finish(program).json(), expected);
}

#[test]
fn a_comparison_says_how_probable_the_difference_is_by_chance() {
    let lines = |word: &str| {
        (0..300)
            .map(|i| format!("segment {i} has some words, the {word} being this one\n"))
            .collect::<String>()
    };
    let (good, bad) = (lines("last"), lines("least"));
    let files = [("ref", good.as_bytes()), ("hyp", good.as_bytes()), ("old", bad.as_bytes())];
    let folder = Folder::new("compare", &files);
    let line = folder.run("score --reference ref --hypothesis hyp --compare old --json").json();
    let compared = &line["compare"]["bleu"];
    assert_eq!(compared["p"].as_f64().unwrap(), 1.0 / 1001.0);
    assert_eq!(compared["hypothesis"]["score"], line["bleu"]);
    assert!(compared["other"]["score"].as_f64().unwrap() < 90.0);
    assert!(compared["other"]["ci"].as_f64().unwrap() < 1.0);
    assert_eq!(
        line["signature"]["bleu"],
        "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    );

    let table = folder.run("score --reference ref --hypothesis hyp --compare old");
    assert_eq!((table.code, table.stdout.lines().count()), (Some(0), 5));
    assert!(table.stdout.contains("0.0010"), "{}", table.stdout);
}

#[test]
fn files_that_do_not_belong_together_are_named_with_their_line_counts() {
    let folder = Folder::new("counts", &[("two", b"a\nb\n"), ("three", b"a\nb\nc")]);
    let words = ["two has 2 lines", "three has 3"];
    folder.run("score --reference three --hypothesis two").failed(&words);
    folder.run("score --reference two three --hypothesis two").failed(&words);
    folder.run("score --reference three --hypothesis three --compare two").failed(&words);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder =
        Folder::new("unreadable", &[("good", b"a\nb\n"), ("broken", b"a\n\xff\xfe\n"), ("empty", b"")]);
    folder.run("score --reference good --hypothesis broken").failed(&["broken: line 2 is not UTF-8"]);
    folder.run("score --reference good --hypothesis missing").failed(&["missing: "]);
    folder.run("score --reference . --hypothesis good").failed(&[".: "]);
    folder.run("score --reference good --hypothesis empty").failed(&["empty: the file is empty"]);
    folder.run("score --reference empty --hypothesis good").failed(&["empty: the file is empty"]);
    folder.run("score --reference good --hypothesis -").failed(&["standard input: the file is empty"]);
}

#[test]
fn both_texts_are_needed_and_only_known_tokenizers() {
    let folder = texts("usage");
    folder.run("score").refused(&["--reference", "--hypothesis"]);
    folder.run("score --reference ref").refused(&["--hypothesis"]);
    folder
        .run("score --reference ref --hypothesis hyp --tokenize zh")
        .refused(&["'zh'", "13a, intl, char, none"]);
}

#[test]
fn summaries_are_scored_by_rouge() {
    let folder = std::env::temp_dir().join(format!("attentive-rouge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [summary, reference] = ["summary", "reference"].map(|name| folder.join(name));
    std::fs::write(&summary, "The cat sat on the mat.\n").unwrap();
    std::fs::write(&reference, "A cat sat on a mat!\n").unwrap();
    let line =
        format!("score --rouge --reference {} --hypothesis {}", reference.display(), summary.display());
    let scores = run(&format!("{line} --json")).json();
    assert!((scores["rouge1"]["f1"].as_f64().unwrap() - 200.0 / 3.0).abs() < 1e-9, "{scores}");
    assert_eq!(scores["rouge2"]["recall"], 40.0);
    let table = run(&line).stdout;
    assert!(table.contains("ROUGE-L") && table.contains("66.67"), "{table}");
    run(&format!("{line} --lowercase")).refused(&["--rouge", "--lowercase"]);
    std::fs::remove_dir_all(folder).unwrap();
}
