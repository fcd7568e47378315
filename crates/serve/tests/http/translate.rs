//! Our own way to ask for translations.

use super::Running;
use attentive_serve::{Limits, Settings};
use serde_json::{Value, json};

fn hypotheses(answer: &Value) -> &Vec<Value> {
    answer["translations"][0]["hypotheses"].as_array().unwrap()
}

#[test]
fn html_keeps_its_markup_and_is_one_translation() {
    let server = Running::start(Settings::default());
    let html = "<ul>\n <li>one\n <li><b>twenty-one</b>\n</ul><script>1 < 2</script>";
    let ask = json!({"text": [html, "two &amp;"], "target": "fr", "format": "html", "n_best": 2});
    let answer = server.post("/v1/translate", &ask).ok();
    let translations = answer["translations"].as_array().unwrap();
    assert_eq!(translations.len(), 2);
    let first = &translations[0];
    let expected = "<ul>\n <li>un\n <li><b>vingt et un</b>\n</ul><script>1 < 2</script>";
    assert_eq!(first["hypotheses"][0]["text"], expected);
    assert_eq!((&first["parts"], first["hypotheses"].as_array().map(Vec::len)), (&json!(2), Some(2)));
    assert!(first["hypotheses"][0].get("alignment").is_none());
    for (field, value) in [
        ("prefix", json!("a")),
        ("prefix_tokens", json!([1])),
        ("alternatives", json!(2)),
        ("alignments", json!(true)),
        ("stream", json!(true)),
    ] {
        let mut ask = json!({"text": "<b>one</b>", "format": "html"});
        ask[field] = value;
        let answer = server.post("/v1/translate", &ask);
        assert!(answer.status == 400 && answer.text().contains(field), "{}", answer.text());
    }
}

