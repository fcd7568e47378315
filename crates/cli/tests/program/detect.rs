//! `attentive detect` and `score --boxes`.

use super::run;
use std::path::PathBuf;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

/// A folder with a small DETR that says how it wants its pictures, gone when the test ends.
struct Model(PathBuf);

impl Model {
    fn new(test: &str) -> Model {
        let folder = std::env::temp_dir().join(format!("attentive-detect-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(format!("{GOLDEN}/detr/basic/{file}"), folder.join(file)).unwrap();
        }
        let processor = r#"{"image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 40, "longest_edge": 60}}"#;
        std::fs::write(folder.join("preprocessor_config.json"), processor).unwrap();
        Model(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn picture() -> String {
    format!("{GOLDEN}/image/chelsea.png")
}

#[test]
fn things_have_labels_scores_and_boxes_and_are_drawn() {
    let model = Model::new("things");
    let (picture, out) = (picture(), model.file("boxes.png"));
    let command = format!("detect --model {} {picture} --threshold 0", model.0.display());
    let lines = run(&command);
    assert_eq!((lines.code, &lines.stderr[..]), (Some(0), ""));
    let found = run(&format!("{command} --json --out {out}")).json();
    let found = found.as_array().unwrap();
    assert_eq!((found.len(), lines.stdout.lines().count()), (6, 6));
    let score = |i: usize| found[i]["score"].as_f64().unwrap();
    assert!((1..6).all(|i| score(i) <= score(i - 1)));
    assert_eq!(
        (found[0]["image_id"].as_i64(), found[0]["file_name"].as_str()),
        (Some(1), Some(&picture[..]))
    );
    let label = found[0]["label"].as_str().unwrap();
    assert!(["circle", "square", "star"].contains(&label) && lines.stdout.starts_with(label));
    assert!(std::fs::read(&out).unwrap().starts_with(b"\x89PNG"));
    for precision in ["bf16", "int8"] {
        let other = run(&format!("{command} --json --precision {precision}")).json();
        assert_eq!(other.as_array().unwrap().len(), 6);
    }
    let info = run(&format!("info {}", model.0.display())).stdout;
    assert!(info.contains("DETR") && info.contains("attentive detect") && info.contains("circle"), "{info}");
}

#[test]
fn the_pictures_of_annotations_are_found_and_scored() {
    let model = Model::new("annotations");
    let (annotations, found) = (model.file("val.json"), model.file("found.json"));
    std::fs::create_dir(model.0.join("images")).unwrap();
    std::fs::copy(picture(), model.0.join("images/cat.png")).unwrap();
    let text = r#"{"images": [{"id": 70, "file_name": "cat.png"}], "categories": [{"id": 5, "name": "square"}, {"id": 8, "name": "circle"}, {"id": 9, "name": "star"}],
        "annotations": [{"image_id": 70, "category_id": 5, "bbox": [10, 10, 50, 40]}]}"#;
    std::fs::write(&annotations, text).unwrap();
    let detected = run(&format!("detect --model {} --annotations {annotations} --json", model.0.display()));
    assert!(detected.json().as_array().unwrap().iter().all(|one| one["image_id"] == 70));
    std::fs::write(&found, &detected.stdout).unwrap();
    let scores = run(&format!("score --boxes --references {annotations} {found} --json")).json();
    assert!(scores["AP"].as_f64().is_some() && scores["APsmall"] == -1.0, "{scores}");
    let right = r#"[{"image_id": 70, "category_id": 5, "bbox": [10, 10, 50, 40], "score": 0.5}]"#;
    std::fs::write(&found, right).unwrap();
    let table = run(&format!("score --boxes --references {annotations} {found}")).stdout;
    assert!(table.starts_with("AP          1.0000\nAP50        1.0000\n"), "{table}");
}

#[test]
fn what_cannot_be_found_or_scored_is_told_in_a_sentence() {
    let model = Model::new("refused");
    let (folder, picture) = (model.0.display(), picture());
    run(&format!("detect --model {folder} {}", model.file("config.json"))).failed(&["config.json"]);
    run(&format!("detect --model {folder} nothing.png")).failed(&["nothing.png"]);
    run(&format!("detect --model {folder}")).refused(&["PICTURE"]);
    run(&format!("detect --model {folder} {picture} --threshold 2")).refused(&["--threshold", "from 0 to 1"]);
    run(&format!("detect --model {folder} {picture} {picture} --out a.png"))
        .misused(&["--out", "one picture"]);
    run(&format!("detect --model {GOLDEN}/t5/first {picture}")).failed(&["t5", "detr"]);
    run("score --boxes").refused(&["--references"]);
    run("score").refused(&["--reference"]);
    let file = model.file("val.json");
    std::fs::write(&file, "{}").unwrap();
    run(&format!("score --boxes --references {file} {file}")).failed(&["val.json", "images"]);
    std::fs::remove_file(model.0.join("preprocessor_config.json")).unwrap();
    run(&format!("detect --model {folder} {picture}")).failed(&["preprocessor_config.json"]);
}
