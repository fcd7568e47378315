//! The addresses of text-embeddings-inference.

use super::Running;
use super::encoder::{Folder, answers, near, start};
use super::strain::eventually;
use attentive_serve::{Limits, ModelPlace, Settings};
use serde_json::{Value, json};
use std::time::Duration;

#[track_caller]
fn refused(server: &Running, path: &str, ask: &Value, status: u16, kind: &str) -> String {
    let answer = server.post(path, ask);
    let json = answer.json();
    assert_eq!((answer.status, json["error_type"].as_str()), (status, Some(kind)), "{json}");
    json["error"].as_str().unwrap().to_owned()
}

#[test]
fn texts_are_embedded_and_cut_where_that_is_asked_for() {
    let server = start(Settings::default(), true);
    let answers = answers();
    let texts = &answers["texts"].as_array().unwrap()[..4];
    let found = server.post("/embed", &json!({"inputs": texts, "truncate": true})).ok();
    assert_eq!(found.as_array().unwrap().len(), 4);
    for (found, expected) in found.as_array().unwrap().iter().zip(answers["mean"].as_array().unwrap()) {
        near(found, expected);
    }
    let one = server.post("/embed", &json!({"inputs": texts[0], "model": "words"})).ok();
    assert_eq!(one, json!([found[0]]));
    let message = refused(&server, "/embed", &json!({"inputs": texts}), 413, "Validation");
    assert!(message.contains("text 3") && message.contains("`truncate`"), "{message}");
}

#[test]
fn vectors_are_divided_by_their_lengths_unless_asked_otherwise() {
    let folder = Folder::new("hidden");
    let module = |kind: &str, path: &str| json!({"idx": 0, "name": "0", "path": path, "type": format!("sentence_transformers.models.{kind}")});
    folder.write(
        "modules.json",
        &json!([module("Transformer", ""), module("Pooling", "1_Pooling")]).to_string(),
    );
    folder.write("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true}"#);
    let server = Running::start_with(Settings::default(), vec![folder.named("words")]);
    let embed = |ask: Value| server.post("/embed", &ask).ok()[0].clone();
    let length = |vector: &Value| {
        let squares = vector.as_array().unwrap().iter().map(|x| x.as_f64().unwrap().powi(2));
        squares.sum::<f64>().sqrt()
    };
    let whole = embed(json!({"inputs": "A dog runs.", "normalize": false}));
    near(&whole, &answers()["first"][0]);
    assert!(length(&whole) > 6.0);
    assert!((length(&embed(json!({"inputs": "A dog runs."}))) - 1.0).abs() < 1e-6);
    assert_eq!(server.get("/info").ok()["model_type"], json!({"embedding": {"pooling": "cls"}}));
}

#[test]
fn texts_and_pairs_have_the_classes_of_transformers() {
    let server = start(Settings::default(), true);
    let answers = answers();
    let mut inputs: Vec<Value> =
        answers["texts"].as_array().unwrap()[..4].iter().map(|text| json!([text])).collect();
    inputs.extend(answers["pairs"].as_array().unwrap().iter().cloned());
    let found = server.post("/predict", &json!({"inputs": inputs, "truncate": true})).ok();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 6);
    for (number, found) in found.iter().enumerate() {
        // The fifth text is empty, and left out here.
        let expected = &answers["classes"][if number < 4 { number } else { number + 1 }];
        let found = found.as_array().unwrap();
        assert_eq!(found.len(), 3);
        for one in found {
            let (score, label) = (one["score"].as_f64().unwrap(), one["label"].as_str().unwrap());
            assert!((score - expected[label].as_f64().unwrap()).abs() < 1e-5, "{one} is not {expected}");
        }
        assert!(found.windows(2).all(|two| two[0]["score"].as_f64() >= two[1]["score"].as_f64()));
    }
    // One text, a list of one, and a pair are answered without a list around.
    let one = |inputs: &Value| server.post("/predict", &json!({"inputs": inputs})).ok();
    assert_eq!(one(&answers["texts"][0]), found[0]);
    assert_eq!(one(&json!([answers["texts"][0]])), found[0]);
    assert_eq!(one(&answers["pairs"][0]), found[4]);
}

