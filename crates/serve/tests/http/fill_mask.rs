//! Words for masks, as the Inference API of Hugging Face asks for them.

use super::Running;
use super::encoder::{Folder, answers};
use attentive_serve::{Limits, Settings};
use serde_json::{Value, json};

fn start() -> Running {
    let folder = Folder::new("masked");
    let limits = Limits { characters: 300, ..Limits::default() };
    Running::start_with(Settings { limits, ..Settings::default() }, vec![folder.named("masked")])
}

/// The tokens and scores of the words for a mask.
fn words(mask: &Value) -> Vec<(u64, f64)> {
    let word = |word: &Value| (word["token"].as_u64().unwrap(), word["score"].as_f64().unwrap());
    mask.as_array().unwrap().iter().map(word).collect()
}

#[track_caller]
fn near(mask: &Value, expected: &Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(mask.as_array().unwrap().len(), expected.len());
    for ((token, score), expected) in words(mask).into_iter().zip(expected) {
        assert_eq!(token, expected[0].as_u64().unwrap());
        assert!((score - expected[1].as_f64().unwrap()).abs() < 1e-5, "{score} {expected}");
    }
}

#[test]
fn masks_are_filled_as_by_transformers() {
    let (server, answers) = (start(), answers());
    let (texts, filled) = (answers["masked_texts"].as_array().unwrap(), &answers["filled"]);
    let top_k = filled[0][0].as_array().unwrap().len();
    let ask = |inputs: Value| json!({"inputs": inputs, "parameters": {"top_k": top_k}});
    for path in ["/v1/fill-mask", "/"] {
        // One mask has a list of words, and several have a list for each.
        let one = server.post(path, &ask(texts[0].clone())).ok();
        near(&one, &filled[0][0]);
        assert!(one[0]["sequence"].as_str().unwrap().contains(one[0]["token_str"].as_str().unwrap()));
        let several = server.post(path, &ask(texts[1].clone())).ok();
        let masks = several.as_array().unwrap();
        assert_eq!(masks.len(), filled[1].as_array().unwrap().len());
        masks.iter().zip(filled[1].as_array().unwrap()).for_each(|(mask, expected)| near(mask, expected));
        assert_eq!(server.post(path, &ask(json!(texts))).ok(), json!([one, several]));
        assert_eq!(server.post(path, &ask(json!([texts[0]]))).ok(), json!([one]));
    }
    assert_eq!(server.post("/v1/fill-mask", &json!({"inputs": texts[0]})).ok().as_array().unwrap().len(), 5);
    let entry = server.get("/v1/models/masked").ok();
    assert_eq!(entry["details"]["task"], "fill-mask");
}

#[test]
fn a_mask_filler_makes_vectors_beside_masks_and_each_has_the_same_bits_alone() {
    let (server, answers) = (start(), answers());
    let texts = &answers["masked_texts"];
    let asks = [
        ("/v1/fill-mask", json!({"inputs": texts, "parameters": {"top_k": 9}})),
        ("/v1/embeddings", json!({"input": ["a dog runs", "a cat"]})),
    ];
    let alone: Vec<Value> = asks.iter().map(|(path, ask)| server.post(path, ask).ok()).collect();
    std::thread::scope(|scope| {
        let (server, asks) = (&server, &asks);
        let beside: Vec<_> =
            (0..16).map(|i| scope.spawn(move || server.post(asks[i % 2].0, &asks[i % 2].1).ok())).collect();
        for (i, beside) in beside.into_iter().enumerate() {
            assert_eq!(beside.join().unwrap(), alone[i % 2]);
        }
    });
}

#[test]
fn what_cannot_be_filled_is_refused_by_name() {
    let server = start();
    let refused = |ask: Value, status: u16, field: &str| {
        server.post("/v1/fill-mask", &ask).refused(status, Some(field))
    };
    let message = refused(json!({"inputs": ["a [MASK] runs", "a dog"]}), 400, "inputs");
    assert!(message.contains("text 2 has no [MASK]"), "{message}");
    refused(json!({"inputs": ""}), 400, "inputs");
    refused(json!({"inputs": []}), 400, "inputs");
    refused(json!({"inputs": vec!["[MASK] [MASK] [MASK]"; 100]}), 413, "inputs");
    let message = refused(json!({"inputs": "a [MASK] and a dog ".repeat(9)}), 400, "inputs");
    assert!(message.contains("`truncate`"), "{message}");
    refused(json!({"inputs": "a [MASK]", "parameters": {"top_k": 0}}), 400, "parameters.top_k");
    refused(json!({"inputs": "a [MASK]", "parameters": {"targets": ["dog"]}}), 400, "parameters.targets");
    refused(json!({"inputs": "a [MASK]", "model": "other"}), 404, "model");
}
