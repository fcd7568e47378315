//! Models from text to text that are no translators: a T5 and a BART answer prompts and summarize. What transformers writes is in
//! `golden/t5.json` and `golden/bart.json`.

use super::Running;
use attentive_serve::{ModelPlace, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(path)
}

fn answers(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(golden(&format!("{name}.json"))).unwrap()).unwrap()
}

fn start() -> Running {
    let models =
        vec![ModelPlace::named("t5", golden("t5/first")), ModelPlace::named("bart", golden("bart/bart"))];
    Running::start_with(Settings::default(), models)
}

/// A folder of `golden` that asks for greedy search, and is gone when the test ends.
struct Greedy(PathBuf);

impl Greedy {
    fn new(name: &str, folder: &str) -> Greedy {
        let own = std::env::temp_dir().join(format!("attentive-greedy-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&own).unwrap();
        for file in std::fs::read_dir(golden(folder)).unwrap().map(|file| file.unwrap().path()) {
            std::fs::copy(&file, own.join(file.file_name().unwrap())).unwrap();
        }
        let path = own.join("generation_config.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config["num_beams"] = json!(1);
        std::fs::write(path, config.to_string()).unwrap();
        Greedy(own)
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn texts(answer: &Value) -> Vec<Value> {
    answer["choices"].as_array().unwrap().iter().map(|choice| choice["text"].clone()).collect()
}

#[test]
fn prompts_are_answered_as_by_transformers_whole_and_as_a_stream() {
    for (file, folder, new_tokens) in
        [("t5", "t5/first", 16), ("t5", "t5/later", 16), ("bart", "bart/bart", 14)]
    {
        let case = folder.rsplit('/').next().unwrap();
        let (own, answers) = (Greedy::new(case, folder), answers(file));
        let server = Running::start_with(Settings::default(), vec![ModelPlace::named(case, &own.0)]);
        let (prompts, greedy) = (&answers["prompts"], answers[case]["greedy"].as_array().unwrap());
        let ask = json!({"prompt": prompts, "max_tokens": new_tokens, "logprobs": 1});
        let answer = server.post("/v1/completions", &ask).ok();
        assert_eq!(texts(&answer), *greedy, "{case}");
        // Ids are read as they are, and special tokens in a prompt are tokens.
        let ids =
            server.post("/v1/completions", &json!({"prompt": answers["ids"], "max_tokens": new_tokens})).ok();
        assert_eq!(texts(&ids), *greedy, "{case}");
        for (prompt, text) in prompts.as_array().unwrap().iter().zip(greedy) {
            let ask = json!({"prompt": prompt, "max_tokens": new_tokens, "stream": true});
            let events = server.post("/v1/completions", &ask).events();
            let piece = |(_, data): &(String, String)| serde_json::from_str::<Value>(data).ok();
            let pieces = events.iter().filter_map(piece);
            let streamed: String =
                pieces.filter_map(|piece| Some(piece["choices"][0]["text"].as_str()?.to_owned())).collect();
            assert_eq!(streamed, *text, "{case}");
        }
        let entry = &server.get("/v1/models").ok()["data"][0]["details"];
        assert!(entry["routes"].as_array().unwrap().contains(&json!("/v1/summarize")), "{entry}");
    }
}

#[test]
fn what_an_answer_cannot_have_is_refused_and_draws_follow_the_seed() {
    let server = start();
    let ask = |more: Value| {
        let mut ask = json!({"model": "t5", "prompt": "A batch is packed:", "max_tokens": 8});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/completions", &ask)
    };
    for (field, more) in [
        ("echo", json!({"echo": true})),
        ("suffix", json!({"suffix": "x"})),
        ("best_of", json!({"best_of": 3})),
        ("max_tokens", json!({"max_tokens": 0})),
        ("prompt", json!({"prompt": [99_999]})),
        ("prompt", json!({"prompt": []})),
    ] {
        let answer = ask(more);
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            answer.status == 400 && message.contains(&format!("`{field}`")),
            "{} {message}",
            answer.status
        );
    }
    let drawn = |seed: u32| texts(&ask(json!({"temperature": 2.0, "seed": seed, "n": 4})).ok());
    assert_eq!((drawn(1).len(), drawn(1)), (4, drawn(1)));
    assert_ne!(drawn(1), drawn(2));
    assert_eq!(texts(&ask(json!({"n": 3})).ok()).len(), 3);
    // A text that is longer than the model reads.
    let long = json!({"model": "bart", "prompt": "word ".repeat(100)});
    let message =
        server.post("/v1/completions", &long).json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("maximum context length is 48 tokens"), "{message}");
    // Translators have no prompts, and a chat stays what it was.
    assert_eq!(
        server
            .post(
                "/v1/chat/completions",
                &json!({"model": "t5", "messages": [{"role": "user", "content": "A"}]})
            )
            .status,
        200
    );
    assert_eq!(server.post("/v1/next", &json!({"text": "A"})).status, 400);
}

#[test]
fn texts_are_summarized_in_parts() {
    let server = start();
    let ask = |model: &str, inputs: Value, more: Value| {
        let parameters = json!({"max_length": 7, "num_beams": 2});
        let mut parameters = parameters.as_object().unwrap().clone();
        parameters.extend(more.as_object().unwrap().clone());
        server.post("/v1/summarize", &json!({"model": model, "inputs": inputs, "parameters": parameters}))
    };
    let sentences = ["Weights are f32.", "A batch is packed, and it has no padding.", "The rest is zero."];
    let alone = ask("bart", json!(sentences), json!({})).ok();
    assert!(alone.as_array().unwrap().iter().all(|summary| summary["parts"] == 1), "{alone}");
    // The model reads 48 tokens: all of these sentences are too many for it.
    let whole = ask("bart", json!(sentences.join("  ")), json!({})).ok();
    assert!(whole[0]["parts"].as_u64().unwrap() > 1, "{whole}");
    let nested =
        json!({"generate_parameters": {"max_length": 7, "num_beams": 2}, "truncation": "do_not_truncate"});
    let nested =
        server.post("/v1/summarize", &json!({"model": "bart", "inputs": sentences, "parameters": nested}));
    assert_eq!(nested.ok(), alone);
    assert_eq!(server.post("/", &json!({"model": "bart", "inputs": sentences[0]})).status, 200);
    let blank = ask("t5", json!([" \n ", "A batch is packed."]), json!({})).ok();
    assert_eq!((&blank[0], &blank[1]["parts"]), (&json!({"summary_text": "", "parts": 0}), &json!(1)));
    for (field, more) in [
        ("parameters.num_beams", json!({"num_beams": 99})),
        ("parameters.temperature", json!({"do_sample": true, "temperature": 0.0})),
        ("parameters", json!({"repetition_penalty": 2.0})),
        ("parameters", json!({"max_length": "long"})),
    ] {
        let answer = ask("bart", json!("A"), more);
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            answer.status == 400 && message.contains(&format!("`{field}`")),
            "{} {message}",
            answer.status
        );
    }
    let other = Running::start(Settings::default()).post("/v1/summarize", &json!({"inputs": "A"}));
    assert!(other.text().contains("no model of this server summarizes texts"), "{}", other.text());
}
