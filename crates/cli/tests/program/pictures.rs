//! `attentive classify` and `embed` with pictures, and what other commands make of a ViT.

use super::run;
use std::path::PathBuf;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

fn model(name: &str) -> String {
    format!("{GOLDEN}/vit/{name}")
}

fn picture(name: &str) -> String {
    format!("{GOLDEN}/image/{name}")
}

/// A folder that is gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("attentive-pictures-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn pictures_get_labels_that_do_not_depend_on_the_others() {
    let (classes, cat, photo) = (model("classes"), picture("chelsea.png"), picture("turned.jpg"));
    let together = run(&format!("classify --model {classes} {cat} {photo}"));
    assert_eq!((together.code, &together.stderr[..]), (Some(0), ""));
    let alone = [&cat, &photo].map(|one| run(&format!("classify --model {classes} {one}")).stdout);
    assert_eq!(together.stdout, alone.concat());
    let found = run(&format!("classify --model {classes} {cat} --json")).json();
    assert_eq!(found["picture"], *cat);
    assert_eq!(found["label"], found["scores"][0]["label"]);
    let scores = found["scores"].as_array().unwrap();
    let sum: f64 = scores.iter().map(|one| one["score"].as_f64().unwrap()).sum();
    assert!(scores.len() == 5 && (sum - 1.0).abs() < 1e-5, "{found}");
}

#[test]
fn pictures_become_vectors_and_are_ranked() {
    let scratch = Scratch::new("vectors");
    let (dino, cat, coffee) = (model("dino"), picture("chelsea.png"), picture("coffee.png"));
    let found = run(&format!("embed --model {dino} {cat} --json")).json();
    let vector: Vec<f64> =
        found["embedding"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let length: f64 = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!(vector.len() == 32 && (length - 1.0).abs() < 1e-5);
    let file = scratch.file("vectors.npy");
    let list = scratch.file("list.txt");
    std::fs::write(&list, format!("{cat}\n{coffee}\n")).unwrap();
    let written = run(&format!("embed --model {dino} --input {list} --output {file}"));
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes.len(), 128 + 2 * 32 * 4);
    let first = f32::from_le_bytes(bytes[128..132].try_into().unwrap());
    assert!((f64::from(first) - vector[0]).abs() < 1e-6);
    let ranked = run(&format!("embed --model {dino} {coffee} {cat} --similar {cat} --top 1 --json")).json();
    assert_eq!((ranked["picture"].as_str(), ranked["line"].as_u64()), (Some(&cat[..]), Some(2)));
}

#[test]
fn what_cannot_be_classified_is_told_in_a_sentence() {
    let scratch = Scratch::new("refused");
    let (classes, cat) = (model("classes"), picture("chelsea.png"));
    let broken = scratch.file("broken.png");
    let whole = std::fs::read(&cat).unwrap();
    std::fs::write(&broken, &whole[..whole.len() / 2]).unwrap();
    run(&format!("classify --model {classes} {broken}")).failed(&["broken.png", "a broken PNG picture"]);
    run(&format!("classify --model {classes} missing.png")).failed(&["missing.png"]);
    run(&format!("classify --model {classes} {GOLDEN}/README.md"))
        .failed(&["README.md", "PNG, JPEG and WebP"]);
    run(&format!("classify --model {classes} {cat} --pairs")).misused(&["--pairs"]);
    run(&format!("classify --model {} {cat}", model("hidden")))
        .failed(&["ViTForImageClassification", "ViTModel"]);
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(format!("{classes}/{file}"), scratch.0.join(file)).unwrap();
    }
    let without = scratch.0.display();
    run(&format!("classify --model {without} {cat}")).failed(&["preprocessor_config.json"]);
}

#[test]
fn a_model_of_pictures_is_described_converted_and_timed() {
    let scratch = Scratch::new("convert");
    let (classes, half) = (model("classes"), scratch.file("half"));
    let found = run(&format!("info {classes} --json")).json();
    assert_eq!((found["family"].as_str(), found["tokens"].as_u64()), (Some("ViT"), Some(17)));
    assert_eq!(found["labels"][1], "dog");
    let registers = run(&format!("info {}", model("registers")));
    assert!(
        registers.stdout.contains("DINOv2 with registers (Dinov2WithRegistersModel)"),
        "{}",
        registers.stdout
    );
    let converted = run(&format!("convert --model {classes} --out {half} --precision bf16 --json")).json();
    assert!(converted["bytes"].as_u64() < converted["bytes_before"].as_u64());
    assert!(converted["no_tokenizer"].is_null());
    let cat = picture("chelsea.png");
    let labels = [&classes, &half].map(|model| {
        run(&format!("classify --model {model} {cat} --json")).json()["label"].as_str().unwrap().to_owned()
    });
    assert_eq!(labels[0], labels[1]);
    for precision in ["f32", "bf16", "int8"] {
        let line =
            format!("bench classify --model {classes} --batch 2 --repeat 1 --precision {precision} --json");
        let timed = run(&line).json();
        assert!(timed["cosine"].as_f64().unwrap() > 0.99 && timed["batch"] == 2, "{timed}");
    }
}

#[test]
fn heads_are_drawn_over_the_picture() {
    let scratch = Scratch::new("inspect");
    let (dino, cat) = (model("dino"), picture("chelsea.png"));
    for (name, more, part) in [
        ("heads.png", "", &b"\x89PNG"[..]),
        ("heads.svg", "--layer 1 --patch 2,3", b"<svg"),
        ("heads.html", "--head mean", b"<!doctype html>"),
    ] {
        let file = scratch.file(name);
        let drawn = run(&format!("inspect {cat} --model {dino} --out {file} {more}"));
        assert_eq!(drawn.code, Some(0), "{}", drawn.stderr);
        assert!(std::fs::read(&file).unwrap().starts_with(part), "{name}");
    }
    let out = scratch.file("none.svg");
    run(&format!("inspect {cat} --model {dino} --out {out} --patch 5,1")).misused(&["--patch", "4 rows"]);
    run(&format!("inspect {cat} --model {dino} --out {out} --layer 9")).misused(&["--layer"]);
    run(&format!("inspect {cat} --model {dino} --out {out} --patch 0,1")).refused(&["3,5"]);
    run(&format!("inspect text --model {GOLDEN}/bert/hidden --out {out} --patch 1,1")).misused(&["--patch"]);
}