#[test]
fn an_answer_has_tokens_scores_and_alignments() {
    let server = Running::start(Settings::default());
    let ask = json!({"text": "twenty-one", "target": "de", "n_best": 3, "alignments": true});
    let answer = server.post("/v1/translate", &ask).ok();
    let translation = &answer["translations"][0];
    let pieces = |tokens: &Value| {
        tokens
            .as_array()
            .unwrap()
            .iter()
            .map(|token| token["piece"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(pieces(&translation["source"]), [">>de<<", "▁twenty", "-", "one", "</s>"]);
    let words: Vec<Value> =
        translation["source"].as_array().unwrap().iter().map(|token| token["word"].clone()).collect();
    assert_eq!(words, [json!(null), json!(0), json!(0), json!(0), json!(null)]);
    let best = hypotheses(&answer);
    assert_eq!((best.len(), &best[0]["text"], &best[0]["ended"]), (3, &json!("einundzwanzig"), &json!(true)));
    assert_eq!(pieces(&best[0]["tokens"]), ["▁ein", "und", "zwanzig", "</s>"]);
    let scores: Vec<f64> = best.iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores[0] <= 0.0, "{scores:?}");
    assert!(
        best[0]["tokens"].as_array().unwrap().iter().all(|token| token["logprob"].as_f64().unwrap() <= 0.0)
    );
    assert_eq!(best[0]["alignment"], json!([[0, 0]]));
    assert!(
        server.post("/v1/translate", &json!({"text": "one"})).ok()["translations"][0]["hypotheses"][0]
            .get("alignment")
            .is_none()
    );
}

#[test]
fn drafts_come_before_the_answer_and_what_is_settled_stays() {
    let server = Running::start(Settings::default());
    let text = "seven hundred and seventy-seven thousand seven hundred and seventy-seven";
    let ask = json!({"text": [text, "one"], "beam": 4, "n_best": 2});
    let mut streamed = ask.clone();
    streamed["stream"] = json!(true);
    let mut events = server.post("/v1/translate", &streamed).events();
    let (name, done) = events.pop().unwrap();
    assert_eq!(name, "done");
    let done: Value = serde_json::from_str(&done).unwrap();
    assert_eq!(done, server.post("/v1/translate", &ask).ok());
    let whole = hypotheses(&done)[0]["text"].as_str().unwrap();
    assert!(events.len() > 3, "{events:?}");
    for (name, data) in events {
        let draft: Value = serde_json::from_str(&data).unwrap();
        let settled = draft["settled"].as_u64().unwrap() as usize;
        let certain: String = draft["text"].as_str().unwrap().chars().take(settled).collect();
        assert_eq!(name, "written");
        if draft["index"] == 0 {
            assert!(whole.starts_with(&certain), "{certain} is not how {whole} begins");
        }
    }
}

#[test]
fn drafts_of_a_beam_go_on_behind_the_first_line() {
    let server = Running::start(Settings::default());
    let ask = json!({"text": "twenty-one\n\nninety-seven\none", "beam": 4, "stream": true});
    let mut events = server.post("/v1/translate", &ask).events();
    let done: Value = serde_json::from_str(&events.pop().unwrap().1).unwrap();
    let drafts: Vec<Value> = events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    // The last line is short and done first; it is told all the same, once those before it are.
    let last = drafts.last().unwrap();
    assert_eq!(last["text"], hypotheses(&done)[0]["text"]);
    assert_eq!(last["settled"].as_u64().unwrap() as usize, last["text"].as_str().unwrap().chars().count());
}

#[test]
fn a_paragraph_is_translated_sentence_by_sentence() {
    let server = Running::start(Settings::default());
    let ask = |text: &str, split: Value| {
        let ask = json!({"text": text, "beam": 4, "n_best": 2, "alignments": true, "split": split});
        server.post("/v1/translate", &ask).ok()["translations"][0].clone()
    };
    // The model reads parts of these words, so that none is copied.
    let sentences = ["Twenty-one.", "Ninety-seven!", "Ninety-one hundred."];
    let alone = sentences.map(|sentence| ask(sentence, json!(null)));
    let text = format!(" {}  {}\n\n{}\t", sentences[0], sentences[1], sentences[2]);
    let whole = ask(&text, json!("auto"));
    assert_eq!((&whole["parts"], whole.clone()), (&json!(3), ask(&text, json!("sentences"))));
    for rank in 0..2 {
        let of = |one: &Value, name: &str| one["hypotheses"][rank][name].clone();
        let [a, b, c] = [0, 1, 2].map(|i| of(&alone[i], "text").as_str().unwrap().to_owned());
        assert_eq!(of(&whole, "text"), format!(" {a}  {b}\n\n{c}\t"));
        let logprobs = |one: &Value| -> Vec<Value> {
            of(one, "tokens").as_array().unwrap().iter().map(|token| token["logprob"].clone()).collect()
        };
        assert_eq!(logprobs(&whole), alone.iter().flat_map(logprobs).collect::<Vec<_>>());
        let last = of(&whole, "alignment").as_array().unwrap().last().cloned();
        let words = of(&whole, "text").as_str().unwrap().split_whitespace().count();
        assert!(last.is_some_and(|link| link[0].as_u64() <= Some(3) && link[1] == words - 1));
    }
    let lines = ask(&text, json!("lines"));
    assert_eq!(lines["parts"], 2);
    // What goes on behind a prefix is of the whole line.
    let ask = json!({"text": "One. Two.", "alternatives": 2});
    assert_eq!(server.post("/v1/translate", &ask).ok()["translations"][0]["parts"], 1);
}

#[test]
fn a_word_that_the_model_cannot_read_is_copied_into_its_own_sentence() {
    let server = Running::start(Settings::default());
    let ask = |text: &str| {
        let answer = server.post("/v1/translate", &json!({"text": text, "beam": 4})).ok();
        let found = hypotheses(&answer)[0].clone();
        // The alignment that placed the word was not asked for.
        assert!(found["alignment"].is_null(), "{found}");
        found["text"].as_str().unwrap().to_owned()
    };
    let [first, last] = ["Twenty-one.", "Ninety-seven."].map(ask);
    assert_eq!(ask("Twenty-one.  世界。\tNinety-seven."), format!("{first}  世界。\t{last}"));
}

#[test]
fn drafts_go_on_behind_the_first_sentence() {
    let server = Running::start(Settings::default());
    let ask = json!({"text": "Twenty-one.  Ninety-seven.\tNinety-one.", "beam": 4, "stream": true});
    let mut events = server.post("/v1/translate", &ask).events();
    let done: Value = serde_json::from_str(&events.pop().unwrap().1).unwrap();
    let whole = hypotheses(&done)[0]["text"].as_str().unwrap();
    let drafts: Vec<Value> = events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(drafts.last().unwrap()["text"], *whole);
    for draft in &drafts {
        let settled = draft["settled"].as_u64().unwrap() as usize;
        let certain: String = draft["text"].as_str().unwrap().chars().take(settled).collect();
        assert!(whole.starts_with(&certain), "{certain} is not how {whole} begins");
    }
}

#[test]
fn a_prefix_is_kept_and_alternatives_go_on_from_it() {
    let server = Running::start(Settings::default());
    let whole = server.post("/v1/translate", &json!({"text": "twenty-one"})).ok();
    let ids: Vec<u64> = hypotheses(&whole)[0]["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["id"].as_u64().unwrap())
        .collect();
    let ask = json!({"text": "twenty-one", "prefix_tokens": ids[..2], "alternatives": 4});
    let answer = server.post("/v1/translate", &ask).ok();
    let found = hypotheses(&answer);
    let third: Vec<&Value> = found.iter().map(|one| &one["tokens"][2]).collect();
    assert_eq!((found.len(), &third[0]["piece"]), (4, &json!("zwanzig")));
    // What goes on with the token that is there already is the translation itself.
    assert_eq!(found[0], hypotheses(&whole)[0]);
    let scores: Vec<f64> = found.iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(found.iter().all(|one| one["text"].as_str().unwrap().starts_with("einund")));
    let forced = server.post("/v1/translate", &json!({"text": "twenty-one", "prefix": "zwei"})).ok();
    assert!(hypotheses(&forced)[0]["text"].as_str().unwrap().starts_with("zwei"));
    let given = json!({"text": "twenty-one", "prefix_tokens": ids[..2], "alignments": true, "n_best": 2});
    let given = server.post("/v1/translate", &given).ok();
    assert_eq!(hypotheses(&given)[0]["score"], hypotheses(&whole)[0]["score"]);
}

#[test]
fn the_same_seed_draws_the_same_whatever_else_is_asked() {
    let server = Running::start(Settings::default());
    let ask = |seed: u64| {
        let sampling = json!({"temperature": 3.0, "seed": seed});
        server.post("/v1/translate", &json!({"text": "nine hundred", "n_best": 4, "sampling": sampling})).ok()
    };
    let first = ask(1);
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..6).map(|_| scope.spawn(|| ask(1))).collect();
        for other in others {
            assert_eq!(other.join().unwrap(), first);
        }
    });
    assert_ne!(ask(2), first);
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    let limits = Limits { characters: 30, texts: 3, beam: 5, results: 5, ..Limits::default() };
    let server = Running::start(Settings { limits, queue: 8, ..Settings::default() });
    for (status, field, ask) in [
        (400, None, json!({})),
        (400, None, json!([])),
        (400, Some("txet"), json!({"text": "one", "txet": "one"})),
        (400, Some("text"), json!({"text": null})),
        (413, Some("text"), json!({"text": "x".repeat(31)})),
        (413, Some("text"), json!({"text": ["one", "one", "one", "one"]})),
        (413, Some("text"), json!({"text": "a\na\na\na\na\na\na\na\na"})),
        (404, Some("model"), json!({"text": "one", "model": "nothing"})),
        (400, Some("target"), json!({"text": "one", "target": "it"})),
        (400, Some("beam"), json!({"text": "one", "beam": 6})),
        (400, Some("beam"), json!({"text": "one", "beam": 1.5})),
        (400, Some("n_best"), json!({"text": "one", "n_best": 0})),
        (400, Some("max_length"), json!({"text": "one", "max_length": 0})),
        (400, Some("sampling.temperature"), json!({"text": "one", "sampling": {"temperature": 0}})),
        (400, Some("sampling.topp"), json!({"text": "one", "sampling": {"topp": 0.5}})),
        (400, Some("prefix"), json!({"text": "one", "prefix": "a", "prefix_tokens": [1]})),
        (413, Some("prefix"), json!({"text": "one", "prefix": "a".repeat(5001)})),
        (400, Some("prefix_tokens"), json!({"text": "one", "prefix_tokens": [4_000_000]})),
        (400, Some("alternatives"), json!({"text": ["one", "two"], "alternatives": 2})),
        (400, Some("stream"), json!({"text": "one", "alternatives": 2, "stream": true})),
        (400, Some("split"), json!({"text": "one", "split": "words"})),
        (400, Some("text"), json!({"text": " ", "alternatives": 2})),
    ] {
        let answer = server.post("/v1/translate", &ask);
        let json = answer.json();
        let found = (answer.status, json["error"]["param"].as_str());
        // A field that should not be there may be told without its place.
        assert!(found == (status, field) || (found.0 == status && field == Some("txet")), "{ask}: {json}");
    }
    assert_eq!(server.metric("attentive_queue_sentences"), 0.0);
}

#[test]
fn what_is_looked_into_is_what_was_translated_also_behind_the_mark_of_a_list() {
    let server = Running::start(Settings::default());
    let ask = |path, more: Value| {
        let mut ask = json!({"text": "- twenty-one", "target": "de"});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post(path, &ask).ok()
    };
    let translation = &ask("/v1/translate", json!({"alignments": true}))["translations"][0];
    assert_eq!(translation["hypotheses"][0]["text"], "- einundzwanzig");
    assert!(translation["hypotheses"][0].to_string().contains("[0,0]"), "{translation}");
    let alternatives = &ask("/v1/translate", json!({"alternatives": 2}))["translations"][0];
    assert_eq!(alternatives["hypotheses"][0]["text"], "- einundzwanzig");
    assert_eq!(alternatives["source"], translation["source"]);
    let pieces = |answer: &Value| answer["source"].to_string();
    let plain = server.post("/v1/attention", &json!({"text": "twenty-one", "target": "de"})).ok();
    assert_eq!(pieces(&ask("/v1/attention", json!({}))), pieces(&plain));
}
