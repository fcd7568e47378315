//! Models of several languages: mBART, M2M-100 and NLLB with their tokens, and a T5 that is asked in words.

use super::Running;
use attentive_serve::{ModelPlace, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const ENGLISH: &str = "The train was late again this morning, so we walked to the office.";
const GERMAN: &str = "Der Zug hatte heute Morgen wieder Verspätung, also gingen wir zu Fuß ins Büro.";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

fn place(name: &str, folder: &str) -> ModelPlace {
    ModelPlace::named(name, golden().join(folder))
}

/// The tokens of the best translation, and the first token of the source.
fn tokens(answer: &Value) -> (Vec<u64>, u64) {
    let translation = &answer["translations"][0];
    let ids = |tokens: &Value| {
        tokens.as_array().unwrap().iter().map(|token| token["id"].as_u64().unwrap()).collect()
    };
    let (source, target): (Vec<u64>, Vec<u64>) =
        (ids(&translation["source"]), ids(&translation["hypotheses"][0]["tokens"]));
    (target, source[0])
}

#[test]
fn models_with_tokens_for_languages_translate_as_in_transformers() {
    let names = ["mbart", "m2m", "nllb"];
    let models = names.map(|name| place(name, &format!("bart/{name}"))).into();
    let server = Running::start_with(Settings::default(), models);
    let expected: Value =
        serde_json::from_slice(&std::fs::read(golden().join("languages.json")).unwrap()).unwrap();
    for name in names {
        for (place, line) in expected[name]["lines"].as_array().unwrap().iter().enumerate() {
            let ask = json!({
                "model": name, "text": expected["lines"][place], "source": "en", "target": "fr", "beam": 1,
                "max_length": line["tokens"].as_array().unwrap().len(), "split": "lines",
            });
            let (target, source) = tokens(&server.post("/v1/translate", &ask).ok());
            assert_eq!(
                (json!(target), json!(source)),
                (line["tokens"].clone(), line["ids"][0].clone()),
                "{name} {place}"
            );
        }
    }
}

#[test]
fn the_languages_of_a_model_are_told_and_chosen() {
    let server = Running::start_with(Settings::default(), vec![place("nllb", "bart/nllb")]);
    let languages = server.get("/languages").ok();
    assert_eq!(
        languages[0],
        json!({"code": "de", "name": "German", "targets": ["en", "fr", "zh", "zh-Hant"]})
    );
    assert_eq!(languages[4]["name"], "Chinese (traditional)");
    let settings = server.get("/frontend/settings").ok();
    assert_eq!(settings["language"]["source"]["code"], "auto");
    let models = server.get("/v1/models").ok();
    assert_eq!(models["data"][0]["details"]["sources"].as_array().unwrap().len(), 5);
    assert_eq!(models["data"][3]["id"], "nllb:fr");

    let ask = |source: &str, target: &str, text: &str| {
        let ask = json!({"text": text, "source": source, "target": target, "beam": 1, "max_length": 2, "split": "lines"});
        tokens(&server.post("/v1/translate", &ask).ok())
    };
    // Each language has its own token on either side, whatever it is called.
    let (german, english) = (ask("de", "en", GERMAN), ask("en", "de", ENGLISH));
    assert!(german.1 != english.1 && german.0[0] == english.1 && english.0[0] == german.1);
    assert_eq!((ask("deu", "eng_Latn", GERMAN), ask("auto", "en", GERMAN)), (german.clone(), german));
    assert_eq!(ask("auto", "de", ENGLISH), english);

    let auto = json!({"q": [GERMAN, "Wie geht es dir?"], "source": "auto", "target": "fr"});
    let answer = server.post("/translate", &auto).ok();
    assert_eq!(answer["detectedLanguage"][1]["language"], "de");
    let html = json!({"q": format!("<p title=\"{ENGLISH}\">{GERMAN}</p>"), "source": "auto", "target": "fr", "format": "html"});
    assert_eq!(server.post("/translate", &html).ok()["detectedLanguage"]["language"], "de");
    let chat = |model: &str| {
        server.post(
            "/v1/chat/completions",
            &json!({"model": model, "messages": [{"role": "user", "content": GERMAN}]}),
        )
    };
    assert_eq!(chat("nllb:fr").status, 200);

    for (field, ask) in [
        ("source", json!({"q": GERMAN, "source": "ja", "target": "fr"})),
        ("source", json!({"q": GERMAN, "source": "ja", "target": "fr", "model": "nllb"})),
        ("target", json!({"q": GERMAN, "source": "de", "target": "ja"})),
        ("target", json!({"q": GERMAN, "source": "de", "target": "de", "model": "nllb"})),
    ] {
        let answer = server.post("/translate", &ask);
        let message = answer.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(answer.status == 400 && message.contains(&format!("`{field}`")), "{message} {ask}");
    }
    let missing = chat("nllb");
    assert_eq!(missing.status, 400);
    let message = missing.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`target`") && message.contains("`nllb:fr`"), "{message}");
}

/// A T5 whose configuration says how it is asked to translate.
struct Asked(PathBuf);

impl Asked {
    fn new() -> Asked {
        let (folder, t5) = (
            std::env::temp_dir().join(format!("attentive-asked-{}", std::process::id())),
            golden().join("t5/first"),
        );
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["model.safetensors", "spiece.model", "generation_config.json"] {
            std::fs::copy(t5.join(name), folder.join(name)).unwrap();
        }
        let mut config: Value =
            serde_json::from_slice(&std::fs::read(t5.join("config.json")).unwrap()).unwrap();
        config["task_specific_params"] = json!({
            "summarization": {"prefix": "summarize: "},
            "translation_en_to_de": {"prefix": "translate English to German: ", "num_beams": 2, "max_length": 6},
            "translation_en_to_fr": {"prefix": "translate English to French: ", "num_beams": 2, "max_length": 6},
        });
        std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
        Asked(folder)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_t5_is_asked_in_its_own_words_for_each_pair_of_languages() {
    let folder = Asked::new();
    let server = Running::start_with(Settings::default(), vec![ModelPlace::named("t5", &folder.0)]);
    assert_eq!(
        server.get("/languages").ok(),
        json!([{"code": "en", "name": "English", "targets": ["de", "fr"]}])
    );
    let ask = |ask: Value| server.post("/v1/translate", &ask).ok();
    let asked = ask(json!({"text": ENGLISH, "source": "en", "target": "fr"}));
    // What stands before the text is the same, written out.
    let written =
        ask(json!({"text": format!("translate English to French: {ENGLISH}"), "beam": 2, "max_length": 5}));
    assert_eq!(asked["translations"][0]["source"], written["translations"][0]["source"]);
    assert_eq!(
        asked["translations"][0]["hypotheses"][0]["tokens"],
        written["translations"][0]["hypotheses"][0]["tokens"]
    );
    // Words of the question are no words of the text.
    let aligned = ask(json!({"text": "A batch is packed", "target": "de", "alignments": true}));
    let links = aligned["translations"][0]["hypotheses"][0]["alignment"].as_array().unwrap();
    assert!(links.iter().all(|link| link[0].as_u64().unwrap() < 4), "{links:?}");
    let answer = server.post("/translate", &json!({"q": ENGLISH, "source": "auto", "target": "fr"})).ok();
    assert_eq!(answer["detectedLanguage"]["language"], "en");
    let refused = server.post("/translate", &json!({"q": ENGLISH, "source": "de", "target": "fr"}));
    assert_eq!(refused.status, 400);
}