#[test]
fn raw_scores_become_probabilities_by_softmax() {
    let server = start(Settings::default(), false);
    let ask = |raw: bool| {
        let answer = server.post("/predict", &json!({"inputs": "a dog", "raw_scores": raw})).ok();
        let scores = answer.as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap());
        scores.collect::<Vec<f64>>()
    };
    let (raw, scores) = (ask(true), ask(false));
    let sum: f64 = raw.iter().map(|x| x.exp()).sum();
    assert!((scores.iter().sum::<f64>() - 1.0).abs() < 1e-6 && (raw.iter().sum::<f64>() - 1.0).abs() > 1e-3);
    raw.iter().zip(&scores).for_each(|(raw, score)| assert!((raw.exp() / sum - score).abs() < 1e-6));
}

#[test]
fn the_root_is_asked_for_what_the_server_can_do() {
    let server = start(Settings::default(), true);
    let ask = json!({"inputs": "a dog"});
    assert_eq!(server.post("/", &ask).ok(), server.post("/embed", &ask).ok());
    let folder = Folder::new("sequence");
    let keys = vec!["secret".to_owned()];
    let server = Running::start_with(Settings { keys, ..Settings::default() }, vec![folder.named("moods")]);
    refused(&server, "/", &ask, 401, "Validation");
    let headers = [("Content-Type", "application/json"), ("Authorization", "Bearer secret")];
    let answer = |path: &str| server.client().send("POST", path, &headers, ask.to_string().as_bytes()).ok();
    assert_eq!(answer("/"), answer("/predict"));
    assert_eq!(server.get("/").status, 200);
    let server = Running::start_with(Settings::default(), vec![ModelPlace::numbers()]);
    refused(&server, "/", &ask, 424, "Backend");
}

#[test]
fn what_takes_too_long_is_given_up_with_a_reason() {
    let limits = Limits { time: Duration::ZERO, ..Limits::default() };
    let server = start(Settings { limits, ..Settings::default() }, false);
    // A machine may be so busy that an answer is there before anybody has looked at the clock.
    let late = |path: &str, ask: &Value| {
        let mut answers = (0..100).map(|_| server.post(path, ask));
        answers.find(|answer| answer.status != 200).expect("not once in a hundred times was it too late")
    };
    let texts = vec!["a dog runs, and the cat runs"; 100];
    let answer = late("/embed", &json!({"inputs": texts}));
    let json = answer.json();
    assert_eq!((answer.status, json["error_type"].as_str()), (408, Some("Overloaded")), "{json}");
    assert!(json["error"].as_str().unwrap().contains("send fewer or shorter texts"), "{json}");
    late("/v1/embeddings", &json!({"input": texts})).refused(408, None);
    eventually("nothing is left of it", || server.metric("attentive_queue_sentences") == 0.0);
}

#[test]
fn info_tells_what_the_model_is_and_what_it_takes() {
    let limits = Limits { texts: 7, ..Limits::default() };
    let server = start(Settings { queue: 99, limits, ..Settings::default() }, true);
    let info = server.get("/info").ok();
    for (field, expected) in [
        ("model_id", json!("words")),
        ("model_sha", json!(null)),
        ("model_dtype", json!("float32")),
        ("model_type", json!({"embedding": {"pooling": "mean"}})),
        ("max_concurrent_requests", json!(99)),
        ("max_input_length", json!(16)),
        ("max_batch_tokens", json!(2048)),
        ("max_client_batch_size", json!(7)),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(info[field], expected, "{field}");
    }
    assert_eq!(server.get("/health").status, 200);
    let folder = Folder::new("sequence");
    let server = Running::start_with(Settings::default(), vec![folder.named("moods")]);
    let classifier = &server.get("/info").ok()["model_type"]["classifier"];
    assert_eq!(classifier["id2label"], json!({"0": "bad", "1": "fair", "2": "good"}));
    assert_eq!(classifier["label2id"], json!({"bad": 0, "fair": 1, "good": 2}));
}

