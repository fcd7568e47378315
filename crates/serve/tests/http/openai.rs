//! What clients of OpenAI ask.

use super::Running;
use super::libretranslate::searching;
use attentive_serve::{ModelPlace, Settings};
use serde_json::{Value, json};

const TEXT: &str = "four thousand three hundred and twenty-one";
const TRANSLATION: &str = "viertausenddreihunderteinundzwanzig";

fn data(answer: &super::Answer) -> Vec<Value> {
    let mut events: Vec<String> = answer.events().into_iter().map(|(_, data)| data).collect();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[test]
fn models_are_listed_by_name_and_by_language() {
    let server = Running::start(Settings::default());
    let list = server.get("/v1/models").ok();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["numbers", "numbers:de", "numbers:fr"]);
    assert_eq!(list["data"][0]["details"]["targets"][1]["name"], "French");
    assert_eq!(server.get("/v1/models/numbers:fr").ok()["object"], "model");
    server.get("/v1/models/other").refused(404, Some("id"));
}

#[test]
fn a_prompt_is_completed_by_its_translation() {
    let server = Running::start(Settings::default());
    let answer = server
        .post("/v1/completions", &json!({"model": "numbers:fr", "prompt": ["one", "ninety-seven"]}))
        .ok();
    assert_eq!(answer["object"], "text_completion");
    let texts: Vec<&Value> =
        answer["choices"].as_array().unwrap().iter().map(|choice| &choice["text"]).collect();
    assert_eq!(texts, ["un", "quatre-vingt-dix-sept"]);
    assert_eq!(answer["choices"][1]["index"], 1);
    let usage = &answer["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap();
    assert_eq!(count("total_tokens"), count("prompt_tokens") + count("completion_tokens"));
}

#[test]
fn the_last_message_of_the_user_is_translated() {
    let server = Running::start(Settings::default());
    let messages = json!([
        {"role": "system", "content": "Translate."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "eins"},
        {"role": "user", "content": [{"type": "text", "text": "twenty"}, {"type": "text", "text": "two"}]},
    ]);
    let answer = server.post("/v1/chat/completions", &json!({"model": "numbers", "messages": messages})).ok();
    assert_eq!(
        answer["choices"][0]["message"],
        json!({"role": "assistant", "content": "zwanzig\nzwei", "refusal": null})
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[test]
fn a_stream_has_the_same_text_as_an_answer_at_once() {
    let server = Running::start(Settings::default());
    for search in
        [json!({}), json!({"temperature": 1.3, "seed": 5}), json!({"n": 3}), json!({"max_tokens": 3})]
    {
        let mut ask =
            json!({"model": "numbers", "prompt": TEXT, "messages": [{"role": "user", "content": TEXT}]});
        ask.as_object_mut().unwrap().extend(search.as_object().unwrap().clone());
        let mut streamed = ask.clone();
        streamed["stream"] = json!(true);
        streamed["stream_options"] = json!({"include_usage": true});
        for (path, text, piece) in [
            ("/v1/completions", "/text", "/text"),
            ("/v1/chat/completions", "/message/content", "/delta/content"),
        ] {
            let whole = server.post(path, &ask).ok();
            let chunks = data(&server.post(path, &streamed));
            let (usage, chunks) = chunks.split_last().unwrap();
            assert_eq!((&usage["usage"], &usage["choices"]), (&whole["usage"], &json!([])));
            for choice in whole["choices"].as_array().unwrap() {
                let all = chunks.iter().map(|chunk| &chunk["choices"][0]);
                let own: Vec<&Value> = all.filter(|own| own["index"] == choice["index"]).collect();
                let joined: String = own.iter().filter_map(|own| own.pointer(piece)?.as_str()).collect();
                assert_eq!(Some(joined.as_str()), choice.pointer(text).unwrap().as_str());
                assert_eq!(own.last().unwrap()["finish_reason"], choice["finish_reason"]);
            }
        }
    }
    let chat = json!({"messages": [{"role": "user", "content": TEXT}], "stream": true});
    let chunks = data(&server.post("/v1/chat/completions", &chat));
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(chunks.len() > 4, "{chunks:?}");
    let text: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, TRANSLATION);
}

#[test]
fn what_cannot_be_had_is_refused_by_the_name_it_has_here() {
    let server = Running::start(Settings::default());
    for (status, field, change) in [
        (404, "model", json!({"model": "gpt-4"})),
        (400, "target", json!({"model": "numbers:es"})),
        (400, "n", json!({"n": 17})),
        (400, "n", json!({"n": 0})),
        (400, "temperature", json!({"temperature": -1})),
        (400, "top_p", json!({"temperature": 1, "top_p": 0})),
        (400, "max_tokens", json!({"max_tokens": 0})),
        (400, "stop", json!({"stop": [1]})),
        (400, "stop", json!({"stop": ["a", "b", "c", "d", "e"]})),
        (400, "logprobs", json!({"logprobs": 6})),
        (400, "logprobs", json!({"logprobs": -1})),
        (400, "logprobs", json!({"logprobs": true})),
        (400, "logprobs", json!({"logprobs": "many"})),
        (400, "top_logprobs", json!({"top_logprobs": 2})),
        (400, "tools", json!({"tools": [{"type": "function", "function": {"name": "f"}}]})),
        (400, "logit_bias", json!({"logit_bias": {"50256": -100}})),
        (400, "response_format", json!({"response_format": {"type": "json_object"}})),
        (400, "presence_penalty", json!({"presence_penalty": 0.5})),
        (400, "prompt", json!({"prompt": [1, 2, 3]})),
        (400, "prompt", json!({"prompt": null})),
        (400, "stream", json!({"stream": "yes"})),
    ] {
        let mut ask = json!({"model": "numbers", "prompt": "one"});
        ask.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        server.post("/v1/completions", &ask).refused(status, Some(field));
    }
    for messages in
        [json!([]), json!([{"role": "assistant", "content": "one"}]), json!([{"role": "user"}]), json!(null)]
    {
        server.post("/v1/chat/completions", &json!({"messages": messages})).refused(400, Some("messages"));
    }
    let one = json!([{"role": "user", "content": "one"}]);
    for (field, change) in [
        ("logprobs", json!({"logprobs": 1})),
        ("top_logprobs", json!({"logprobs": true, "top_logprobs": 21})),
        ("top_logprobs", json!({"logprobs": true, "top_logprobs": -1})),
        ("top_logprobs", json!({"top_logprobs": 2})),
        ("tools", json!({"tools": [{"type": "function", "function": {"name": "f"}}]})),
    ] {
        let mut ask = json!({"messages": one});
        ask.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        server.post("/v1/chat/completions", &ask).refused(400, Some(field));
    }
    let image = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]);
    let message =
        server.post("/v1/chat/completions", &json!({"messages": image})).refused(400, Some("messages"));
    assert!(message.contains("image_url"), "{message}");
}

