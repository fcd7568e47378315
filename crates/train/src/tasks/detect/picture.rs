//! A picture to learn from: where it comes from, and how it becomes the input and the targets of a model.

use crate::Error;
use crate::scenes::{MOST, SIDE, Scene, Shape};
use attentive_image::boxes::Bbox;
use attentive_image::{Picture, Processor};
use attentive_model::families::detr::Targets;
use attentive_tasks::rows;
use std::path::PathBuf;

/// The width and height that are assumed if the annotations do not have them: those of most pictures of COCO.
const USUAL_SIZE: [usize; 2] = [640, 480];
/// How many pixels count as a token in the size of a batch.
const PIXELS_OF_A_TOKEN: usize = 64;

/// A picture and its objects.
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
    /// `classes[n]` is the class of the shape with the number `n`.
    Scene {
        seed: u64,
        classes: [usize; Shape::ALL.len()],
    },
}

impl Entry {
    /// A picture file, its objects, each a class and a box, and its width and height as the annotations have them.
    pub fn file(path: PathBuf, things: Vec<(usize, Bbox)>, size: Option<(usize, usize)>) -> Entry {
        let size = size.map(<[usize; 2]>::from).filter(|size| !size.contains(&0));
        Entry { origin: Origin::File { path, things }, size }
    }

    /// A scene to draw, and the class of each shape by its number.
    pub fn scene(seed: u64, classes: [usize; Shape::ALL.len()]) -> Entry {
        Entry { origin: Origin::Scene { seed, classes }, size: Some([SIDE; 2]) }
    }

    /// How many tokens it counts for in a batch, in the size in which the model reads it.
    pub fn cost(&self, processor: &Processor) -> usize {
        let [width, height] = self.size.unwrap_or(USUAL_SIZE);
        let [width, height] = processor.size_of(width, height);
        (width.saturating_mul(height) / PIXELS_OF_A_TOKEN).max(1)
    }

    /// How many objects it counts for in the divisor of the loss: at least one, also without objects.
    pub fn objects(&self) -> usize {
        match &self.origin {
            Origin::File { things, .. } => things.len().max(1),
            // The objects of a scene are known only when it is drawn. This is about their mean number.
            Origin::Scene { .. } => 4,
        }
    }

    /// The most objects that it can have.
    pub fn most_objects(&self) -> usize {
        match &self.origin {
            Origin::File { things, .. } => things.len(),
            Origin::Scene { .. } => MOST,
        }
    }

    /// Reads or draws the picture, and returns its objects.
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

    /// The name of the picture in error messages.
    fn path(&self) -> PathBuf {
        match &self.origin {
            Origin::File { path, .. } => path.clone(),
            Origin::Scene { seed, .. } => PathBuf::from(format!("scene {seed}")),
        }
    }

    /// Reads the picture, mirrors it if `bits` is odd, and prepares it for a model.
    pub fn prepare(&self, bits: u32, processor: &Processor) -> Result<Prepared, Error> {
        let (picture, mut things) = self.open()?;
        let is_mirrored = bits % 2 == 1;
        let picture = if is_mirrored { picture.mirrored() } else { picture };
        let (whole_width, whole_height) = (picture.width() as f64, picture.height() as f64);
        let mut targets = Targets::default();
        for (class, [left, top, width, height]) in &mut things {
            if is_mirrored {
                *left = whole_width - *left - *width;
            }
            let (x, y) = (*left + *width / 2.0, *top + *height / 2.0);
            targets.classes.push(*class);
            targets.boxes.push([
                x / whole_width,
                y / whole_height,
                *width / whole_width,
                *height / whole_height,
            ]);
        }
        let (read, numbers) = rows(processor, &picture).map_err(|problem| problem.of(&self.path()))?;
        let size = [picture.width(), picture.height()];
        Ok(Prepared { size, things, read, numbers, targets, objects: self.objects() })
    }
}

/// A picture that is ready for a model, and its targets.
pub(super) struct Prepared {
    /// Its width and height.
    pub size: [usize; 2],
    /// The class and the box of each object, in pixels of the picture.
    pub things: Vec<(usize, Bbox)>,
    /// The height and width in which the model reads it.
    pub read: [usize; 2],
    /// Red, green and blue of each of these pixels, normalised.
    pub numbers: Vec<f32>,
    /// The targets of the model, relative to the picture.
    pub targets: Targets,
    /// See [`Entry::objects`].
    pub objects: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_image::{Filter, Size};

    #[test]
    fn a_picture_counts_for_the_tokens_that_the_model_reads() {
        let entry = |size| Entry::file(PathBuf::new(), Vec::new(), size);
        let resize = Some((Size::ShortestWithin(256, 448), Filter::Bilinear));
        let resized = Processor { resize, ..Processor::plain(1, 1) };
        let plain = Processor { resize: None, ..resized.clone() };
        assert_eq!(entry(Some((640, 480))).cost(&plain), 640 * 480 / 64);
        assert_eq!(entry(Some((640, 480))).cost(&resized), 341 * 256 / 64);
        assert_eq!(entry(Some((64, 48))).cost(&resized), 341 * 256 / 64);
        // Files may contain impossible sizes.
        assert_eq!(entry(Some((usize::MAX, usize::MAX))).cost(&plain), usize::MAX / 64);
        assert_eq!(entry(Some((0, 480))).cost(&plain), entry(None).cost(&plain));
        assert_eq!(Entry::scene(1, [0; 6]).cost(&plain), 128 * 128 / 64);
    }

    #[test]
    fn a_mirrored_picture_has_mirrored_boxes_and_the_classes_of_the_labels() {
        let processor = Processor { resize: None, ..Processor::plain(1, 1) };
        let entry = Entry::scene(3, [7, 6, 5, 4, 3, 2]);
        let [plain, mirrored] = [0, 1].map(|bits| entry.prepare(bits, &processor).unwrap());
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
