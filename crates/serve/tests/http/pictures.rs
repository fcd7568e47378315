//! Models of pictures: classes, vectors, boxes and attention, of files and of base64.

use super::Running;
use super::client::Answer;
use super::encoder::{self, near};
use attentive_image::Picture;
use attentive_serve::{Limits, ModelPlace, Settings};
use attentive_tasks::{Detector, PictureClassifier, PictureEmbedder};
use attentive_tensor::{Backend, CpuBackend, Form};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

fn vit(name: &str) -> PathBuf {
    Path::new(GOLDEN).join("vit").join(name)
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(GOLDEN).join("image").join(name)).unwrap()
}

fn picture(name: &str) -> Picture {
    Picture::decode(&file(name)).unwrap()
}

fn backend() -> Arc<dyn Backend> {
    CpuBackend::from_env().unwrap().shared()
}

/// A small DETR that says how it wants its pictures, in a folder that is gone when the test ends.
struct Detr(PathBuf);

impl Detr {
    fn new(test: &str) -> Detr {
        let folder = std::env::temp_dir().join(format!("attentive-http-detr-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(Path::new(GOLDEN).join("detr/basic").join(file), folder.join(file)).unwrap();
        }
        let processor = json!({"image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 40, "longest_edge": 60}});
        std::fs::write(folder.join("preprocessor_config.json"), processor.to_string()).unwrap();
        Detr(folder)
    }
}

impl Drop for Detr {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(settings: Settings, models: &[(&str, &Path)]) -> Running {
    Running::start_with(
        settings,
        models.iter().map(|(name, folder)| ModelPlace::named(*name, folder)).collect(),
    )
}

/// `data:image/png;base64,…`
fn data_url(bytes: &[u8]) -> String {
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(bytes))
}

/// The body of a form; a file has a file name.
fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        let file =
            file.map(|file| format!("; filename=\"{file}\"\r\nContent-Type: image/png")).unwrap_or_default();
        let head = format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
    }
    [&body[..], b"--xyz--\r\n"].concat()
}

const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=xyz");

fn send(server: &Running, path: &str, parts: &[(&str, Option<&str>, &[u8])]) -> Answer {
    server.client().send("POST", path, &[FORM], &form(parts))
}

/// Labels and scores are those of the model without a server.
#[track_caller]
fn same_classes(found: &Value, classifier: &PictureClassifier, name: &str) {
    let pixels = classifier.encoder().ready(&picture(name)).unwrap();
    let [expected] = &classifier.classify(&[pixels]).unwrap()[..] else { panic!("one picture") };
    let scores: Vec<f64> = expected.scores.iter().map(|(_, score)| f64::from(*score)).collect();
    let found_scores: Vec<Value> =
        found["scores"].as_array().unwrap().iter().map(|one| one["score"].clone()).collect();
    near(&json!(found_scores), &json!(scores));
    assert_eq!(found["label"], expected.scores[0].0);
    assert_eq!(
        (&found["label"], &found["score"]),
        (&found["scores"][0]["label"], &found["scores"][0]["score"])
    );
}

#[test]
fn files_and_base64_have_the_same_classes_as_without_a_server() {
    let server = start(Settings::default(), &[("animals", &vit("classes"))]);
    let classifier = PictureClassifier::open(&backend(), &vit("classes"), Form::Precise).unwrap();
    let names = ["chelsea.png", "turned.jpg", "lossy.webp"];
    let files = names.map(file);
    let parts: Vec<(&str, Option<&str>, &[u8])> =
        files.iter().map(|bytes| ("image", Some("a.png"), &bytes[..])).collect();
    let answer = send(&server, "/v1/classify", &parts).ok();
    assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!("animals")));
    let found = answer["data"].as_array().unwrap();
    assert_eq!(found.len(), names.len());
    for ((i, name), found) in names.iter().enumerate().zip(found) {
        assert_eq!(found["index"], i);
        same_classes(found, &classifier, name);
    }
    let urls = files.each_ref().map(|bytes| data_url(bytes));
    assert_eq!(server.post("/v1/classify", &json!({"model": "animals", "input": urls})).ok(), answer);
    let bare = BASE64_STANDARD.encode(&files[0]);
    let one = server.post("/v1/classify", &json!({"input": bare})).ok();
    assert_eq!(one["data"][0]["scores"], found[0]["scores"]);
    let fields = [("model", None, &b"animals"[..]), ("top_k", None, b"2"), ("file", Some("b"), &files[0])];
    let two = send(&server, "/v1/classify", &fields).ok();
    assert_eq!(two["data"][0]["scores"].as_array().unwrap().len(), 2);
    let model = &server.get("/v1/models/animals").ok()["details"];
    assert_eq!((&model["task"], &model["reads"]), (&json!("image-classification"), &json!("pictures")));
    assert_eq!(model["routes"], json!(["/v1/classify", "/v1/embeddings", "/v1/attention"]));
    assert_eq!((model["labels"][1].as_str(), model["encoder_layers"].as_u64()), (Some("dog"), Some(2)));
    let info = server.get("/info").ok();
    assert_eq!(info["model_type"]["image_classifier"]["id2label"]["1"], "dog");
    assert_eq!(server.metric("attentive_texts_total"), 8.0);
}

