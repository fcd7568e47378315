//! Our own way to look inside.

use super::Running;
use attentive_serve::{Limits, Settings};
use serde_json::{Value, json};

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn every_head_of_every_layer_can_be_seen_and_rows_sum_to_one() {
    let server = Running::start(Settings::default());
    let details = server.get("/v1/models/numbers").ok()["details"].clone();
    let count = |name: &str| details[name].as_u64().unwrap() as usize;
    let answer = server.post("/v1/attention", &json!({"text": "twenty-one", "target": "de"})).ok();
    let matrices = answer["attention"].as_array().unwrap();
    assert_eq!(matrices.len(), (count("encoder_layers") + 2 * count("decoder_layers")) * (count("h") + 1));
    let (source, target) =
        (answer["source"].as_array().unwrap().len(), answer["target"].as_array().unwrap().len());
    assert_eq!((source, target, answer["shown"].as_array().unwrap().len()), (5, 4, 4));
    for matrix in matrices {
        let (rows, columns) = match matrix["kind"].as_str().unwrap() {
            "encoder" => (source, source),
            "decoder" => (target, target),
            _ => (target, source),
        };
        let weights = matrix["weights"].as_array().unwrap();
        assert_eq!(
            (&matrix["rows"], &matrix["columns"], weights.len()),
            (&json!(rows), &json!(columns), rows)
        );
        for (row, weights) in weights.iter().enumerate() {
            let weights = numbers(weights);
            assert!(
                (weights.iter().sum::<f64>() - 1.0).abs() < 1e-3 && weights.len() == columns,
                "{weights:?}"
            );
            assert!(matrix["causal"] == false || weights[row + 1..].iter().all(|weight| *weight == 0.0));
        }
    }
}

#[test]
fn weights_are_the_softmax_of_the_vectors() {
    let server = Running::start(Settings::default());
    for kind in ["encoder", "decoder", "cross"] {
        let ask = json!({
            "text": "twenty-one", "translation": "einundzwanzig", "kinds": [kind], "layers": [1], "heads": [2],
            "vectors": {"kind": kind, "layer": 1, "head": 2},
        });
        let answer = server.post("/v1/attention", &ask).ok();
        let [matrix] = &answer["attention"].as_array().unwrap()[..] else { panic!("{answer}") };
        let vectors = &answer["vectors"];
        let rows = |name: &str| vectors[name].as_array().unwrap().iter().map(numbers).collect::<Vec<_>>();
        let (queries, keys) = (rows("queries"), rows("keys"));
        let scale = vectors["scale"].as_f64().unwrap();
        assert!((scale - 1.0 / (queries[0].len() as f64).sqrt()).abs() < 1e-6);
        for (row, query) in queries.iter().enumerate() {
            let seen = if vectors["causal"] == true { row + 1 } else { keys.len() };
            let dot = |key: &Vec<f64>| scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
            let powers: Vec<f64> = keys[..seen].iter().map(|key| dot(key).exp()).collect();
            for (power, weight) in powers.iter().zip(numbers(&matrix["weights"][row])) {
                assert!((power / powers.iter().sum::<f64>() - weight).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn what_cannot_be_looked_at_is_refused_by_name() {
    let limits = Limits { characters: 2000, ..Limits::default() };
    let server = Running::start(Settings { limits, ..Settings::default() });
    for (field, ask) in [
        ("text", json!({"text": ""})),
        ("text", json!({"text": "one\ntwo"})),
        ("layers", json!({"text": "one", "layers": [2]})),
        ("layers", json!({"text": "one", "layers": [0, 0, 0, 0]})),
        ("heads", json!({"text": "one", "heads": [4]})),
        ("kinds", json!({"text": "one", "kinds": ["cross", "cross"]})),
        ("kinds[0]", json!({"text": "one", "kinds": ["all"]})),
        ("vectors.layer", json!({"text": "one", "vectors": {"kind": "cross", "layer": 2, "head": 0}})),
        ("vectors.head", json!({"text": "one", "vectors": {"kind": "cross", "layer": 0, "head": 9}})),
        ("translation_tokens", json!({"text": "one", "translation_tokens": []})),
        ("translation_tokens", json!({"text": "one", "translation_tokens": [100000]})),
        ("translation", json!({"text": "one", "translation": "eins", "translation_tokens": [1]})),
    ] {
        server.post("/v1/attention", &ask).refused(400, Some(field));
    }
    let long = json!({"text": "one", "translation": "a".repeat(2001)});
    server.post("/v1/attention", &long).refused(413, Some("translation"));
}
