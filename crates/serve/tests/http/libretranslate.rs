//! What clients of LibreTranslate ask.

use super::Running;
use attentive_serve::{Limits, ModelPlace, Settings};
use serde_json::json;

#[test]
fn a_text_is_translated_and_a_list_in_its_order() {
    let server = Running::start(Settings::default());
    let answer = server.post("/translate", &json!({"q": "twenty-one", "source": "en", "target": "de"})).ok();
    assert_eq!(answer, json!({"translatedText": "einundzwanzig"}));
    let many = json!({"q": ["seven", "ninety-seven"], "source": "auto", "target": "fr", "format": "text"});
    let answer = server.post("/translate", &many).ok();
    assert_eq!(answer["translatedText"], json!(["sept", "quatre-vingt-dix-sept"]));
    let languages = answer["detectedLanguage"].as_array().unwrap();
    assert!(languages.len() == 2 && languages.iter().all(|one| one["language"] == "en"), "{languages:?}");
}

#[test]
fn a_language_is_detected_and_its_confidence_told() {
    let server = Running::start(Settings::default());
    for (language, text) in [
        ("en", "The train was late again this morning, so we walked to the office through the park."),
        (
            "de",
            "Der Zug hatte heute Morgen wieder Verspätung, also gingen wir zu Fuß durch den Park ins Büro.",
        ),
        ("ja", "今朝も電車が遅れたので、私たちは公園を通って会社まで歩きました。"),
    ] {
        let answer = server.post("/detect", &json!({"q": text})).ok();
        let [found] = &answer.as_array().unwrap()[..] else { panic!("{answer}") };
        assert_eq!(found["language"], language);
        let confidence = found["confidence"].as_f64().unwrap();
        assert!(confidence > 0.0 && confidence <= 100.0, "{found}");
    }
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = server.client().send("POST", "/detect", &form, b"q=Wie+geht+es+dir+heute+Morgen%3F").ok();
    assert_eq!(answer[0]["language"], "de");
    assert_eq!(
        server.post("/detect", &json!({"q": "12"})).ok(),
        json!([{"confidence": 0.0, "language": "en"}])
    );
    let refused = server.post("/detect", &json!({}));
    assert_eq!((refused.status, refused.json()["error"].is_string()), (400, true));
    // The only model reads English: that is the best guess, and no good one.
    let polish = "Pociąg znowu spóźnił się dziś rano, więc poszliśmy do biura pieszo przez park.";
    let answer = server.post("/translate", &json!({"q": polish, "source": "auto", "target": "de"})).ok();
    assert_eq!(answer["detectedLanguage"], json!({"confidence": 0.0, "language": "en"}));
}

#[test]
fn a_form_is_as_good_as_json() {
    let server = Running::start(Settings::default());
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = b"q=two+hundred+and+one&source=en&target=de&format=text&alternatives=2";
    let answer = server.client().send("POST", "/translate", &form, body).ok();
    assert_eq!(answer["translatedText"], "zweihunderteins");
    let alternatives = answer["alternatives"].as_array().unwrap();
    assert!(!alternatives.is_empty() && alternatives.len() <= 2, "{alternatives:?}");
    assert!(alternatives.iter().all(|other| *other != "zweihunderteins"));
}

#[test]
fn json_is_read_whatever_type_curl_gives_it() {
    let server = Running::start(Settings::default());
    let ask = br#" {"q": "twenty-one", "source": "en", "target": "de"}"#;
    for headers in [&[("Content-Type", "application/x-www-form-urlencoded")][..], &[]] {
        let answer = server.client().send("POST", "/translate", headers, ask).ok();
        assert_eq!(answer["translatedText"], "einundzwanzig");
        let broken = server.client().send("POST", "/translate", headers, b"{\"q\": ");
        assert_eq!(broken.status, 400, "{}", broken.text());
    }
}

/// The model of the program in another folder, which is searched in another way.
pub fn searching(name: &str, search: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("attentive-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/model");
    for name in ["config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"] {
        std::fs::copy(format!("{model}/{name}"), folder.join(name)).unwrap();
    }
    let languages = r#"{"source_lang": "en", "target_lang": "de"}"#;
    std::fs::write(folder.join("tokenizer_config.json"), languages).unwrap();
    std::fs::write(folder.join("generation_config.json"), search).unwrap();
    folder
}