#[test]
fn values_that_ask_for_nothing_are_accepted() {
    let server = Running::start(Settings::default());
    let nothing = json!({
        "model": "numbers", "prompt": "twenty-two", "messages": [{"role": "user", "content": "twenty-two"}],
        "stop": null, "logprobs": null, "top_logprobs": 0, "tools": [], "tool_choice": "none", "functions": null,
        "logit_bias": {}, "response_format": {"type": "text"}, "modalities": ["text"], "presence_penalty": 0,
        "frequency_penalty": 0.0, "suffix": "", "echo": false, "n": 1, "seed": null, "stream": false, "user": "x",
    });
    let plain = json!({"prompt": "twenty-two"});
    let expected = server.post("/v1/completions", &plain).ok()["choices"].clone();
    assert_eq!(server.post("/v1/completions", &nothing).ok()["choices"], expected);
    let chat = server.post("/v1/chat/completions", &nothing).ok();
    assert_eq!(chat["choices"][0]["message"]["content"], expected[0]["text"]);
}

#[test]
fn an_answer_ends_before_a_stop_and_a_stream_never_tells_it() {
    let server = Running::start(Settings::default());
    for (stop, expected) in [
        (json!("und"), "zwei"),
        (json!(["zwanzig", "xyz"]), "zweiund"),
        (json!(["zwei"]), ""),
        (json!("nowhere"), "zweiundzwanzig"),
        (json!(["undzwanz", "zwan"]), "zwei"),
    ] {
        let ask = json!({"prompt": "twenty-two", "stop": stop});
        let answer = server.post("/v1/completions", &ask).ok();
        let choice = answer["choices"][0].clone();
        assert_eq!((&choice["text"], &choice["finish_reason"]), (&json!(expected), &json!("stop")));
        let chunks = data(
            &server.post("/v1/completions", &json!({"prompt": "twenty-two", "stop": stop, "stream": true})),
        );
        let told: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
        assert_eq!(told, expected);
    }
}

