//! Our own `/v1/tag`.

use super::Running;
use super::encoder::{Folder, answers};
use attentive_serve::Settings;
use serde_json::json;

#[test]
fn words_have_the_tags_of_transformers() {
    let folder = Folder::new("token");
    let server = Running::start_with(Settings::default(), vec![folder.named("names")]);
    let answers = answers();
    let texts = &answers["texts"].as_array().unwrap()[..4];
    let answer = server.post("/v1/tag", &json!({"text": texts, "truncate": true})).ok();
    assert_eq!(answer["model"], "names");
    for (number, text) in texts.iter().enumerate() {
        let (tagged, expected) = (&answer["tagged"][number], answers["tags"][number].as_array().unwrap());
        let words = tagged["words"].as_array().unwrap();
        assert_eq!(words.len(), expected.len(), "{text}");
        for (word, expected) in words.iter().zip(expected) {
            assert_eq!((&word["word"], &word["label"]), (&expected[0], &expected[1]));
            assert!((word["score"].as_f64().unwrap() - expected[2].as_f64().unwrap()).abs() < 1e-5);
            let [start, end] = ["start", "end"].map(|at| word[at].as_u64().unwrap() as usize);
            let whole: Vec<char> = text.as_str().unwrap().chars().collect();
            assert_eq!(whole[start..end].iter().collect::<String>(), word["word"].as_str().unwrap());
        }
        let of_words =
            |label: &str| words.iter().any(|word| word["label"].as_str().unwrap().ends_with(label));
        for entity in tagged["entities"].as_array().unwrap() {
            assert!(of_words(entity["entity_group"].as_str().unwrap()), "{entity}");
        }
    }
    assert!(!answer["tagged"][0]["entities"].as_array().unwrap().is_empty(), "{answer}");
    let message = server.post("/v1/tag", &json!({"text": texts})).refused(400, Some("text"));
    assert!(message.contains("text 3") && message.contains("`truncate`"), "{message}");
    let message = server.post("/v1/embeddings", &json!({"input": "a"})).refused(400, Some("model"));
    assert!(message.contains("`names` tags words at /v1/tag"), "{message}");
    let details = &server.get("/v1/models/names").ok()["details"];
    assert_eq!((&details["task"], &details["routes"]), (&json!("tag"), &json!(["/v1/tag", "/v1/attention"])));
    assert!(!details["labels"].as_array().unwrap().is_empty());
}
