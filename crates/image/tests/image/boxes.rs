//! COCO's twelve numbers are those of pycocotools.

use attentive_image::boxes::{Detection, References, average_precision};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    references: References,
    detections: Vec<Detection>,
    scores: serde_json::Map<String, Value>,
}

/// `ATTENTIVE_BOXES` names another file of the same form, such as one with more cases than can be kept.
#[test]
fn the_twelve_numbers_are_those_of_pycocotools() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/boxes.json");
    let file = std::env::var("ATTENTIVE_BOXES").unwrap_or_else(|_| kept.to_owned());
    let cases: Vec<Case> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(!cases.is_empty());
    for (i, Case { references, detections, scores }) in cases.iter().enumerate() {
        let (images, categories) = (references.image_ids(), references.category_ids());
        let found = average_precision(&images, &categories, &references.annotations, detections);
        let Value::Object(found) = serde_json::to_value(found).unwrap() else { panic!("twelve numbers") };
        assert_eq!(found.len(), 12);
        for (name, found) in &found {
            let (found, expected) = (found.as_f64().unwrap(), scores[name].as_f64().unwrap());
            assert!((found - expected).abs() < 1e-9, "case {i}, {name}: {found}, not {expected}");
        }
    }
}
