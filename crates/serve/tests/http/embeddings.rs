//! OpenAI's embeddings, and how texts of many clients share batches.

use super::Running;
use super::encoder::{Folder, answers, near, start};
use super::strain::{eventually, slow};
use attentive_serve::{Limits, Settings};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

fn embeddings(server: &Running, ask: &Value) -> Value {
    server.post("/v1/embeddings", ask).ok()
}

#[test]
fn texts_have_the_vectors_of_transformers() {
    let server = start(Settings::default(), false);
    let answers = answers();
    let answer = embeddings(&server, &json!({"model": "words", "input": answers["texts"][0]}));
    assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!("words")));
    // [CLS] a dog runs . [SEP], of which `runs` is two tokens.
    assert_eq!(answer["usage"], json!({"prompt_tokens": 7, "total_tokens": 7}));
    let texts: Vec<&Value> = [0, 1, 3].map(|i| &answers["texts"][i]).into();
    let answer = embeddings(&server, &json!({"input": texts, "encoding_format": "float", "user": "me"}));
    for (index, text) in [0, 1, 3].into_iter().enumerate() {
        let one = &answer["data"][index];
        assert_eq!((&one["object"], &one["index"]), (&json!("embedding"), &json!(index)));
        near(&one["embedding"], &answers["mean"][text]);
    }
    assert_eq!((answer["data"].as_array().unwrap().len(), &answer["model"]), (3, &json!("words")));
}

#[test]
fn base64_has_the_bytes_of_the_same_numbers() {
    let server = start(Settings::default(), false);
    let ask = |format: &str| json!({"input": ["A dog runs.", "zzz"], "encoding_format": format});
    let (floats, encoded) = (embeddings(&server, &ask("float")), embeddings(&server, &ask("base64")));
    for index in 0..2 {
        let bytes = BASE64_STANDARD.decode(encoded["data"][index]["embedding"].as_str().unwrap()).unwrap();
        let numbers: Vec<f32> =
            bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        let expected: Vec<f32> = serde_json::from_value(floats["data"][index]["embedding"].clone()).unwrap();
        assert_eq!((numbers.len(), numbers), (32, expected));
    }
}

#[test]
fn tokens_have_the_vector_of_their_text() {
    let server = start(Settings::default(), false);
    let words: Vec<String> = serde_json::from_value(answers()["words"].clone()).unwrap();
    let id = |word: &str| words.iter().position(|known| known == word).unwrap();
    let ids = ["[CLS]", "a", "dog", "[SEP]"].map(id);
    let text = embeddings(&server, &json!({"input": "a dog"}));
    for input in [json!(ids), json!([ids])] {
        assert_eq!(embeddings(&server, &json!({"input": input})), text);
    }
    let message =
        server.post("/v1/embeddings", &json!({"input": [[1], [2, 100]]})).refused(400, Some("input"));
    assert!(message.contains("text 2") && message.contains("100 tokens"), "{message}");
}

