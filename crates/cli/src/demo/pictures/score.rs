//! The test: scenes that were never seen, and how good the boxes in them are.

use crate::error::Error;
use attentive_image::boxes::{Annotation, BoxScores, Detection, average_precision};
use attentive_tasks::Detector;
use attentive_train::scenes::{FIRST_UNSEEN, Scene, Shape};
use std::path::Path;

/// How many scenes are looked at.
pub(super) const TESTED: u64 = 200;

/// How good the boxes are that a model finds in unseen scenes.
pub(super) fn of(detector: &Detector) -> Result<BoxScores, Error> {
    let (mut there, mut found) = (Vec::new(), Vec::new());
    for (seed, image_id) in (FIRST_UNSEEN..FIRST_UNSEEN + TESTED).zip(0..) {
        let scene = Scene::new(seed);
        there.extend(scene.things.iter().map(|thing| Annotation {
            image_id,
            category_id: thing.shape.number() as i64,
            bbox: thing.bbox,
            area: None,
            iscrowd: 0,
        }));
        let detected = detector.detect(&scene.picture, 0.0);
        let detected = detected.map_err(|problem| problem.of(Path::new("a scene")))?;
        found.extend(detected.iter().map(|thing| Detection {
            image_id,
            category_id: thing.class as i64,
            bbox: thing.bbox,
            score: thing.score,
        }));
    }
    let images: Vec<i64> = (0..TESTED as i64).collect();
    let categories: Vec<i64> = (0..Shape::ALL.len() as i64).collect();
    Ok(average_precision(&images, &categories, &there, &found))
}

/// What a person reads.
pub(super) fn text(scores: &BoxScores) -> String {
    format!(
        "AP50 of the boxes in {} pictures that training never saw: {:.1} %\n\
         (AP, the mean over stricter overlaps, as COCO has it: {:.1} %).\n",
        TESTED,
        100.0 * scores.ap50,
        100.0 * scores.ap
    )
}