#[test]
fn pictures_become_the_vectors_that_they_become_without_a_server() {
    let server = start(Settings::default(), &[("dino", &vit("dino"))]);
    let embedder = PictureEmbedder::open(&backend(), &vit("dino"), Form::Precise).unwrap();
    let pixels = embedder.encoder().ready(&picture("chelsea.png")).unwrap();
    let expected = embedder.vectors(&[pixels]).unwrap().numbers;
    let cat = file("chelsea.png");
    let answer = send(&server, "/v1/embeddings", &[("image", Some("cat.png"), &cat)]).ok();
    near(&answer["data"][0]["embedding"], &json!(expected));
    // The class token and 4 × 4 patches.
    assert_eq!(answer["usage"], json!({"prompt_tokens": 17, "total_tokens": 17}));
    let input = [data_url(&cat), data_url(&file("coffee.png"))];
    let ask = json!({"input": input, "model": "dino", "encoding_format": "base64"});
    let both = server.post("/v1/embeddings", &ask).ok();
    let bytes = BASE64_STANDARD.decode(both["data"][0]["embedding"].as_str().unwrap()).unwrap();
    let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect();
    near(&json!(numbers), &json!(expected));
    assert_ne!(both["data"][0]["embedding"], both["data"][1]["embedding"]);
    let message = server
        .post("/v1/embeddings", &json!({"input": input[0], "dimensions": 9}))
        .refused(400, Some("dimensions"));
    assert!(message.contains("32 numbers"), "{message}");
}

#[test]
fn things_have_the_boxes_that_they_have_without_a_server() {
    let folder = Detr::new("things");
    let server = start(Settings::default(), &[("things", &folder.0)]);
    let detector = Detector::open(&backend(), &folder.0, Form::Precise).unwrap();
    let (cat, coffee) = (file("chelsea.png"), file("coffee.png"));
    let parts = [("threshold", None, &b"0"[..]), ("image", Some("a"), &cat), ("image", Some("b"), &coffee)];
    let found = send(&server, "/v1/detect", &parts).ok();
    let found = found.as_array().unwrap();
    let mut expected = Vec::new();
    for (image_id, name) in [(1, "chelsea.png"), (2, "coffee.png")] {
        expected.extend(detector.detect(&picture(name), 0.0).unwrap().into_iter().map(|one| (image_id, one)));
    }
    assert_eq!(found.len(), expected.len());
    for (found, (image_id, one)) in found.iter().zip(expected) {
        assert_eq!(found["image_id"], image_id);
        assert_eq!(found["category_id"], one.class);
        assert_eq!(found["label"], detector.labels()[one.class]);
        assert!((found["score"].as_f64().unwrap() - one.score).abs() < 1e-9, "{found}");
        assert_eq!(found["bbox"], json!(one.bbox));
    }
    let most = found.iter().map(|one| one["score"].as_f64().unwrap()).fold(0.0, f64::max);
    let none = server.post("/v1/detect", &json!({"input": data_url(&cat), "threshold": most})).ok();
    assert_eq!(none, json!([]));
    server
        .post("/v1/detect", &json!({"input": data_url(&cat), "threshold": 2}))
        .refused(400, Some("threshold"));
    let details = &server.get("/v1/models/things").ok()["details"];
    assert_eq!((&details["task"], &details["routes"]), (&json!("object-detection"), &json!(["/v1/detect"])));
    let message = server.post("/v1/attention", &json!({"image": data_url(&cat)})).refused(400, Some("model"));
    assert!(message.contains("`things` finds things in pictures at /v1/detect"), "{message}");
}

