//! Answers to questions, as the Inference API of Hugging Face asks for them.

use super::Running;
use super::encoder::{Folder, answers};
use attentive_serve::{Limits, Settings};
use serde_json::{Value, json};

fn start() -> Running {
    let folder = Folder::new("answer");
    let limits = Limits { characters: 300, texts: 8, ..Limits::default() };
    Running::start_with(Settings { limits, ..Settings::default() }, vec![folder.named("qa")])
}

#[track_caller]
fn near(found: &Value, expected: &Value) {
    for key in ["answer", "start", "end"] {
        assert_eq!(found[key], expected[key]);
    }
    let [found, expected] = [found, expected].map(|answer| answer["score"].as_f64().unwrap());
    assert!((found - expected).abs() < 1e-5, "{found} {expected}");
}

#[test]
fn questions_are_answered_as_by_transformers() {
    let (server, answers) = (start(), answers());
    let contexts = answers["contexts"].as_array().unwrap();
    let asked = answers["questions"].as_array().unwrap().iter().flat_map(|question| {
        contexts.iter().map(move |context| json!({"question": question, "context": context}))
    });
    let asked: Vec<Value> = asked.collect();
    for (i, how) in answers["asked"].as_array().unwrap().iter().enumerate() {
        let top = how[2].as_u64().unwrap();
        let parameters = json!({
            "max_seq_len": how[0], "doc_stride": how[1].as_u64().filter(|shared| *shared > 0), "top_k": top,
            "max_answer_len": how[3], "handle_impossible_answer": how[4],
        });
        if how[1] == 0 {
            // Windows that share nothing cannot be asked for.
            continue;
        }
        let ask = |inputs: Value| json!({"inputs": inputs, "parameters": parameters});
        let all = server.post("/v1/answer", &ask(json!(asked))).ok();
        assert_eq!(all.as_array().unwrap().len(), asked.len());
        for ((found, expected), question) in
            all.as_array().unwrap().iter().zip(answers["spans"].as_array().unwrap()).zip(&asked)
        {
            let (expected, is_list) = (expected[i].as_array().unwrap(), found.is_array());
            assert_eq!(is_list, top > 1);
            let found_all = found.as_array().cloned().unwrap_or_else(|| vec![found.clone()]);
            assert_eq!(found_all.len(), expected.len());
            found_all.iter().zip(expected).for_each(|(found, expected)| near(found, expected));
            // The same alone, at either address.
            assert_eq!(server.post("/v1/answer", &ask(question.clone())).ok(), *found);
            assert_eq!(server.post("/", &ask(question.clone())).ok(), *found);
        }
    }
    let entry = server.get("/v1/models/qa").ok();
    assert_eq!(entry["details"]["task"], "answer");
    // The layers below the head make vectors.
    assert_eq!(server.post("/v1/embeddings", &json!({"input": "a dog"})).status, 200);
}

#[test]
fn what_cannot_be_answered_is_refused_by_name() {
    let server = start();
    let asked = |question: &str, context: &str| json!({"question": question, "context": context});
    let one = asked("the dog", "A dog runs.");
    for (status, field, ask) in [
        (400, "inputs", json!({})),
        (400, "inputs", json!({"inputs": "a dog"})),
        (400, "inputs", json!({"inputs": []})),
        (400, "inputs", json!({"inputs": asked("", "a dog")})),
        (400, "inputs", json!({"inputs": asked("a dog", " ")})),
        (400, "inputs", json!({"inputs": asked(&"a dog ".repeat(20), "a cat")})),
        (413, "inputs", json!({"inputs": asked("a", &"x".repeat(301))})),
        (413, "inputs", json!({"inputs": vec![one.clone(); 9]})),
        (400, "parameters.top_k", json!({"inputs": one, "parameters": {"top_k": 0}})),
        (400, "parameters.max_answer_len", json!({"inputs": one, "parameters": {"max_answer_len": 1001}})),
        (400, "parameters.align_to_words", json!({"inputs": one, "parameters": {"align_to_words": false}})),
        (404, "model", json!({"inputs": one, "model": "numbers"})),
    ] {
        let answer = server.post("/v1/answer", &ask);
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            answer.status == status && message.contains(&format!("`{field}`")),
            "{} {message} {ask}",
            answer.status
        );
    }
    let other = server.post("/v1/fill-mask", &json!({"inputs": "a dog"}));
    let message = other.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`qa` answers questions at /v1/answer"), "{message}");
}
