//! `attentive score --boxes`: how good boxes are.

use crate::error::Error;
use crate::output;
use attentive_image::boxes::{References, average_precision, read_detections};
use std::path::Path;

pub(super) fn run(references: &Path, detections: &Path, json: bool) -> Result<(), Error> {
    let references = References::open(references)?;
    let found = read_detections(detections, &references)?;
    let (images, categories) = (references.image_ids(), references.category_ids());
    let scores = average_precision(&images, &categories, &references.annotations, &found);
    if json {
        return output::json(&scores);
    }
    let rows = scores.named().map(|(name, score)| [name.to_owned(), format!("{score:.4}")]);
    output::table(&rows, 1)
}