#[test]
fn only_the_tokens_of_the_answer_are_counted() {
    let server = Running::start(Settings::default());
    let count = |more: Value| {
        let mut ask = json!({"prompt": "twenty-two", "n": 2});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let usage = server.post("/v1/completions", &ask).ok()["usage"].clone();
        ask["stream"] = json!(true);
        ask["stream_options"] = json!({"include_usage": true});
        assert_eq!(data(&server.post("/v1/completions", &ask)).last().unwrap()["usage"], usage);
        assert_eq!(
            usage["total_tokens"].as_u64(),
            Some(usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap())
        );
        usage["completion_tokens"].as_u64().unwrap()
    };
    let whole = count(json!({"n": 1}));
    let (some, none) = (count(json!({"n": 1, "stop": "zwanzig"})), count(json!({"n": 1, "stop": "zwei"})));
    assert!(some > 0 && some < whole, "{some} of {whole}");
    assert_eq!(none, 0);
    assert_eq!(count(json!({"n": 1, "stop": "nowhere"})), whole);
    // Log-probabilities are of the same tokens.
    let ask = json!({"prompt": "twenty-two", "stop": "zwanzig", "logprobs": 0});
    let answer = server.post("/v1/completions", &ask).ok();
    let tokens = answer["choices"][0]["logprobs"]["tokens"].as_array().unwrap().len() as u64;
    assert_eq!((tokens, answer["usage"]["completion_tokens"].as_u64()), (some, Some(some)));
    assert!(count(json!({})) > whole);
}

