//! What clients of OpenAI ask of a language model. What transformers answers is in `golden/gpt2.json` and `golden/gpt2.safetensors`.

use super::{Answer, Running};
use attentive_serve::{ModelPlace, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const PATH: &str = "/v1/completions";
/// How many tokens a prompt and its continuation have together at most.
const POSITIONS: usize = 48;

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(file)
}

fn answers() -> Value {
    serde_json::from_slice(&std::fs::read(golden("gpt2.json")).unwrap()).unwrap()
}

fn start() -> Running {
    Running::start_with(Settings::default(), vec![ModelPlace::named("small", golden("gpt2/saved"))])
}

/// An object with the fields of both.
fn with(mut ask: Value, more: &Value) -> Value {
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask
}

fn texts(answer: &Value) -> Vec<String> {
    let choices = answer["choices"].as_array().unwrap();
    choices.iter().map(|choice| choice["text"].as_str().unwrap().to_owned()).collect()
}

/// The pieces of a stream, without the end.
fn pieces(answer: &Answer) -> Vec<Value> {
    let mut events: Vec<String> = answer.events().into_iter().map(|(_, data)| data).collect();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

/// The numbers of a tensor of f32 or i32 in `golden/gpt2.safetensors`.
fn tensor<T>(name: &str, number: fn([u8; 4]) -> T) -> Vec<T> {
    let bytes = std::fs::read(golden("gpt2.safetensors")).unwrap();
    let (size, rest) = bytes.split_at(8);
    let (header, data) = rest.split_at(u64::from_le_bytes(size.try_into().unwrap()) as usize);
    let header: Value = serde_json::from_slice(header).unwrap();
    let place = |end: usize| header[name]["data_offsets"][end].as_u64().unwrap() as usize;
    let numbers = data[place(0)..place(1)].chunks_exact(4);
    numbers.map(|bytes| number(bytes.try_into().unwrap())).collect()
}

#[test]
fn prompts_and_tokens_are_continued_as_by_transformers() {
    let (server, answers) = (start(), answers());
    let found = answers["cases"][0]["results"].as_array().unwrap();
    let written: Vec<usize> =
        found.iter().map(|results| results[0]["tokens"].as_array().unwrap().len()).collect();
    let read: usize =
        answers["ids"].as_array().unwrap().iter().map(|ids| ids.as_array().unwrap().len()).sum();
    for prompt in ["prompts", "ids"] {
        let ask = json!({"model": "small", "prompt": answers[prompt], "temperature": 0});
        let answer = server.post(PATH, &ask).ok();
        assert_eq!((&answer["object"], &answer["model"]), (&json!("text_completion"), &json!("small")));
        for (number, choice) in answer["choices"].as_array().unwrap().iter().enumerate() {
            let expected = answers["greedy"][number].as_str().unwrap();
            let text = expected.strip_suffix("<|endoftext|>");
            let reason = if text.is_some() { "stop" } else { "length" };
            let expected = json!({"index": number, "text": text.unwrap_or(expected), "logprobs": null, "finish_reason": reason});
            assert_eq!(choice, &expected);
        }
        // OpenAI's 16 tokens are as many as the golden texts have.
        let expected: usize = written.iter().sum();
        let usage =
            json!({"prompt_tokens": read, "completion_tokens": expected, "total_tokens": read + expected});
        assert_eq!(answer["usage"], usage);
    }
    // One prompt may stand alone, as a text or as its tokens.
    for prompt in [&answers["prompts"][2], &answers["ids"][2]] {
        let answer = server.post(PATH, &json!({"prompt": prompt, "temperature": 0, "max_tokens": 16})).ok();
        assert_eq!(json!(texts(&answer)), json!([answers["greedy"][2]]));
    }
    // An empty prompt begins with the model's own first token.
    let answer =
        server.post(PATH, &json!({"prompt": "", "temperature": 0, "echo": true, "logprobs": 1})).ok();
    assert_eq!(answer["usage"]["prompt_tokens"], 1);
    assert_eq!(answer["choices"][0]["logprobs"]["text_offset"][0], 0);
    assert!(answer["choices"][0]["logprobs"]["token_logprobs"][0].is_number());
}

#[test]
fn tokens_of_a_prompt_have_the_log_probabilities_of_transformers() {
    let server = start();
    let ids = tensor("ids", i32::from_le_bytes);
    let logits = tensor("saved.logits", f32::from_le_bytes);
    let mut begin = 0;
    for length in tensor("lengths", i32::from_le_bytes) {
        let rows = begin..begin + length as usize;
        begin = rows.end;
        let ask = json!({"prompt": [ids[rows.clone()]], "echo": true, "logprobs": 5, "max_tokens": 0});
        let answer = server.post(PATH, &ask).ok();
        let choice = &answer["choices"][0];
        assert_eq!(
            (&choice["finish_reason"], &answer["usage"]["completion_tokens"]),
            (&json!("length"), &json!(0))
        );
        let scores = choice["logprobs"]["token_logprobs"].as_array().unwrap();
        assert_eq!((scores.len(), &scores[0]), (rows.len(), &Value::Null));
        for (place, row) in rows.clone().skip(1).enumerate() {
            let before: Vec<f64> =
                logits[(row - 1) * 400..row * 400].iter().map(|logit| f64::from(*logit)).collect();
            let sum = before.iter().map(|logit| logit.exp()).sum::<f64>().ln();
            let score = scores[place + 1].as_f64().unwrap();
            assert!((score - (before[ids[row] as usize] - sum)).abs() < 1e-4, "{score}");
            let best = before.iter().copied().fold(f64::MIN, f64::max) - sum;
            let top = choice["logprobs"]["top_logprobs"][place + 1].as_object().unwrap();
            let told = top.values().map(|score| score.as_f64().unwrap()).fold(f64::MIN, f64::max);
            assert!((told - best).abs() < 1e-4 && (2..=6).contains(&top.len()), "{top:?}");
        }
    }
}

#[test]
fn a_stream_has_the_same_texts_as_an_answer_at_once() {
    let server = start();
    let prompts = &answers()["prompts"];
    for more in [
        json!({"temperature": 0}),
        json!({"temperature": 0, "n": 2, "echo": true}),
        json!({"n": 3, "seed": 7, "logprobs": 2}),
        json!({"n": 2, "seed": 7, "echo": true, "logprobs": 0, "max_tokens": 5}),
        json!({"temperature": 1.5, "top_p": 0.9, "seed": -1, "stop": ["a", " the"], "max_tokens": 20}),
        json!({"max_tokens": 0, "echo": true}),
    ] {
        let ask = with(json!({"prompt": prompts}), &more);
        let whole = server.post(PATH, &ask).ok();
        let streamed = with(ask, &json!({"stream": true, "stream_options": {"include_usage": true}}));
        let pieces = pieces(&server.post(PATH, &streamed));
        let (usage, pieces) = pieces.split_last().unwrap();
        assert_eq!((&usage["usage"], &usage["choices"]), (&whole["usage"], &json!([])));
        for choice in whole["choices"].as_array().unwrap() {
            let all = pieces.iter().map(|piece| &piece["choices"][0]);
            let own: Vec<&Value> = all.filter(|own| own["index"] == choice["index"]).collect();
            let text: String = own.iter().map(|own| own["text"].as_str().unwrap()).collect();
            assert_eq!(json!(text), choice["text"], "{more}");
            let last = own.last().unwrap();
            assert_eq!(
                (&last["finish_reason"], &last["logprobs"]),
                (&choice["finish_reason"], &choice["logprobs"])
            );
        }
    }
}

#[test]
fn a_seed_repeats_draws_and_without_one_they_are_others() {
    let server = start();
    let draw = |more: Value| {
        texts(
            &server
                .post(PATH, &with(json!({"prompt": "The", "max_tokens": 24, "temperature": 2}), &more))
                .ok(),
        )
    };
    assert_eq!(draw(json!({"seed": 3, "n": 4})), draw(json!({"seed": 3, "n": 4})));
    assert_ne!(draw(json!({"seed": 3})), draw(json!({"seed": 4})));
    assert_ne!(draw(json!({"n": 2})), draw(json!({"n": 2})));
    // The best of several is one of them.
    let many = draw(json!({"seed": 3, "n": 4}));
    let best = draw(json!({"seed": 3, "best_of": 4}));
    assert!(best.len() == 1 && many.contains(&best[0]), "{best:?} {many:?}");
    let same = draw(json!({"temperature": 0, "n": 3}));
    assert!(same.len() == 3 && same.iter().all(|text| text == &same[0]));
}

#[test]
fn a_prompt_is_continued_with_the_same_bits_alone_and_beside_others() {
    let server = start();
    let asks: Vec<Value> = (0..24)
        .map(|number| {
            let words = "A batch is packed: its sequences stand one behind the other".split(' ');
            let prompt: Vec<&str> = words.take(1 + number % 9).collect();
            let max_tokens = [3, 40, 12][number % 3];
            let more = [
                json!({"seed": number}),
                json!({"temperature": 0}),
                json!({"seed": 1, "n": 3, "logprobs": 3}),
            ];
            let ask =
                json!({"prompt": prompt.join(" "), "max_tokens": max_tokens, "logprobs": 0, "echo": true});
            with(ask, &more[number % 3])
        })
        .collect();
    let alone: Vec<Value> = asks.iter().map(|ask| server.post(PATH, ask).ok()["choices"].clone()).collect();
    std::thread::scope(|scope| {
        let beside: Vec<_> =
            asks.iter().map(|ask| scope.spawn(|| server.post(PATH, ask).ok()["choices"].clone())).collect();
        for (alone, beside) in alone.iter().zip(beside) {
            assert_eq!(alone, &beside.join().unwrap());
        }
    });
}

#[test]
fn a_continuation_ends_before_a_stop() {
    let server = start();
    let ask = |more: Value| {
        let ask =
            json!({"prompt": "A batch is packed: its sequences stand", "temperature": 0, "logprobs": 0});
        let answer = server.post(PATH, &with(ask, &more)).ok();
        let logprobs = answer["choices"][0]["logprobs"]["tokens"].as_array().unwrap().len() as u64;
        assert_eq!(answer["usage"]["completion_tokens"].as_u64(), Some(logprobs));
        (texts(&answer).remove(0), answer["choices"][0]["finish_reason"].clone())
    };
    let whole = " nd ` ` nd ` nd.";
    assert_eq!(ask(json!({})), (whole.to_owned(), json!("length")));
    for (stop, text) in [(json!(" nd."), " nd ` ` nd `"), (json!(["x", "`"]), " nd "), (json!(["", " "]), "")]
    {
        assert_eq!(ask(json!({"stop": stop})), (text.to_owned(), json!("stop")));
    }
    assert_eq!(ask(json!({"stop": "nowhere"})), (whole.to_owned(), json!("length")));
}

#[test]
fn a_text_ends_where_the_model_has_no_positions_left() {
    let server = start();
    let prompt = |tokens: usize| (0..tokens).map(|token| 1 + token % 80).collect::<Vec<_>>();
    let answer = server
        .post(
            PATH,
            &json!({"prompt": prompt(POSITIONS - 8), "max_tokens": 100, "temperature": 0, "logprobs": 0}),
        )
        .ok();
    let written = answer["usage"]["completion_tokens"].as_u64().unwrap();
    assert!((1..=8).contains(&written), "{answer}");
    let refused =
        server.post(PATH, &json!({"prompt": [prompt(3), prompt(POSITIONS)]})).refused(400, Some("prompt"));
    assert!(
        refused.contains("prompt 2 has 48 tokens") && refused.contains("maximum context length"),
        "{refused}"
    );
    // Where nothing is to be written, a prompt may have all positions.
    let ask = json!({"prompt": prompt(POSITIONS), "max_tokens": 0, "echo": true, "logprobs": 0});
    let answer = server.post(PATH, &ask).ok();
    assert_eq!(answer["choices"][0]["logprobs"]["tokens"].as_array().unwrap().len(), POSITIONS);
}

#[test]
fn what_a_language_model_cannot_do_is_refused_by_name() {
    let server = start();
    for (status, field, change) in [
        (404, "model", json!({"model": "gpt-4"})),
        (400, "model", json!({"model": "small:de"})),
        (400, "prompt", json!({"prompt": null})),
        (400, "prompt", json!({"prompt": []})),
        (400, "prompt", json!({"prompt": [400]})),
        (400, "prompt", json!({"prompt": {"text": "one"}})),
        (400, "n", json!({"n": 0})),
        (400, "n", json!({"n": 17})),
        (400, "best_of", json!({"n": 3, "best_of": 2})),
        (400, "best_of", json!({"best_of": 2, "stream": true})),
        (400, "best_of", json!({"best_of": 17})),
        (400, "temperature", json!({"temperature": -1})),
        (400, "top_p", json!({"top_p": 0})),
        (400, "top_p", json!({"temperature": 0, "top_p": 2})),
        (400, "max_tokens", json!({"max_tokens": -1})),
        (400, "stop", json!({"stop": ["a", "b", "c", "d", "e"]})),
        (400, "logprobs", json!({"logprobs": 6})),
        (400, "suffix", json!({"suffix": "end"})),
        (400, "logit_bias", json!({"logit_bias": {"50": 1}})),
        (400, "presence_penalty", json!({"presence_penalty": 0.5})),
        (400, "frequency_penalty", json!({"frequency_penalty": -0.5})),
    ] {
        let ask = with(json!({"model": "small", "prompt": "The"}), &change);
        server.post(PATH, &ask).refused(status, Some(field));
    }
    server
        .post(
            PATH,
            &json!({"prompt": "The", "presence_penalty": 0, "frequency_penalty": 0.0, "suffix": null}),
        )
        .ok();
}

#[test]
fn the_next_tokens_are_those_that_a_continuation_chooses_from() {
    let server = start();
    let next = |ask: Value| server.post("/v1/next", &ask).ok();
    let text = "A batch is packed";
    let answer = next(json!({"model": "small", "text": text, "count": 100}));
    let tokens = answer["next"].as_array().unwrap();
    let scores: Vec<f64> = tokens.iter().map(|token| token["logprob"].as_f64().unwrap()).collect();
    assert!(tokens.len() == 100 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(scores.iter().map(|score| score.exp()).sum::<f64>() < 1.0001);
    let ask = json!({"prompt": text, "temperature": 0, "max_tokens": 1, "logprobs": 5});
    let completion = server.post(PATH, &ask).ok();
    assert_eq!(answer["tokens"], completion["usage"]["prompt_tokens"]);
    let choice = &completion["choices"][0];
    assert_eq!(tokens[0]["text"], choice["text"]);
    let score = choice["logprobs"]["token_logprobs"][0].as_f64().unwrap();
    assert!((scores[0] - score).abs() < 1e-5, "{} {score}", scores[0]);
    // Behind any text, also behind none, each token has a name, and one of them ends the text.
    let all = next(json!({"text": "", "count": 100}))["next"].clone();
    assert!(all.as_array().unwrap().iter().all(|token| token["piece"] != ""), "{all}");
    assert_eq!(next(json!({"text": "The"}))["next"].as_array().unwrap().len(), 10);
    for (field, ask) in [
        ("count", json!({"text": "The", "count": 0})),
        ("count", json!({"text": "The", "count": 101})),
        ("text", json!({"text": "x y z ".repeat(20)})),
        ("model", json!({"text": "The", "model": "small:de"})),
    ] {
        let status = if field == "model" { 404 } else { 400 };
        server.post("/v1/next", &ask).refused(status, Some(field));
    }
}

#[test]
fn each_model_is_asked_where_it_answers() {
    let server = start();
    let messages = json!([{"role": "user", "content": "Hello"}]);
    for model in [json!("small"), Value::Null] {
        let chat = json!({"model": model, "messages": messages});
        let refused = server.post("/v1/chat/completions", &chat).refused(400, Some("model"));
        assert!(refused.contains("`small` continues prompts at /v1/completions"), "{refused}");
        let refused =
            server.post("/v1/translate", &json!({"model": model, "text": "one"})).refused(400, Some("model"));
        assert!(refused.contains("at /v1/completions"), "{refused}");
    }
    let entry = server.get("/v1/models/small").ok();
    assert_eq!(
        (&entry["details"]["task"], &entry["details"]["max_tokens"]),
        (&json!("generate"), &json!(POSITIONS))
    );
    assert!(server.metric("attentive_target_tokens_total") == 0.0);
    server.post(PATH, &json!({"prompt": "The", "temperature": 0, "max_tokens": 2})).ok();
    assert_eq!(server.metric("attentive_target_tokens_total"), 2.0);

    // Beside a translation model, the name says which of them completes; the first one does without a name.
    let models = vec![ModelPlace::numbers(), ModelPlace::named("small", golden("gpt2/saved"))];
    let server = Running::start_with(Settings::default(), models);
    let complete = |ask: Value| texts(&server.post(PATH, &ask).ok()).remove(0);
    let ask = json!({"prompt": "one", "temperature": 0, "max_tokens": 3});
    assert_eq!(complete(ask.clone()), "eins");
    assert_eq!(complete(with(ask.clone(), &json!({"model": "numbers:fr"}))), "un");
    assert_ne!(complete(with(ask, &json!({"model": "small"}))), "eins");
    let refused =
        server.post(PATH, &json!({"model": "numbers", "prompt": [1, 2]})).refused(400, Some("prompt"));
    assert!(refused.contains("translation model"), "{refused}");
}
