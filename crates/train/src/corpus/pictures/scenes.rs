//! Scenes as labelled pictures: a scene has the label of its largest shape.

use super::{Found, LabelledPicture, Source};
use crate::scenes::{SIDE, Scene, TRAINING, Thing, VALIDATION};

/// The scenes of an epoch of training, or those to validate on. They are painted when they are read.
pub(super) fn find(is_validation: bool) -> Found {
    let seeds = if is_validation { VALIDATION } else { TRAINING };
    let picture = |seed| {
        let area = |thing: &Thing| thing.bbox[2] * thing.bbox[3];
        let largest = Scene::things(seed).max_by(|a, b| area(a).total_cmp(&area(b)));
        let label = largest.expect("a scene has a shape").shape.name().to_owned();
        LabelledPicture { source: Source::Scene(seed), label }
    };
    let pictures: Vec<LabelledPicture> = seeds.map(picture).collect();
    let bytes = (pictures.len() * 3 * SIDE * SIDE) as u64;
    Found { pictures, size: Some([SIDE; 2]), bytes }
}