#[test]
fn texts_are_ranked_for_a_query_as_transformers_scores_them() {
    let folder = Folder::new("rank");
    let server = Running::start_with(Settings::default(), vec![folder.named("ranks")]);
    let answers = answers();
    // The last text is empty, and left out here.
    let texts = &answers["texts"].as_array().unwrap()[..4];
    let (query, logits) = (&answers["questions"][0], answers["ranks"][0].as_array().unwrap());
    let ask =
        json!({"query": query, "texts": texts, "raw_scores": true, "return_text": true, "truncate": true});
    let found = server.post("/rerank", &ask).ok();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 4);
    for one in found {
        let index = one["index"].as_u64().unwrap() as usize;
        assert!((one["score"].as_f64().unwrap() - logits[index].as_f64().unwrap()).abs() < 1e-5, "{one}");
        assert_eq!(one["text"], texts[index]);
    }
    assert!(found.windows(2).all(|two| two[0]["score"].as_f64() >= two[1]["score"].as_f64()));
    // Cohere's route has the same order, with scores from 0 to 1.
    let ask =
        json!({"model": "ranks", "query": query, "documents": texts, "top_n": 2, "return_documents": true});
    let ranked = server.post("/v1/rerank", &ask).ok();
    let results = ranked["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for (one, raw) in results.iter().zip(found) {
        assert_eq!((&one["index"], &one["document"]["text"]), (&raw["index"], &raw["text"]));
        let sigmoid = 1.0 / (1.0 + (-raw["score"].as_f64().unwrap()).exp());
        assert!((one["relevance_score"].as_f64().unwrap() - sigmoid).abs() < 1e-5, "{one}");
    }
    let objects = json!({"query": query, "documents": [{"text": texts[0]}]});
    assert_eq!(server.post("/v1/rerank", &objects).ok()["results"][0]["index"], 0);
    assert_eq!(server.get("/info").ok()["model_type"]["reranker"]["id2label"], json!({"0": "LABEL_0"}));
    let root = server.post("/", &json!({"query": query, "texts": ["a dog"]})).ok();
    assert_eq!(root, server.post("/rerank", &json!({"query": query, "texts": ["a dog"]})).ok());
    for (field, value) in
        [("top_n", json!(0)), ("max_tokens_per_doc", json!(9)), ("rank_fields", json!(["title"]))]
    {
        let refused = server.post("/v1/rerank", &json!({"query": "a", "documents": ["b"], field: value}));
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(field)));
    }
    refused(&server, "/rerank", &json!({"query": "a", "texts": [""]}), 422, "Validation");
    refused(&server, "/predict", &json!({"inputs": "a"}), 424, "Backend");
}

#[test]
fn refusals_have_the_statuses_of_text_embeddings_inference() {
    let limits = Limits { texts: 2, ..Limits::default() };
    let server = start(Settings { limits, ..Settings::default() }, true);
    let many = json!({"inputs": [["a"], ["b"], ["c"]]});
    refused(&server, "/predict", &many, 413, "Validation");
    refused(&server, "/embed", &json!({"inputs": ["a", "b", "c"]}), 413, "Validation");
    for ask in [json!({"inputs": []}), json!({"inputs": ""}), json!({}), json!({"inputs": 3})] {
        refused(&server, "/embed", &ask, 422, "Validation");
        refused(&server, "/predict", &ask, 422, "Validation");
    }
    let three = json!({"inputs": ["a", "b", "c"]});
    let message = refused(&server, "/predict", &three, 422, "Validation");
    assert!(message.contains("a pair"), "{message}");
    for (field, value) in
        [("dimensions", json!(3)), ("prompt_name", json!("query")), ("truncation_direction", json!("Left"))]
    {
        let message = refused(&server, "/embed", &json!({"inputs": "a", field: value}), 422, "Validation");
        assert!(message.contains(field), "{message}");
    }
    let message = refused(&server, "/predict", &json!({"inputs": "a", "model": "words"}), 424, "Backend");
    assert!(message.contains("`words` makes embeddings at /v1/embeddings, /embed"), "{message}");
    let message = refused(&server, "/embed", &json!({"inputs": "a", "model": "moods"}), 424, "Backend");
    assert!(message.contains("`moods` classifies texts at /predict"), "{message}");
    refused(&server, "/embed", &json!({"inputs": "a", "model": "none"}), 404, "Validation");
    assert_eq!(server.post_bytes("/embed", b"{").status, 422);
    let server = Running::start_with(Settings::default(), vec![ModelPlace::numbers()]);
    refused(&server, "/embed", &json!({"inputs": "a"}), 424, "Backend");
    assert_eq!(server.get("/info").status, 424);
}
