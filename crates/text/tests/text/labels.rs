//! Scores of classes and tags beside those of scikit-learn and seqeval.

use attentive_text::score::{ClassScores, Measures, SpanScores, Tallies, spans};
use serde_json::Value;
use std::path::Path;

/// All digits that a sum of some quotients can promise.
const TOLERANCE: f64 = 1e-12;

fn golden(kind: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/labels.json");
    let mut golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    serde_json::from_value(golden[kind].take()).unwrap()
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[track_caller]
fn close(found: f64, expected: &Value, of: &str) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() <= TOLERANCE, "{of}: {found}, but it should be {expected}");
}

#[track_caller]
fn close_measures(found: Measures, expected: &Value, of: &str) {
    for (found, expected) in
        [found.precision, found.recall, found.f1].into_iter().zip(expected.as_array().unwrap())
    {
        close(found, expected, of);
    }
}

#[track_caller]
fn close_averages(tallies: &Tallies, answer: &Value, of: &str) {
    close_measures(tallies.micro(), &answer["micro"], &format!("{of}, micro"));
    close_measures(tallies.macro_average(), &answer["macro"], &format!("{of}, macro"));
    close_measures(tallies.weighted(), &answer["weighted"], &format!("{of}, weighted"));
}

#[test]
fn classes_have_the_scores_of_scikit_learn() {
    for answer in golden("classes") {
        let of = &answer["name"].to_string();
        let mut scores = ClassScores::default();
        for (expected, found) in strings(&answer["expected"]).into_iter().zip(strings(&answer["found"])) {
            scores.add(expected, found);
        }
        close(scores.accuracy(), &answer["accuracy"], of);
        close_averages(scores.classes(), &answer, of);
        let each = answer["each"].as_object().unwrap();
        assert!(scores.classes().iter().map(|(name, _)| name).eq(each.keys()), "{of}");
        for (name, expected) in each {
            close_measures(scores.classes().class(name).measures(), expected, of);
        }
    }
}

#[test]
fn tags_have_the_spans_and_scores_of_seqeval() {
    for answer in golden("tags") {
        let of = &answer["name"].to_string();
        let mut scores = SpanScores::default();
        let sentences = strings(&answer["expected"]).into_iter().zip(strings(&answer["found"]));
        for ((expected, found), known) in sentences.zip(answer["spans"].as_array().unwrap()) {
            let [expected, found] = [expected, found].map(|tags| tags.split(' ').collect::<Vec<_>>());
            scores.add(&expected, &found);
            // seqeval's ends are those of the last tags.
            let spans: Vec<_> =
                spans(&expected).into_iter().map(|span| (span.kind, span.begin, span.end - 1)).collect();
            let known: Vec<(String, usize, usize)> = serde_json::from_value(known.clone()).unwrap();
            assert_eq!(spans, known, "{of}: {expected:?}");
        }
        close(scores.accuracy(), &answer["accuracy"], of);
        close_averages(scores.spans(), &answer, of);
    }
}
