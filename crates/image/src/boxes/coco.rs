//! COCO's files in JSON: annotations, and detections.

use super::Bbox;
use crate::error::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A picture of a file of annotations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Image {
    /// The number by which annotations refer to it.
    pub id: i64,
    /// Its file, relative to the folder of pictures.
    #[serde(default)]
    pub file_name: String,
    /// Its width in pixels, if the file has it.
    #[serde(default)]
    pub width: Option<usize>,
    /// Its height in pixels, if the file has it.
    #[serde(default)]
    pub height: Option<usize>,
}

/// A class of objects.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Category {
    /// The number by which annotations refer to it.
    pub id: i64,
    /// Its name for people.
    pub name: String,
}

/// An object in a picture: the ground truth.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Annotation {
    /// The picture.
    pub image_id: i64,
    /// The category of the object.
    pub category_id: i64,
    /// The box around it.
    pub bbox: Bbox,
    /// The area of the object in pixels. Without it the area of the box counts.
    pub area: Option<f64>,
    /// Whether the box is around a crowd: many objects that are not annotated one by one. 0 or 1.
    #[serde(default)]
    pub iscrowd: u8,
}

/// An object that a model has detected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// The picture.
    pub image_id: i64,
    /// The category of the object.
    pub category_id: i64,
    /// The box around it.
    pub bbox: Bbox,
    /// The confidence, from 0 to 1.
    pub score: f64,
}

/// A file of annotations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct References {
    /// The pictures.
    pub images: Vec<Image>,
    /// The objects in them.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// The classes of objects.
    pub categories: Vec<Category>,
}

impl References {
    /// Reads a file with images, annotations and categories. Fails if an id occurs twice, if an annotation has an image or a category that
    /// the file does not have, or if a box is invalid.
    pub fn open(path: &Path) -> Result<References, Error> {
        References::read(path, &bytes_of(path)?)
    }

    /// [`References::open`] for the bytes of a file. Errors name `path`.
    pub fn read(path: &Path, bytes: &[u8]) -> Result<References, Error> {
        let references: References = read(path, bytes, "an object with images, annotations and categories")?;
        references.problem().map_or(Ok(references), |problem| Err(format(path, problem)))
    }

    fn problem(&self) -> Option<String> {
        let (mut images, mut categories) = (HashSet::new(), HashSet::new());
        if let Some(twice) = self.images.iter().find(|image| !images.insert(image.id)) {
            return Some(format!("there are two images with the id {}", twice.id));
        }
        if let Some(twice) = self.categories.iter().find(|category| !categories.insert(category.id)) {
            return Some(format!("there are two categories with the id {}", twice.id));
        }
        self.annotations.iter().enumerate().find_map(|(i, annotation)| {
            let &Annotation { image_id, category_id, bbox, .. } = annotation;
            let problem = if !images.contains(&image_id) {
                format!("is of image {image_id}, which is not among the images")
            } else if !categories.contains(&category_id) {
                format!("is of category {category_id}, which is not among the categories")
            } else {
                problem_of_box(bbox)?
            };
            Some(format!("annotation {i}, counted from 0, {problem}"))
        })
    }

    /// The ids of the images, sorted.
    pub fn image_ids(&self) -> Vec<i64> {
        sorted(self.images.iter().map(|image| image.id))
    }

    /// The ids of the categories, sorted.
    pub fn category_ids(&self) -> Vec<i64> {
        sorted(self.categories.iter().map(|category| category.id))
    }
}

fn sorted(ids: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut ids: Vec<i64> = ids.collect();
    ids.sort_unstable();
    ids
}

/// The folder of the pictures of a file: `images` beside the file if that exists, or else the folder of the file.
pub fn folder_of_images(file: &Path) -> PathBuf {
    let beside = file.parent().unwrap_or(Path::new(""));
    let images = beside.join("images");
    if images.is_dir() { images } else { beside.to_owned() }
}

/// Reads a list of detections in the pictures of `references`.
pub fn read_detections(path: &Path, references: &References) -> Result<Vec<Detection>, Error> {
    let detections: Vec<Detection> =
        read(path, &bytes_of(path)?, "a list of objects with image_id, category_id, bbox and score")?;
    let images: HashSet<i64> = references.images.iter().map(|image| image.id).collect();
    let problem = detections.iter().enumerate().find_map(|(i, detection)| {
        let image = detection.image_id;
        let problem = if images.contains(&image) {
            problem_of_box(detection.bbox)?
        } else {
            format!("is of image {image}, which is not among those of the references")
        };
        Some(format!("detection {i}, counted from 0, {problem}"))
    });
    problem.map_or(Ok(detections), |problem| Err(format(path, problem)))
}

/// What is wrong with a box, if anything is.
fn problem_of_box(bbox: Bbox) -> Option<String> {
    let [_, _, width, height] = bbox;
    let wrong = width < 0.0 || height < 0.0;
    wrong.then(|| {
        format!(
            "has the box {bbox:?}, whose width or height is negative: a box is [left, top, width, height]"
        )
    })
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::file(path, source))
}

fn read<T: DeserializeOwned>(path: &Path, bytes: &[u8], expected: &str) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        format(path, format!("not a file of boxes as COCO has them, which is {expected}: {error}"))
    })
}

fn format(path: &Path, problem: String) -> Error {
    Error::Format { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, text: &str) -> String {
        let path = std::env::temp_dir().join(format!("attentive-{}-{name}.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let error = References::open(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        error
    }

    #[test]
    fn what_refers_to_nothing_or_is_no_box_is_refused_in_a_sentence() {
        let file = |annotation: &str| {
            format!(
                r#"{{"images": [{{"id": 1, "file_name": "a.png"}}], "categories": [{{"id": 2, "name": "cat"}}], "annotations": [{annotation}]}}"#
            )
        };
        let annotation = |image: i64, category: i64, width: i64| {
            format!(r#"{{"image_id": {image}, "category_id": {category}, "bbox": [0, 0, {width}, 4]}}"#)
        };
        for (name, annotation, expected) in [
            (
                "image",
                annotation(7, 2, 4),
                "annotation 0, counted from 0, is of image 7, which is not among the images",
            ),
            ("category", annotation(1, 7, 4), "is of category 7, which is not among the categories"),
            ("box", annotation(1, 2, -4), "whose width or height is negative"),
            ("field", r#"{"image_id": 1}"#.to_owned(), "missing field `category_id`"),
        ] {
            let error = refused(name, &file(&annotation));
            assert!(error.contains(expected), "{error}");
        }
        assert!(refused("list", "[]").contains("not a file of boxes as COCO has them"));
        let twice = r#"{"images": [{"id": 1}, {"id": 1}], "categories": []}"#;
        assert!(refused("twice", twice).contains("there are two images with the id 1"));
    }
}
