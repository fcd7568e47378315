//! Our own way to look inside.

use super::Running;
use super::encoder::Folder;
use attentive_serve::{Limits, ModelPlace, Settings};
use serde_json::{Value, json};
use std::path::Path;

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
        explained(&server.post("/v1/attention", &ask).ok());
    }
}

/// Checks that the weights of the only head in an answer are the softmax of its vectors.
#[track_caller]
fn explained(answer: &Value) {
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
        let weights = numbers(&matrix["weights"][row]);
        assert!(weights.len() == keys.len() && weights[seen..].iter().all(|weight| *weight == 0.0));
        for (power, weight) in powers.iter().zip(weights) {
            assert!((power / powers.iter().sum::<f64>() - weight).abs() < 1e-4);
        }
    }
}

#[test]
fn an_encoder_and_a_language_model_show_what_each_token_of_a_text_looks_at() {
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/gpt2/saved");
    let words = Folder::new("hidden");
    let models = vec![words.named("words"), ModelPlace::named("small", small)];
    let server = Running::start_with(Settings::default(), models);
    for (model, kind, other, layers) in
        [("words", "encoder", "causal", "encoder_layers"), ("small", "causal", "encoder", "decoder_layers")]
    {
        let details = server.get(&format!("/v1/models/{model}")).ok()["details"].clone();
        let [layers, h] = [layers, "h"].map(|name| details[name].as_u64().unwrap());
        let ask = |more: Value| {
            let mut ask = json!({"model": model, "text": "a dog and a cat"});
            ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            server.post("/v1/attention", &ask)
        };
        let whole = ask(json!({})).ok();
        let matrices = whole["attention"].as_array().unwrap();
        assert_eq!(matrices.len() as u64, layers * (h + 1));
        let tokens = whole["source"].as_array().unwrap().len();
        for matrix in matrices {
            let expected = (&json!(kind), &json!(tokens), &json!(kind == "causal"));
            assert_eq!((&matrix["kind"], &matrix["rows"], &matrix["causal"]), expected);
        }
        let head = json!({"layers": [1], "heads": [1], "vectors": {"kind": kind, "layer": 1, "head": 1}});
        explained(&ask(head).ok());
        for (field, more) in [
            ("kinds", json!({"kinds": [other]})),
            ("layers", json!({"layers": [9]})),
            ("heads", json!({"heads": [h]})),
            ("vectors.layer", json!({"vectors": {"kind": other, "layer": 0, "head": 0}})),
            ("target", json!({"target": "de"})),
            ("translation", json!({"translation": "ein Hund"})),
            ("text", json!({"text": ""})),
            ("text", json!({"text": "a dog and a cat ".repeat(20)})),
        ] {
            ask(more).refused(400, Some(field));
        }
    }
    // Where no model translates and none is named, the first is looked into.
    assert_eq!(server.post("/v1/attention", &json!({"text": "a dog"})).ok()["model"], "words");
}