#[test]
fn vectors_are_as_the_folder_says() {
    let folder = Folder::new("hidden");
    let module = |kind: &str, path: &str| json!({"idx": 0, "name": "0", "path": path, "type": format!("sentence_transformers.models.{kind}")});
    folder.write(
        "modules.json",
        &json!([module("Transformer", ""), module("Pooling", "1_Pooling")]).to_string(),
    );
    folder.write("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true}"#);
    let server = Running::start_with(Settings::default(), vec![folder.named("words")]);
    let answer = embeddings(&server, &json!({"input": "A dog runs."}));
    near(&answer["data"][0]["embedding"], &answers()["first"][0]);
}

#[test]
fn a_model_with_a_head_for_masks_makes_embeddings() {
    let folder = Folder::new("masked");
    let server = Running::start_with(Settings::default(), vec![folder.named("words")]);
    let answer = embeddings(&server, &json!({"input": "A dog runs."}));
    assert_eq!(answer["data"][0]["embedding"].as_array().unwrap().len(), 32);
    assert_eq!(server.get("/v1/models").ok()["data"][0]["details"]["task"], "fill-mask");
}

#[test]
fn what_cannot_be_embedded_is_refused_by_name() {
    let limits = Limits { texts: 3, characters: 100, ..Limits::default() };
    let server = start(Settings { limits, ..Settings::default() }, true);
    let refused = |ask: Value, status: u16, field: &str, words: &[&str]| {
        let message = server.post("/v1/embeddings", &ask).refused(status, Some(field));
        words.iter().for_each(|word| assert!(message.contains(word), "{message}"));
    };
    let long = answers()["texts"][2].clone();
    let words = &["text 2", "maximum context length is 16 tokens"];
    refused(json!({"input": ["a", long]}), 400, "input", words);
    refused(json!({"input": vec![3; 17]}), 400, "input", &["17 tokens", "maximum context length is 16"]);
    refused(json!({"input": []}), 400, "input", &["no text"]);
    refused(json!({"input": ""}), 400, "input", &["empty"]);
    refused(json!({"input": [[]]}), 400, "input", &["empty"]);
    refused(json!({"input": {"text": "a"}}), 400, "input", &["list of tokens"]);
    refused(json!({"input": [-1]}), 400, "input", &["list of tokens"]);
    refused(json!({"input": "a", "dimensions": 16}), 400, "dimensions", &["32 numbers"]);
    refused(json!({"input": "a", "encoding_format": "hex"}), 400, "encoding_format", &["base64"]);
    refused(json!({"input": ["a", "a", "a", "a"]}), 413, "input", &["--max-texts"]);
    refused(json!({"input": "a".repeat(101)}), 413, "input", &["--max-characters"]);
    refused(json!({"input": "a", "model": "none"}), 404, "model", &["`numbers`, `words`, `moods`"]);
    refused(json!({"input": "a", "model": "numbers"}), 400, "model", &["`numbers` translates at /translate"]);
    refused(json!({"input": "a", "model": "moods"}), 400, "model", &["`moods` classifies texts at /predict"]);
    assert_eq!(embeddings(&server, &json!({"input": "a", "dimensions": 32}))["data"][0]["index"], 0);
}

#[test]
fn a_translator_is_asked_elsewhere() {
    let server = start(Settings::default(), false);
    let asks = [
        ("/v1/translate", json!({"text": "one"})),
        ("/v1/completions", json!({"prompt": "one"})),
        ("/v1/chat/completions", json!({"messages": [{"role": "user", "content": "one"}]})),
    ];
    for (path, mut ask) in asks {
        let message = server.post(path, &ask).refused(400, Some("model"));
        let does = if path == "/v1/completions" { "completes prompts" } else { "translates" };
        assert!(message.contains(&format!("no model of this server {does}")), "{message}");
        assert!(message.contains("`words` makes embeddings at /v1/embeddings, /embed"), "{message}");
        ask["model"] = json!("words");
        let message = server.post(path, &ask).refused(400, Some("model"));
        assert!(message.contains("`words` makes embeddings at /v1/embeddings, /embed"), "{message}");
    }
    let refused = server.post("/translate", &json!({"q": "one", "source": "en", "target": "de"}));
    assert_eq!(refused.status, 400);
    assert!(refused.json()["error"].as_str().unwrap().contains("`words` makes embeddings"));
    assert_eq!(server.get("/languages").ok(), json!([]));
    assert_eq!(server.get("/frontend/settings").ok()["language"]["target"]["code"], "und");
}

#[test]
fn models_say_what_they_do() {
    let server = start(Settings::default(), true);
    let models = server.get("/v1/models").ok();
    let models: Vec<&Value> = models["data"].as_array().unwrap().iter().collect();
    let task =
        |name: &str| models.iter().find(|model| model["id"] == name).unwrap()["details"]["task"].clone();
    assert_eq!(["numbers", "words", "moods"].map(task), ["translate", "embed", "classify"]);
    let moods = server.get("/v1/models/moods").ok()["details"].clone();
    assert_eq!((&moods["labels"], &moods["max_source"]), (&json!(["bad", "fair", "good"]), &json!(16)));
    let routes = json!(["/predict", "/v1/classify", "/v1/attention"]);
    assert_eq!((&moods["d_model"], &moods["routes"]), (&json!(32), &routes));
}

#[test]
fn a_text_has_the_same_vector_whatever_shares_its_batch() {
    let server = start(Settings::default(), true);
    let words = ["a dog", "the woman in London, running", "zzz", "Ada Lovelace and a small red house", "a"];
    let asks: Vec<Value> = (0..40)
        .map(|i| {
            let texts: Vec<&str> = (0..=i % 7).map(|j| words[(i * 3 + j) % words.len()]).collect();
            let format = if i % 2 == 0 { "float" } else { "base64" };
            json!({"input": texts, "encoding_format": format})
        })
        .collect();
    let alone: Vec<Value> = asks.iter().map(|ask| embeddings(&server, ask)).collect();
    let batches = server.metric("attentive_batches_total");
    assert_eq!(batches, 40.0);
    std::thread::scope(|scope| {
        let together: Vec<_> = asks.iter().map(|ask| scope.spawn(|| embeddings(&server, ask))).collect();
        for (alone, together) in alone.iter().zip(together) {
            assert_eq!(*alone, together.join().unwrap());
        }
    });
    let texts: usize = asks.iter().map(|ask| ask["input"].as_array().unwrap().len()).sum();
    assert_eq!(server.metric("attentive_texts_total"), 2.0 * texts as f64);
    assert_eq!(server.metric("attentive_batch_texts_total"), 2.0 * texts as f64);
}

#[test]
fn an_encoder_and_a_translator_do_not_wait_for_each_other() {
    let server = start(Settings { queue: 41, ..Settings::default() }, true);
    let mut first = server.client();
    let json = [("Content-Type", "application/json")];
    first.write_request("POST", "/v1/translate", &json, slow().to_string().as_bytes());
    eventually("the queue fills", || server.metric("attentive_queue_sentences") == 40.0);
    let answer = embeddings(&server, &json!({"input": "a dog"}));
    assert_eq!(answer["data"].as_array().unwrap().len(), 1);
    assert_eq!(server.metric("attentive_queue_sentences"), 40.0, "the translation was waited for");
    // There is one place left.
    let two = json!({"input": ["a", "b"]});
    let refused = server.post("/v1/embeddings", &two);
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (503, true));
    let refused = server.post("/embed", &json!({"inputs": ["a", "b"]}));
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (429, true));
    assert_eq!(refused.json()["error_type"], "Overloaded");
    server.post("/v1/embeddings", &json!({"input": vec!["a"; 42]})).refused(413, Some("input"));
    first.leave();
    eventually("there is room", || server.metric("attentive_queue_sentences") == 0.0);
    assert_eq!(embeddings(&server, &two)["data"].as_array().unwrap().len(), 2);
}