#[test]
fn heads_look_where_they_look_without_a_server() {
    let server = start(Settings::default(), &[("dino", &vit("dino"))]);
    let embedder = PictureEmbedder::open(&backend(), &vit("dino"), Form::Precise).unwrap();
    let encoder = embedder.encoder();
    let inspection = encoder.inspect(&encoder.ready(&picture("chelsea.png")).unwrap());
    let cat = file("chelsea.png");
    let ask = json!({"image": data_url(&cat), "patch": [1, 2], "return_image": true});
    let answer = server.post("/v1/attention", &ask).ok();
    assert_eq!((&answer["grid"], &answer["patch"]), (&json!([4, 4]), &json!([1, 2])));
    let seen = answer["image"].as_str().unwrap().strip_prefix("data:image/png;base64,").unwrap();
    let seen = Picture::decode(&BASE64_STANDARD.decode(seen).unwrap()).unwrap();
    assert_eq!((seen.width(), seen.height()), (16, 16));
    let gazes = answer["attention"].as_array().unwrap();
    assert_eq!(gazes.len(), 5);
    for (gaze, head) in gazes.iter().zip([Some(0), Some(1), Some(2), Some(3), None]) {
        assert_eq!((&gaze["layer"], &gaze["head"]), (&json!(1), &json!(head)));
        let selector = attentive_generate::AttentionSelector {
            kind: attentive_generate::AttentionKind::Encoder,
            layer: 1,
            head,
        };
        let matrix = inspection.weights(selector).unwrap();
        let row = matrix.row(1 + 4 + 2);
        near(&gaze["before"], &json!(row[..1]));
        for (y, weights) in gaze["weights"].as_array().unwrap().iter().enumerate() {
            near(weights, &json!(row[1 + 4 * y..][..4]));
        }
    }
    // Without a patch it is the class token, and a form says the same.
    let parts = [("layers", None, &b"[0]"[..]), ("heads", None, b"[3]"), ("image", Some("a"), &cat)];
    let class = send(&server, "/v1/attention", &parts).ok();
    let selector = attentive_generate::AttentionSelector {
        kind: attentive_generate::AttentionKind::Encoder,
        layer: 0,
        head: Some(3),
    };
    near(&class["attention"][0]["before"], &json!(inspection.weights(selector).unwrap().row(0)[..1]));
    assert!(class["patch"].is_null() && class.get("image").is_none());
    for (field, more) in [
        ("patch", json!({"patch": [4, 0]})),
        ("layers", json!({"layers": [2]})),
        ("heads", json!({"heads": [4]})),
        ("kinds", json!({"kinds": ["cross"]})),
        ("text", json!({"text": "a dog"})),
        ("vectors", json!({"vectors": {"kind": "encoder", "layer": 0, "head": 0}})),
    ] {
        let mut ask = json!({"image": data_url(&cat)});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/attention", &ask).refused(400, Some(field));
    }
    server.post("/v1/attention", &json!({"layers": [0]})).refused(400, Some("image"));
}

/// The beginning of a PNG file of 100000 × 100000 pixels.
fn bomb() -> Vec<u8> {
    let mut png = Picture::filled(1, 1, [0; 3]).to_png();
    png[16..24].copy_from_slice(&[100_000u32.to_be_bytes(), 100_000u32.to_be_bytes()].concat());
    // The checksum of the chunk belongs to other sizes.
    let mut crc = !0u32;
    for byte in &png[12..29] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
        }
    }
    png[29..33].copy_from_slice(&(!crc).to_be_bytes());
    png
}

#[test]
fn what_is_no_picture_is_refused_in_one_sentence() {
    let limits = Limits { pictures: 2, body: 100_000, picture_body: 200_000, ..Limits::default() };
    let folder = Detr::new("refused");
    let models = [("animals", &*vit("classes")), ("things", &*folder.0)];
    let server = start(Settings { limits, ..Settings::default() }, &models);
    let cat = file("chelsea.png");
    for path in ["/v1/classify", "/v1/detect", "/v1/embeddings"] {
        for (bytes, status, expected) in [
            (&cat[..cat.len() / 2], 400, "picture 1: a broken PNG picture"),
            (b"GIF89a", 415, "PNG, JPEG and WebP"),
            (&bomb(), 413, "100000 × 100000 pixels"),
        ] {
            let message = send(&server, path, &[("image", Some("a"), bytes)]).refused(status, Some("input"));
            assert!(message.contains(expected), "{path}: {message}");
            let message =
                server.post(path, &json!({"input": data_url(bytes)})).refused(status, Some("input"));
            assert!(message.contains(expected), "{path}: {message}");
        }
        for (ask, status, expected) in [
            (json!({"input": "A dog runs."}), 400, "reads pictures, and not texts"),
            (json!({"input": "https://example.org/a.png"}), 400, "send the picture itself"),
            (json!({"input": [1, 2]}), 400, "reads pictures"),
            (json!({"input": []}), 400, "no picture"),
            (json!({}), 400, "is missing"),
            (json!({"input": [data_url(&cat), data_url(&cat), "AQ"]}), 413, "--max-pictures"),
        ] {
            let message = server.post(path, &ask).refused(status, Some("input"));
            assert!(message.contains(expected), "{path}: {message}");
        }
        let message = send(&server, path, &[("photo", Some("a"), &cat)]).refused(400, Some("photo"));
        assert!(message.contains("`image` or `file`"), "{message}");
        let message = server.client().send("POST", path, &[FORM], b"--xyz\r\n").refused(400, None);
        assert!(message.contains("the form cannot be read: it is incomplete"), "{message}");
        server.client().send("POST", path, &[("Content-Type", "image/png")], &cat).refused(415, None);
        send(&server, path, &[("image", Some("a"), &vec![0; 300_000])]).refused(413, Some("body"));
        send(&server, path, &[("model", None, b"none"), ("image", Some("a"), &cat)])
            .refused(404, Some("model"));
    }
    let ask = json!({"model": "things", "input": data_url(&cat)});
    let message = server.post("/v1/classify", &ask).refused(400, Some("model"));
    assert!(message.contains("not a model that classifies pictures: `things` finds things"), "{message}");
}