/// T5 adds numbers for distances to its scores, DeBERTa products with vectors of distances.
#[test]
fn terms_that_are_added_to_scores_are_told_apart() {
    let t5 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/t5/first");
    let deberta = Folder::of("deberta", "masked");
    let models = vec![deberta.named("deberta"), ModelPlace::named("t5", t5)];
    let server = Running::start_with(Settings::default(), models);
    let products = ["content_to_position", "position_to_content"];
    for (model, kind, terms) in [
        ("deberta", "encoder", &products[..]),
        ("t5", "encoder", &["distance"]),
        ("t5", "decoder", &["distance"]),
        ("t5", "cross", &[]),
    ] {
        let ask = |part: Value| {
            let mut ask = json!({
                "model": model, "text": "a dog and a cat", "kinds": [kind], "layers": [1], "heads": [2], "part": part,
                "vectors": {"kind": kind, "layer": 1, "head": 2},
            });
            if model == "t5" {
                ask["translation"] = json!("a cat");
            }
            server.post("/v1/attention", &ask).ok()
        };
        let matrix = |answer: &Value| answer["attention"][0].clone();
        let whole = ask(Value::Null);
        assert_eq!(matrix(&whole)["biased"] == true, !terms.is_empty());
        let vectors = &whole["vectors"];
        let told = vectors["terms"].as_array().cloned().unwrap_or_default();
        assert_eq!(told.iter().map(|term| term["term"].as_str().unwrap()).collect::<Vec<_>>(), terms);
        let rows = |all: &Value| all.as_array().unwrap().iter().map(numbers).collect::<Vec<_>>();
        let (queries, keys) = (rows(&vectors["queries"]), rows(&vectors["keys"]));
        let told: Vec<_> = told.iter().map(|term| rows(&term["numbers"])).collect();
        let scale = vectors["scale"].as_f64().unwrap();
        for (part, content, bias) in
            [(Value::Null, 1.0, 1.0), (json!("content"), 1.0, 0.0), (json!("bias"), 0.0, 1.0)]
        {
            let (content, bias) = if terms.is_empty() { (1.0, 0.0) } else { (content, bias) };
            let answer = ask(part.clone());
            assert_eq!(matrix(&answer)["part"], part);
            for (row, query) in queries.iter().enumerate() {
                let score = |(at, key): (usize, &Vec<f64>)| {
                    let product: f64 = query.iter().zip(key).map(|(q, k)| q * k).sum();
                    let terms: f64 = told.iter().map(|term| term[row][at]).sum();
                    (content * scale * product + bias * terms).exp()
                };
                let seen = if vectors["causal"] == true { row + 1 } else { keys.len() };
                let powers: Vec<f64> = keys[..seen].iter().enumerate().map(score).collect();
                let weights = numbers(&matrix(&answer)["weights"][row]);
                for (power, weight) in powers.iter().zip(weights) {
                    assert!(
                        (power / powers.iter().sum::<f64>() - weight).abs() < 2e-5,
                        "{model} {kind} {part}"
                    );
                }
            }
        }
    }
}

#[test]
fn hidden_states_are_as_many_numbers_as_can_be_seen() {
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/gpt2/saved");
    let models = vec![ModelPlace::numbers(), ModelPlace::named("small", small)];
    let server = Running::start_with(Settings::default(), models);
    let hidden = |model: &str, hidden: Value| {
        let ask = json!({"model": model, "text": "twenty-one", "kinds": [], "hidden": hidden});
        server.post("/v1/attention", &ask)
    };
    let layers = server.get("/v1/models/numbers").ok()["details"]["decoder_layers"].as_u64().unwrap();
    for (stack, tokens) in [("encoder", "source"), ("decoder", "shown")] {
        let points = ["embedding", "attention", "feed_forward", "output"].map(|point| (point, 0));
        for (point, layer) in points.into_iter().chain([("feed_forward", layers - 1)]) {
            let answer = hidden("numbers", json!({"stack": stack, "point": point, "layer": layer})).ok();
            let states = &answer["hidden"];
            let values = states["values"].as_array().unwrap();
            let norms = numbers(&states["norms"]);
            assert_eq!((values.len(), norms.len()), (answer[tokens].as_array().unwrap().len(), values.len()));
            let [width, together] = ["width", "together"].map(|name| states[name].as_u64().unwrap() as usize);
            for (values, norm) in values.iter().map(numbers).zip(norms) {
                assert!(values.len() <= 64 && values.len() == width.div_ceil(together));
                let furthest = values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
                assert!(furthest <= norm + 1e-3 && norm <= furthest * (width as f64).sqrt() + 1e-3);
            }
        }
    }
    assert_eq!(hidden("small", json!({"stack": "decoder", "point": "output"})).ok()["hidden"]["layer"], 0);
    for (model, step, field) in [
        ("small", json!({"stack": "encoder", "point": "output"}), "hidden"),
        ("small", json!({"stack": "decoder", "point": "cross", "layer": 0}), "hidden"),
        ("numbers", json!({"stack": "decoder", "point": "cross", "layer": layers}), "hidden"),
        ("numbers", json!({"stack": "decoder", "point": "middle"}), "hidden.point"),
    ] {
        hidden(model, step).refused(400, Some(field));
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