#[test]
fn a_model_is_taken_by_its_name() {
    // It writes two tokens and no more.
    let folder = searching("terse", r#"{"max_new_tokens": 2}"#);
    let models = vec![ModelPlace::numbers(), ModelPlace::named("terse", &folder)];
    let server = Running::start_with(Settings::default(), models);
    std::fs::remove_dir_all(&folder).unwrap();
    let ask = |more: serde_json::Value| {
        let mut ask = json!({"q": "twenty-one", "source": "en", "target": "de"});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/translate", &ask)
    };
    let whole = json!("einundzwanzig");
    for more in
        [json!({}), json!({"model": null}), json!({"model": "numbers"}), json!({"model": "numbers:fr"})]
    {
        assert_eq!(ask(more).ok()["translatedText"], whole);
    }
    for source in ["en", "auto"] {
        let text = ask(json!({"model": "terse", "source": source})).ok()["translatedText"].clone();
        assert!(text != whole && text.as_str().unwrap().len() < 13, "{text}");
    }
    for (status, words, more) in [
        (
            404,
            r#"`model`: there is no model "opus"; the models are `numbers`, `terse`"#,
            json!({"model": "opus"}),
        ),
        (400, "`source`: `terse` translates only from `en`", json!({"model": "terse", "source": "fr"})),
        (
            400,
            "`target`: `numbers` translates only into `de`, `fr`",
            json!({"model": "numbers", "target": "es"}),
        ),
    ] {
        let answer = ask(more);
        assert_eq!((answer.status, answer.json()["error"].as_str()), (status, Some(words)));
    }
}

#[test]
fn a_text_that_is_too_long_is_told_the_flag_that_sets_the_limit() {
    let server = Running::start(Settings::default());
    let ask = json!({"q": "one ".repeat(1251), "source": "en", "target": "de"});
    let message = server.post("/translate", &ask).json()["error"].as_str().unwrap().to_owned();
    assert!(message.contains("5004 characters") && message.contains("--max-characters"), "{message}");
}

#[test]
fn lines_stay_lines_and_tags_stay_tags() {
    let server = Running::start(Settings::default());
    let text = json!({"q": "\none\n\n two \n", "source": "en", "target": "de"});
    assert_eq!(server.post("/translate", &text).ok()["translatedText"], "\neins\n\n zwei \n");
    let html = json!({
        "q": "<p class=\"a>b\">twenty-one<p><b>two</b><script>one</script> &nbsp;", "source": "en", "target": "fr", "format": "html",
    });
    let expected = "<p class=\"a>b\">vingt et un<p><b>deux</b><script>one</script> &nbsp;";
    assert_eq!(server.post("/translate", &html).ok()["translatedText"], expected);
    let empty = json!({"q": " ", "source": "en", "target": "de"});
    assert_eq!(server.post("/translate", &empty).ok()["translatedText"], " ");
}

#[test]
fn a_sentence_in_html_is_translated_whole_and_keeps_its_tags() {
    let server = Running::start(Settings::default());
    let translated = |q: &str, format: &str| {
        let ask = json!({"q": q, "source": "en", "target": "fr", "format": format, "alternatives": 1});
        let answer = server.post("/translate", &ask).ok();
        [&answer["translatedText"], &answer["alternatives"][0]].map(|text| text.as_str().unwrap().to_owned())
    };
    let texts = translated("two hundred and one", "text");
    let documents = translated("<p>two <b>hundred</b> <!-- x -->and <i id='>'>one</i></p>", "html");
    for (text, html) in texts.iter().zip(&documents) {
        let mut bare = html.clone();
        for tag in ["<p>", "<b>", "</b>", "<!-- x -->", "<i id='>'>", "</i>", "</p>"] {
            assert_eq!(html.matches(tag).count(), 1, "{html}");
            bare = bare.replace(tag, "");
        }
        assert_eq!(bare.split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
    }
    assert_eq!(documents[0], "<p>deux <b>cent</b><!-- x --> <i id='>'>un</i></p>");
}

#[test]
fn refusals_are_in_libretranslates_form_and_name_the_field() {
    let limits = Limits { characters: 20, texts: 2, results: 3, ..Limits::default() };
    let server = Running::start(Settings { limits, ..Settings::default() });
    for (status, field, ask) in [
        (400, "q", json!({"source": "en", "target": "de"})),
        (400, "q", json!({"q": 5, "source": "en", "target": "de"})),
        (400, "q", json!({"q": ["one", 2], "source": "en", "target": "de"})),
        (400, "target", json!({"q": "one", "source": "en", "target": "xx"})),
        (400, "source", json!({"q": "one", "source": "de", "target": "fr"})),
        (400, "format", json!({"q": "one", "source": "en", "target": "de", "format": "pdf"})),
        (400, "alternatives", json!({"q": "one", "source": "en", "target": "de", "alternatives": 3})),
        (400, "alternatives", json!({"q": "one", "source": "en", "target": "de", "alternatives": -1})),
        (413, "q", json!({"q": "one one one one one one", "source": "en", "target": "de"})),
        (413, "q", json!({"q": ["one", "two", "three"], "source": "en", "target": "de"})),
        (413, "q", json!({"q": ["one", "two", "three"], "source": "en", "target": "de", "format": "html"})),
    ] {
        let answer = server.post("/translate", &ask);
        let message =
            answer.json()["error"].as_str().unwrap_or_else(|| panic!("{}", answer.text())).to_owned();
        assert!(
            answer.status == status && message.contains(&format!("`{field}`")),
            "{} {message} {ask}",
            answer.status
        );
    }
    let answer = server.client().send("POST", "/translate", &[("Content-Type", "text/plain")], b"one");
    assert_eq!((answer.status, answer.json()["error"].is_string()), (415, true));
    let answer = server.get("/translate");
    assert_eq!((answer.status, answer.json()["error"].is_string()), (405, true));
}

#[test]
fn languages_and_settings_are_what_a_client_expects() {
    let server = Running::start(Settings::default());
    let languages = server.get("/languages").ok();
    assert_eq!(languages, json!([{"code": "en", "name": "English", "targets": ["de", "fr"]}]));
    let settings = server.get("/frontend/settings").ok();
    assert_eq!((&settings["charLimit"], &settings["keyRequired"]), (&json!(5000), &json!(false)));
    assert_eq!(settings["language"]["source"], json!({"code": "en", "name": "English"}));
}
