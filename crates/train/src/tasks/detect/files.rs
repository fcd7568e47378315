//! The sources of pictures with boxes: COCO's files, or scenes that are drawn.

use super::picture::Entry;
use crate::Error;
use crate::scenes::{self, Shape};
use attentive_image::boxes::{Bbox, References, folder_of_images};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

/// A file of annotations, or scenes.
enum Source {
    File { path: PathBuf, references: References },
    Scenes,
}

/// Files and scenes to learn from or to validate on.
pub(super) struct Sources {
    all: Vec<Source>,
    /// Bytes of all files.
    pub bytes: u64,
    /// A checksum of the contents of the files.
    pub checksum: u32,
}

impl Sources {
    /// Reads the files. A path that ends with `scenes` and does not exist stands for scenes.
    pub fn open(paths: &[PathBuf]) -> Result<Sources, Error> {
        let mut sources = Sources { all: Vec::new(), bytes: 0, checksum: 0 };
        for path in paths {
            if scenes::are_meant_by(path) {
                sources.all.push(Source::Scenes);
                continue;
            }
            let bytes = std::fs::read(path).map_err(Error::file(path))?;
            sources.bytes += bytes.len() as u64;
            sources.checksum = sources.checksum.rotate_left(1) ^ crc32fast::hash(&bytes);
            let references = References::read(path, &bytes)?;
            sources.all.push(Source::File { path: path.clone(), references });
        }
        Ok(sources)
    }

    /// Whether all sources are scenes, and there is one at least.
    pub fn are_scenes(&self) -> bool {
        !self.all.is_empty() && self.all.iter().all(|source| matches!(source, Source::Scenes))
    }

    /// The names of all classes, source by source, those of a file in the order of their ids.
    pub fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        for source in &self.all {
            for name in source.labels() {
                if labels.iter().all(|label| label != name) {
                    labels.push(name.to_owned());
                }
            }
        }
        labels
    }

    /// The pictures. A class is an index in `labels`; a class whose name is not among them is an error. Scenes are drawn from `seeds`.
    /// Boxes around crowds are left out.
    pub fn entries(&self, labels: &[String], seeds: Range<u64>) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for source in &self.all {
            match source {
                Source::Scenes => entries.extend(scenes(labels, seeds.clone())?),
                Source::File { path, references } => {
                    let missing = |name: &str| {
                        let problem =
                            format!("the category `{name}` is not among those that the model learns");
                        attentive_image::Error::Format { path: path.clone(), problem }
                    };
                    let class = |name: &str| number(labels, name).ok_or_else(|| missing(name));
                    let categories = references.categories.iter();
                    let classes = categories
                        .map(|category| Ok((category.id, class(&category.name)?)))
                        .collect::<Result<HashMap<i64, usize>, Error>>()?;
                    let mut things: HashMap<i64, Vec<(usize, Bbox)>> = HashMap::new();
                    for annotation in references.annotations.iter().filter(|one| one.iscrowd == 0) {
                        let [_, _, width, height] = annotation.bbox;
                        if width > 0.0 && height > 0.0 {
                            let thing = (classes[&annotation.category_id], annotation.bbox);
                            things.entry(annotation.image_id).or_default().push(thing);
                        }
                    }
                    let folder = folder_of_images(path);
                    entries.extend(references.images.iter().map(|image| {
                        let things = things.remove(&image.id).unwrap_or_default();
                        Entry::file(folder.join(&image.file_name), things, image.width.zip(image.height))
                    }));
                }
            }
        }
        Ok(entries)
    }
}

impl Source {
    fn labels(&self) -> Vec<&str> {
        match self {
            Source::Scenes => Shape::ALL.iter().map(|shape| shape.name()).collect(),
            Source::File { references, .. } => {
                let mut categories: Vec<_> = references.categories.iter().collect();
                categories.sort_by_key(|category| category.id);
                categories.into_iter().map(|category| &*category.name).collect()
            }
        }
    }
}

fn number(labels: &[String], name: &str) -> Option<usize> {
    labels.iter().position(|label| label == name)
}

/// The scenes of these seeds. It is an error if `labels` lacks the name of a shape.
pub(super) fn scenes(labels: &[String], seeds: Range<u64>) -> Result<Vec<Entry>, Error> {
    let mut classes = [0; Shape::ALL.len()];
    for (class, shape) in classes.iter_mut().zip(Shape::ALL) {
        *class = number(labels, shape.name()).ok_or_else(|| {
            let problem = format!("scenes have the class `{}`, which the model does not learn", shape.name());
            Error::setting("valid_source", problem)
        })?;
    }
    Ok(seeds.map(|seed| Entry::scene(seed, classes)).collect())
}
