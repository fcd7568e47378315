//! A picture to learn from: where it comes from, and what a model is shown of it.

use crate::Error;
use crate::scenes::{MOST, SIDE, Scene};
use attentive_image::boxes::{Bbox, References, folder_of_images};
use attentive_image::{Picture, Processor};
use attentive_model::families::detr::Targets;
use attentive_tasks::rows;
use std::collections::HashMap;
use std::path::PathBuf;

/// What stands for a file where scenes are to be drawn.
const SCENES: &str = "scenes";
/// The pixels of a picture whose size no file says.
const USUAL_PIXELS: usize = 256 * 384;
/// The most pixels that a picture counts for, since larger ones are made smaller.
const MOST_PIXELS: usize = 256 * 448;

/// A picture, and what is in it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    origin: Origin,
    /// How many pixels it has, as far as that is known.
    pub pixels: usize,
}

#[derive(Debug, Clone)]
enum Origin {
    File { path: PathBuf, things: Vec<(usize, Bbox)> },
    Scene(u64),
}

impl Entry {
    /// How many answers it asks for.
    pub fn answers(&self) -> usize {
        match &self.origin {
            Origin::File { things, .. } => things.len().max(1),
            // What is in a scene is known when it is drawn. This is what most have, more or less.
            Origin::Scene(_) => 4,
        }
    }

    /// The most things that can be in it.
    pub fn most(&self) -> usize {
        match &self.origin {
            Origin::File { things, .. } => things.len(),
            Origin::Scene(_) => MOST,
        }
    }

    /// The picture and what is in it.
    pub fn open(&self) -> Result<(Picture, Vec<(usize, Bbox)>), Error> {
        match &self.origin {
            Origin::File { path, things } => Ok((Picture::open(path)?, things.clone())),
            Origin::Scene(seed) => {
                let scene = Scene::new(*seed);
                let things = scene.things.iter().map(|thing| (thing.shape.number(), thing.bbox)).collect();
                Ok((scene.picture, things))
            }
        }
    }

    /// What errors call it.
    pub fn path(&self) -> PathBuf {
        match &self.origin {
            Origin::File { path, .. } => path.clone(),
            Origin::Scene(seed) => PathBuf::from(format!("scene {seed}")),
        }
    }
}

/// Whether these files stand for scenes.
pub(super) fn are_scenes(files: &[PathBuf]) -> bool {
    matches!(files, [path] if path.file_name().is_some_and(|name| name == SCENES) && !path.exists())
}

/// So many scenes from this seed on.
pub(super) fn scenes(first: u64, count: usize) -> Vec<Entry> {
    let entry = |i: u64| Entry { origin: Origin::Scene(first + i), pixels: SIDE * SIDE };
    (0..count as u64).map(entry).collect()
}

/// What files of annotations say.
pub(super) struct Files {
    pub entries: Vec<Entry>,
    pub labels: Vec<String>,
    pub bytes: u64,
    pub checksum: u32,
}

/// Reads COCO's files. Their classes are those that are given, which must have all of theirs; without them, those of the files in the
/// order of their ids. Boxes around crowds are not learned.
pub(super) fn read_files(files: &[PathBuf], labels: Option<&[String]>) -> Result<Files, Error> {
    let mut all =
        Files { entries: Vec::new(), labels: labels.unwrap_or_default().to_vec(), bytes: 0, checksum: 0 };
    for file in files {
        let references = References::open(file)?;
        let mut categories: Vec<_> = references.categories.iter().collect();
        categories.sort_by_key(|category| category.id);
        let mut classes = HashMap::new();
        for category in categories {
            let known = all.labels.iter().position(|label| *label == category.name);
            let class = match (known, labels) {
                (Some(class), _) => class,
                (None, None) => {
                    all.labels.push(category.name.clone());
                    all.labels.len() - 1
                }
                (None, Some(_)) => {
                    let name = &category.name;
                    let problem = format!("the category `{name}` is not among those that the model learns");
                    return Err(attentive_image::Error::Format { path: file.clone(), problem }.into());
                }
            };
            classes.insert(category.id, class);
        }
        let mut things: HashMap<i64, Vec<(usize, Bbox)>> = HashMap::new();
        for annotation in references.annotations.iter().filter(|annotation| annotation.iscrowd == 0) {
            let [_, _, width, height] = annotation.bbox;
            if width > 0.0 && height > 0.0 {
                let thing = (classes[&annotation.category_id], annotation.bbox);
                things.entry(annotation.image_id).or_default().push(thing);
            }
        }
        let folder = folder_of_images(file);
        for image in &references.images {
            let pixels = image.width.zip(image.height).map_or(USUAL_PIXELS, |(width, height)| width * height);
            let things = things.remove(&image.id).unwrap_or_default();
            let origin = Origin::File { path: folder.join(&image.file_name), things };
            all.entries.push(Entry { origin, pixels: pixels.min(MOST_PIXELS) });
        }
        let bytes = std::fs::read(file)
            .map_err(|source| attentive_image::Error::File { path: file.clone(), source })?;
        all.bytes += bytes.len() as u64;
        all.checksum = all.checksum.rotate_left(1) ^ crc32fast::hash(&bytes);
    }
    Ok(all)
}

/// What a model is shown.
pub(super) struct Seen {
    pub size: [usize; 2],
    pub numbers: Vec<f32>,
    pub targets: Targets,
}

/// Pictures as a model reads them, each with its chance: an odd one mirrors it. All cores read.
pub(super) fn seen(pictures: &[(&Entry, u32)], processor: &Processor) -> Result<Vec<Seen>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pictures.len()).max(1);
    let share = pictures.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let read = |part: &'_ [(&Entry, u32)]| -> Result<Vec<Seen>, Error> {
            part.iter().map(|&(entry, chance)| one(entry, chance, processor)).collect()
        };
        let parts: Vec<_> = pictures.chunks(share).map(|part| scope.spawn(move || read(part))).collect();
        let mut all = Vec::with_capacity(pictures.len());
        for part in parts {
            all.extend(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

fn one(entry: &Entry, chance: u32, processor: &Processor) -> Result<Seen, Error> {
    let (picture, things) = entry.open()?;
    let is_mirrored = chance % 2 == 1;
    let picture = if is_mirrored { picture.mirrored() } else { picture };
    let (across, down) = (picture.width() as f64, picture.height() as f64);
    let mut targets = Targets::default();
    for (class, [left, top, width, height]) in things {
        let left = if is_mirrored { across - left - width } else { left };
        targets.classes.push(class);
        targets.boxes.push([
            (left + width / 2.0) / across,
            (top + height / 2.0) / down,
            width / across,
            height / down,
        ]);
    }
    let (size, numbers) = rows(processor, &picture).map_err(|problem| problem.of(&entry.path()))?;
    Ok(Seen { size, numbers, targets })
}