#[test]
fn log_probabilities_are_those_of_our_own_route() {
    let server = Running::start(Settings::default());
    let own = server.post("/v1/translate", &json!({"text": "twenty-two"})).ok();
    let own: Vec<f64> = own["translations"][0]["hypotheses"][0]["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["logprob"].as_f64().unwrap())
        .collect();
    let completion = server.post("/v1/completions", &json!({"prompt": "twenty-two", "logprobs": 0})).ok();
    let logprobs = &completion["choices"][0]["logprobs"];
    let scores =
        |list: &Value| -> Vec<f64> { list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    // The end token is not part of the answer.
    assert_eq!(scores(&logprobs["token_logprobs"]), own[..own.len() - 1]);
    let texts: String =
        logprobs["tokens"].as_array().unwrap().iter().map(|token| token.as_str().unwrap()).collect();
    assert_eq!(texts.trim(), "zweiundzwanzig");
    let messages = json!([{"role": "user", "content": "twenty-two"}]);
    let chat = server.post("/v1/chat/completions", &json!({"messages": messages, "logprobs": true})).ok();
    let content = chat["choices"][0]["logprobs"]["content"].as_array().unwrap().clone();
    let chat: Vec<f64> = content.iter().map(|token| token["logprob"].as_f64().unwrap()).collect();
    assert_eq!(chat, own[..own.len() - 1]);
}

#[test]
fn the_most_probable_tokens_are_told_in_the_place_of_each() {
    let server = Running::start(Settings::default());
    // Two sentences, of which the second is cut short.
    let text = "twenty-two\nninety-seven";
    let ask = json!({"prompt": text, "logprobs": 5, "max_tokens": 7, "n": 2});
    let answer = server.post("/v1/completions", &ask).ok();
    for choice in answer["choices"].as_array().unwrap() {
        let logprobs = &choice["logprobs"];
        let tokens = logprobs["tokens"].as_array().unwrap();
        let top = logprobs["top_logprobs"].as_array().unwrap();
        assert!(!tokens.is_empty() && top.len() == tokens.len(), "{logprobs}");
        for ((token, score), top) in
            tokens.iter().zip(logprobs["token_logprobs"].as_array().unwrap()).zip(top)
        {
            let top = top.as_object().unwrap();
            assert!((2..=6).contains(&top.len()), "{top:?}");
            assert_eq!(&top[token.as_str().unwrap()], score);
            assert!(top.values().map(|score| score.as_f64().unwrap().exp()).sum::<f64>() < 1.0001);
        }
    }
    let messages = json!([{"role": "user", "content": "twenty-two"}]);
    let mut ask = json!({"messages": messages, "logprobs": true, "top_logprobs": 20});
    let chat = server.post("/v1/chat/completions", &ask).ok();
    let content = chat["choices"][0]["logprobs"]["content"].clone();
    for token in content.as_array().unwrap() {
        let top = token["top_logprobs"].as_array().unwrap();
        let scores: Vec<f64> = top.iter().map(|other| other["logprob"].as_f64().unwrap()).collect();
        assert!(top.len() == 20 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        // The model is sure of itself: the token that it wrote is the first.
        assert_eq!((&top[0]["token"], &top[0]["logprob"]), (&token["token"], &token["logprob"]));
        assert_eq!(top[0]["bytes"], token["bytes"]);
        // Another language, or the end, may come in any place; each has a name.
        assert!(top.iter().all(|other| other["token"] != ""), "{top:?}");
    }
    ask["stream"] = json!(true);
    let chunks = data(&server.post("/v1/chat/completions", &ask));
    assert_eq!(chunks.last().unwrap()["choices"][0]["logprobs"]["content"], content);
}

#[test]
fn the_most_tokens_are_those_of_the_whole_answer() {
    let server = Running::start(Settings::default());
    let ask = json!({"prompt": "one\ntwo\nthree\nfour", "max_tokens": 3});
    let answer = server.post("/v1/completions", &ask).ok();
    assert_eq!(answer["usage"]["completion_tokens"], 3);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let whole = answer["choices"][0]["text"].as_str().unwrap();
    assert!(whole.starts_with("eins") && !whole.ends_with('\n'), "{whole:?}");
    let mut ask = ask;
    ask["stream"] = json!(true);
    let chunks = data(&server.post("/v1/completions", &ask));
    let told: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!(told, whole);
}

#[test]
fn no_token_of_a_text_without_end_is_lost() {
    let server = Running::start(Settings::default());
    let text = "one ".repeat(1250);
    let answer = server.post("/v1/translate", &json!({"text": text.trim()})).ok();
    let source = answer["translations"][0]["source"].as_array().unwrap();
    let words = source.iter().filter_map(|token| token["word"].as_u64()).max();
    assert_eq!(words, Some(1249));
    // The model has something to say of each of the four pieces that it reads.
    let ask = json!({"q": text, "source": "en", "target": "de"});
    let translation = server.post("/translate", &ask).ok()["translatedText"].clone();
    assert!(translation.as_str().unwrap().split_whitespace().count() >= 4, "{translation}");
    let ask = json!({"messages": [{"role": "user", "content": text}]});
    let chat = server.post("/v1/chat/completions", &ask).ok();
    assert_eq!(chat["choices"][0]["message"]["content"], translation);
    assert!(chat["usage"]["prompt_tokens"].as_u64() >= Some(1250), "{}", chat["usage"]);
}

#[test]
fn an_answer_that_the_model_cuts_says_so_even_where_its_end_is_forced() {
    for (search, reason, expected) in [
        (r#"{"max_new_tokens": 3}"#, "length", "zweiundzwanzig"),
        (r#"{"max_new_tokens": 3, "forced_eos_token_id": 0}"#, "length", "zweiund"),
        (r#"{"max_new_tokens": 30, "forced_eos_token_id": 0}"#, "stop", "zweiundzwanzig"),
    ] {
        let folder = searching("cut", search);
        let server = Running::start_with(Settings::default(), vec![ModelPlace::named("cut", &folder)]);
        std::fs::remove_dir_all(&folder).unwrap();
        let ask = json!({"messages": [{"role": "user", "content": "twenty-two"}]});
        let choice = &server.post("/v1/chat/completions", &ask).ok()["choices"][0];
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["content"]),
            (&json!(reason), &json!(expected)),
            "{search}"
        );
    }
}

#[test]
fn a_stream_says_nothing_twice_where_words_are_copied() {
    let server = Running::start(Settings::default());
    let ask = json!({"prompt": "one 世界 two"});
    let whole = server.post("/v1/completions", &ask).ok()["choices"][0]["text"].clone();
    let chunks = data(&server.post("/v1/completions", &json!({"prompt": "one 世界 two", "stream": true})));
    let told: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!(json!(told), whole);
}

#[test]
fn the_texts_of_tokens_are_those_of_the_answer_with_what_stands_between_its_parts() {
    let server = Running::start(Settings::default());
    let text = "- twenty-one\n  * seven hundred and one";
    let ask = json!({"model": "numbers:de", "prompt": text, "logprobs": 0});
    let choice = &server.post("/v1/completions", &ask).ok()["choices"][0];
    let tokens = choice["logprobs"]["tokens"].as_array().unwrap();
    let told: String = tokens.iter().map(|token| token.as_str().unwrap()).collect();
    assert_eq!((&*told, choice["text"].as_str()), ("- einundzwanzig\n  * siebenhunderteins", Some(&*told)));
    let offsets = choice["logprobs"]["text_offset"].as_array().unwrap();
    assert_eq!(
        offsets.last().unwrap().as_u64(),
        Some((told.len() - tokens.last().unwrap().as_str().unwrap().len()) as u64)
    );
}