#[test]
fn what_was_accepted_is_answered_before_the_server_leaves() {
    let mut server = start(Settings { queue: 2000, ..Settings::default() }, false);
    let ask = json!({"input": vec!["the woman in London, running"; 100]}).to_string();
    let mut clients: Vec<super::Client> = (0..16).map(|_| server.client()).collect();
    for client in &mut clients {
        client.write_request(
            "POST",
            "/v1/embeddings",
            &[("Content-Type", "application/json")],
            ask.as_bytes(),
        );
    }
    eventually("all have been accepted", || {
        server.metric("attentive_queue_sentences") + server.metric("attentive_texts_total") == 1600.0
    });
    std::thread::scope(|scope| {
        scope.spawn(|| server.leave());
        for client in clients {
            assert_eq!(client.read().ok()["data"].as_array().unwrap().len(), 100);
        }
    });
}

#[test]
fn with_keys_nobody_embeds_without_one() {
    let server = start(Settings { keys: vec!["secret".to_owned()], ..Settings::default() }, false);
    for path in ["/v1/embeddings", "/embed", "/predict"] {
        assert_eq!(server.post(path, &json!({"input": "a", "inputs": "a"})).status, 401, "{path}");
        let headers = [("Content-Type", "application/json"), ("Authorization", "Bearer secret")];
        let body = json!({"input": "a", "inputs": "a"}).to_string();
        assert_eq!(server.client().send("POST", path, &headers, body.as_bytes()).status, 200, "{path}");
    }
    assert_eq!((server.get("/info").status, server.get("/health").status), (401, 200));
}
