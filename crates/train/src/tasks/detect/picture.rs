//! A picture to learn from: where it comes from, and what a model is shown of it.

use crate::Error;
use crate::scenes::{MOST, SIDE, Scene, Shape};
use attentive_image::boxes::Bbox;
use attentive_image::{Picture, Processor};
use attentive_model::families::detr::Targets;
use attentive_tasks::rows;
use std::path::PathBuf;

/// The width and height of a picture of which no file says them: those of most pictures of COCO.
const USUAL_SIZE: [usize; 2] = [640, 480];
/// Pixels that cost as much as a token.
const PIXELS_OF_A_TOKEN: usize = 64;

/// A picture, and what is in it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    origin: Origin,
    /// Width and height, as far as they are known.
    size: Option<[usize; 2]>,
}

#[derive(Debug, Clone)]
enum Origin {
    File {
        path: PathBuf,
        things: Vec<(usize, Bbox)>,
    },
    /// The class of each shape stands at its number.
    Scene {
        seed: u64,
        classes: [usize; Shape::ALL.len()],
    },
}

impl Entry {
    /// A picture file, its things, each with its class, and its width and height as a file says them.
    pub fn file(path: PathBuf, things: Vec<(usize, Bbox)>, size: Option<(usize, usize)>) -> Entry {
        let size = size.map(<[usize; 2]>::from).filter(|size| !size.contains(&0));
        Entry { origin: Origin::File { path, things }, size }
    }

    /// A scene to draw, and the class of each shape.
    pub fn scene(seed: u64, classes: [usize; Shape::ALL.len()]) -> Entry {
        Entry { origin: Origin::Scene { seed, classes }, size: Some([SIDE; 2]) }
    }

    /// What it costs to learn from it, in tokens, in the size in which a model reads it.
    pub fn cost(&self, processor: &Processor) -> usize {
        let [width, height] = self.size.unwrap_or(USUAL_SIZE);
        let [width, height] = processor.size_of(width, height);
        (width.saturating_mul(height) / PIXELS_OF_A_TOKEN).max(1)
    }

    /// How many answers it asks for. A picture without things says that there is nothing, which is an answer, too.
    pub fn answers(&self) -> usize {
        match &self.origin {
            Origin::File { things, .. } => things.len().max(1),
            // What is in a scene is known when it is drawn. This is what most have, more or less.
            Origin::Scene { .. } => 4,
        }
    }

    /// The most things that can be in it.
    pub fn most(&self) -> usize {
        match &self.origin {
            Origin::File { things, .. } => things.len(),
            Origin::Scene { .. } => MOST,
        }
    }

    /// The picture and what is in it.
    fn open(&self) -> Result<(Picture, Vec<(usize, Bbox)>), Error> {
        match &self.origin {
            Origin::File { path, things } => Ok((Picture::open(path)?, things.clone())),
            Origin::Scene { seed, classes } => {
                let scene = Scene::new(*seed);
                let things = scene.things.iter().map(|thing| (classes[thing.shape.number()], thing.bbox));
                Ok((scene.picture, things.collect()))
            }
        }
    }

    /// What errors call it.
    fn path(&self) -> PathBuf {
        match &self.origin {
            Origin::File { path, .. } => path.clone(),
            Origin::Scene { seed, .. } => PathBuf::from(format!("scene {seed}")),
        }
    }

    /// The picture as a model reads it, with its chance: an odd one mirrors it.
    pub fn see(&self, chance: u32, processor: &Processor) -> Result<Seen, Error> {
        let (picture, mut things) = self.open()?;
        let is_mirrored = chance % 2 == 1;
        let picture = if is_mirrored { picture.mirrored() } else { picture };
        let (across, down) = (picture.width() as f64, picture.height() as f64);
        let mut targets = Targets::default();
        for (class, [left, top, width, height]) in &mut things {
            if is_mirrored {
                *left = across - *left - *width;
            }
            let centre = [*left + *width / 2.0, *top + *height / 2.0];
            targets.classes.push(*class);
            targets.boxes.push([centre[0] / across, centre[1] / down, *width / across, *height / down]);
        }
        let (read, numbers) = rows(processor, &picture).map_err(|problem| problem.of(&self.path()))?;
        let size = [picture.width(), picture.height()];
        Ok(Seen { size, things, read, numbers, targets, answers: self.answers() })
    }
}

/// A picture, and what a model is shown of it.
pub(super) struct Seen {
    /// Its width and height.
    pub size: [usize; 2],
    /// What is in it: classes and boxes.
    pub things: Vec<(usize, Bbox)>,
    /// The height and width that the model reads.
    pub read: [usize; 2],
    /// Red, green and blue of each of these pixels.
    pub numbers: Vec<f32>,
    /// What the model is to say.
    pub targets: Targets,
    /// How many answers these count for.
    pub answers: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_image::{Filter, Size};

    #[test]
    fn a_picture_costs_what_the_model_reads_of_it() {
        let entry = |size| Entry::file(PathBuf::new(), Vec::new(), size);
        let resize = Some((Size::ShortestWithin(256, 448), Filter::Bilinear));
        let resized = Processor { resize, ..Processor::plain(1, 1) };
        let plain = Processor { resize: None, ..resized.clone() };
        assert_eq!(entry(Some((640, 480))).cost(&plain), 640 * 480 / 64);
        assert_eq!(entry(Some((640, 480))).cost(&resized), 341 * 256 / 64);
        assert_eq!(entry(Some((64, 48))).cost(&resized), 341 * 256 / 64);
        // No file need be true.
        assert_eq!(entry(Some((usize::MAX, usize::MAX))).cost(&plain), usize::MAX / 64);
        assert_eq!(entry(Some((0, 480))).cost(&plain), entry(None).cost(&plain));
        assert_eq!(Entry::scene(1, [0; 6]).cost(&plain), 128 * 128 / 64);
    }

    #[test]
    fn a_mirrored_picture_has_mirrored_boxes_and_classes_are_those_that_labels_have() {
        let processor = Processor { resize: None, ..Processor::plain(1, 1) };
        let entry = Entry::scene(3, [7, 6, 5, 4, 3, 2]);
        let [plain, mirrored] = [0, 1].map(|chance| entry.see(chance, &processor).unwrap());
        let things = Scene::new(3).things;
        assert_eq!(plain.things.len(), things.len());
        for (i, thing) in things.iter().enumerate() {
            assert_eq!(plain.things[i], (7 - thing.shape.number(), thing.bbox));
            let (class, [left, top, width, height]) = mirrored.things[i];
            assert_eq!((class, [128.0 - left - width, top, width, height]), plain.things[i]);
        }
        assert_ne!(plain.numbers, mirrored.numbers);
    }
}