#[test]
fn models_of_texts_and_of_pictures_are_told_apart() {
    let moods = encoder::Folder::new("sequence");
    let words = encoder::Folder::new("hidden");
    let models =
        vec![ModelPlace::named("animals", vit("classes")), moods.named("moods"), words.named("words")];
    let server = Running::start_with(Settings::default(), models);
    let cat = data_url(&file("chelsea.png"));
    // Without a name, what is sent tells which model it is for.
    let model = |path: &str, input: &Value| server.post(path, &json!({"input": input})).ok()["model"].clone();
    assert_eq!(model("/v1/classify", &json!("a dog")), "moods");
    assert_eq!(model("/v1/classify", &json!(cat)), "animals");
    assert_eq!(model("/v1/embeddings", &json!("a dog")), "words");
    assert_eq!(model("/v1/embeddings", &json!([cat])), "animals");
    assert_eq!(server.post("/v1/attention", &json!({"text": "a dog"})).ok()["model"], "moods");
    assert_eq!(server.post("/v1/attention", &json!({"image": cat})).ok()["model"], "animals");
    let texts = server.post("/v1/classify", &json!({"input": "a dog", "top_k": 1})).ok();
    let known = server.post("/predict", &json!({"inputs": "a dog"})).ok();
    assert_eq!(texts["data"][0]["scores"], json!([known[0]]));
    // Who asks the wrong one is told what it does, and where.
    for (path, ask, expected) in [
        ("/v1/classify", json!({"model": "moods", "input": cat}), "`moods` classifies texts"),
        ("/v1/embeddings", json!({"model": "words", "input": cat}), "`words` makes embeddings"),
        ("/v1/attention", json!({"model": "words", "image": cat}), "`words` makes embeddings"),
        ("/predict", json!({"model": "animals", "inputs": "a dog"}), "`animals` classifies pictures"),
    ] {
        let answer = server.post(path, &ask);
        assert!(answer.text().contains(expected) && answer.status >= 400, "{}", answer.text());
    }
    let message = server
        .post("/v1/classify", &json!({"model": "animals", "input": "a dog"}))
        .refused(400, Some("input"));
    assert!(message.contains("reads pictures"), "{message}");
    let message = server
        .post("/v1/attention", &json!({"model": "animals", "text": "a dog"}))
        .refused(400, Some("text"));
    assert!(message.contains("reads pictures"), "{message}");
}

#[test]
fn a_key_is_checked_before_a_picture_is_read() {
    let settings = Settings { keys: vec!["secret".to_owned()], ..Settings::default() };
    let server = start(settings, &[("animals", &vit("classes"))]);
    for path in ["/v1/classify", "/v1/detect", "/v1/embeddings", "/v1/attention"] {
        // The body is announced and never sent.
        let mut client = server.client();
        let head = "Host: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: 5000000";
        client.0.write_all(format!("POST {path} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
        client.read().refused(401, None);
    }
    let key = ("Authorization", "Bearer secret");
    let body = form(&[("image", Some("a"), &file("chelsea.png"))]);
    assert_eq!(server.client().send("POST", "/v1/classify", &[FORM, key], &body).status, 200);
}

#[test]
fn pictures_of_several_clients_share_batches() {
    let server = start(Settings::default(), &[("animals", &vit("classes"))]);
    let names = ["chelsea.png", "coffee.png", "astronaut.png", "turned.jpg"];
    let alone = names.map(|name| send(&server, "/v1/classify", &[("image", Some("a"), &file(name))]).ok());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            for (name, alone) in names.iter().zip(&alone) {
                let server = &server;
                scope.spawn(move || {
                    let found = send(server, "/v1/classify", &[("image", Some("a"), &file(name))]).ok();
                    assert_eq!(found, *alone, "{name}");
                });
            }
        }
    });
}
