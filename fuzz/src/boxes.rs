//! Boxes in pictures, in COCO's files.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_image::boxes::{Detection, References, average_precision, read_detections};
use std::path::Path;

/// What detections are of.
const REFERENCES: &str = r#"{"images": [{"id": 1}, {"id": 2}], "categories": [{"id": 3, "name": "cell"}, {"id": 4, "name": "wall"}],
    "annotations": [{"image_id": 1, "category_id": 3, "bbox": [1.5, 2, 30, 40], "area": 900.5, "iscrowd": 0},
                    {"image_id": 2, "category_id": 4, "bbox": [0, 0, 0, 5], "iscrowd": 1}]}"#;

/// Input that begins with `[` is a list of what was found. Other input is what is in pictures, and is then found as it is.
pub(crate) fn boxes() -> Reader {
    let scratch = Scratch::new("boxes");
    let fixed =
        References::read(Path::new("references"), REFERENCES.as_bytes()).expect("a file as it should be");
    Box::new(move |input| {
        let path = scratch.write("boxes.json", input);
        let (references, detections) = if input.first() == Some(&b'[') {
            let Ok(detections) = read_detections(&path, &fixed) else { return false };
            (fixed.clone(), detections)
        } else {
            let Ok(references) = References::open(&path) else { return false };
            let found = references.annotations.iter().zip(1..).map(|(thing, number)| Detection {
                image_id: thing.image_id,
                category_id: thing.category_id,
                bbox: thing.bbox,
                score: 1.0 / f64::from(number),
            });
            let found = found.collect();
            (references, found)
        };
        let (images, categories) = (references.image_ids(), references.category_ids());
        let scores = average_precision(&images, &categories, &references.annotations, &detections);
        // A score is a share, or -1 where there is nothing to find.
        assert!(scores.named().iter().all(|(_, score)| *score == -1.0 || (0.0..=1.0).contains(score)));
        true
    })
}
