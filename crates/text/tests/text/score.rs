//! Scores beside sacreBLEU's.

use attentive_text::score::{
    AnswerScores, Lines, Options, Rouge, Scores, Segments, Signatures, Tokenize, rouge,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// All digits that the sum of some logarithms can promise.
const TOLERANCE: f64 = 1e-9;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn options(answer: &Value) -> Options {
    let named = |tokenize: &Tokenize| answer["tokenize"] == tokenize.name();
    let tokenize = Tokenize::ALL.into_iter().find(named).unwrap();
    Options { tokenize, lowercase: answer["lowercase"].as_bool().unwrap() }
}

#[track_caller]
fn close(scores: Scores, expected: [f64; 4], of: &str) {
    let found = [scores.bleu, scores.chrf, scores.chrf_pp, scores.ter];
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE, "{of}: {scores:?}, but sacreBLEU has {expected}");
    }
}

#[test]
fn every_golden_set_has_the_scores_and_signatures_of_sacrebleu() {
    let golden = std::fs::read_to_string(repository().join("golden/score.json")).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    for set in golden.as_array().unwrap() {
        let references: Vec<_> = set["references"].as_array().unwrap().iter().map(strings).collect();
        let segments = Segments::new(&strings(&set["hypothesis"]), &references).unwrap();
        for answer in set["answers"].as_array().unwrap() {
            let options = options(answer);
            let of = format!("{} {options:?}", set["name"]);
            let names = ["bleu", "chrf", "chrf++", "ter"];
            let scores = segments.count(options).scores();
            close(scores, names.map(|name| answer[name].as_f64().unwrap()), &of);

            let Signatures { bleu, chrf, chrf_pp, ter } = Signatures::new(references.len(), options, None);
            let expected = names.map(|name| answer["signature"][name].as_str().unwrap());
            assert_eq!([bleu, chrf, chrf_pp, ter], expected, "{of}");
        }
    }
}

/// The literals were printed by sacreBLEU 2.6.0 for the same files:
///
/// ```text
/// [m.corpus_score(hypothesis, [reference]).score for m in [BLEU(), CHRF(), CHRF(word_order=2), TER()]]
/// ```
#[test]
fn translations_of_multi30k_have_the_scores_of_sacrebleu() {
    let shared = std::env::var_os("ATTENTIVE_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| repository().join("../shared"));
    if !shared.is_dir() {
        eprintln!("skipped: {} is not there; ATTENTIVE_SHARED names another folder", shared.display());
        return;
    }
    let expected = [
        ("beam5", [38.90912268754127, 63.698244046004035, 62.14322649850419, 46.96011004126547]),
        ("greedy", [38.111816302135395, 63.14489935950361, 61.60178677581462, 48.143053645116915]),
    ];
    let reference = Lines::read(&shared.join("data/multi30k/test_2016_flickr.de")).unwrap();
    for (name, expected) in expected {
        let file = format!("reference/marian-multi30k/expected/test_2016_flickr.{name}.de");
        let hypothesis = Lines::read(&shared.join(file)).unwrap();
        let segments = Segments::new(&hypothesis.segments(), &[reference.segments()]).unwrap();
        close(segments.count(Options::default()).scores(), expected, name);
    }
}

#[test]
fn summaries_have_the_scores_of_rouge_score() {
    let golden = std::fs::read_to_string(repository().join("golden/rouge.json")).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    let summaries = strings(&golden["summaries"]);
    let references: Vec<Vec<&str>> = golden["references"].as_array().unwrap().iter().map(strings).collect();
    for (name, count) in [("one", 1), ("two", 2)] {
        let scores = rouge(&summaries, &references[..count]).unwrap();
        for (kind, Rouge { precision, recall, f1 }) in
            [("rouge1", scores.rouge1), ("rouge2", scores.rouge2), ("rougeL", scores.rouge_l)]
        {
            for (found, expected) in
                [precision, recall, f1].iter().zip(golden[name][kind].as_array().unwrap())
            {
                let expected = expected.as_f64().unwrap();
                assert!((found - expected).abs() < 1e-9, "{name} {kind}: {found} {expected}");
            }
        }
    }
    assert!(rouge(&["a"], &[["a", "b"]]).is_err());
}

#[test]
fn answers_have_the_scores_of_squad() {
    let golden = std::fs::read_to_string(repository().join("golden/squad.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&golden).unwrap();
    for case in &cases {
        let mut scores = AnswerScores::default();
        scores.add(&strings(&case["known"]), case["found"].as_str().unwrap());
        let [exact, f1] = ["exact", "f1"].map(|name| case[name].as_f64().unwrap());
        let all = scores.all();
        assert!((all.exact() - exact).abs() < 1e-4 && (all.f1() - f1).abs() < 1e-4, "{case}: {all:?}");
    }
}
