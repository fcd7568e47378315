//! `attentive detect`: objects in pictures, and their boxes.

use crate::error::Error;
use crate::model::Model;
use crate::options::Compute;
use crate::output;
use crate::precision::DecodingPrecision;
use attentive_image::boxes::{Category, Detection, References};
use attentive_image::{Picture, colour_of};
use attentive_tasks::{Detected, Detector};
use clap::Args;
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

/// The options of `attentive detect`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Detect {
    /// Model folder of a DETR, or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    /// Pictures: PNG, JPEG or WebP
    #[arg(value_name = "PICTURE", required_unless_present = "annotations")]
    pictures: Vec<PathBuf>,
    /// Leave out objects with a lower confidence, from 0 to 1 [default: 0.5; 0 with --annotations]
    #[arg(long, value_name = "P", value_parser = probability)]
    threshold: Option<f64>,
    /// Print a list of JSON in COCO's form: image_id, category_id, bbox, score
    #[arg(long)]
    json: bool,
    /// Draw the boxes on the picture and write it to FILE as PNG
    #[arg(long, value_name = "FILE", conflicts_with = "annotations")]
    out: Option<PathBuf>,
    /// Read the pictures of a file of COCO's annotations, and print their ids with --json, for `attentive score --boxes`
    #[arg(long, value_name = "FILE", conflicts_with = "pictures", requires = "json")]
    annotations: Option<PathBuf>,
    /// The folder of these pictures [default: `images` beside the file, or the folder of the file]
    #[arg(long, value_name = "DIR", requires = "annotations")]
    images: Option<PathBuf>,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: DecodingPrecision,
}

const EXAMPLES: &str = "\
Examples:
  attentive detect --model facebook/detr-resnet-50 photo.jpg
  attentive detect --model cells photo.jpg --out boxes.png
  attentive detect --model cells --annotations val.json --json > found.json
  attentive score --boxes --references val.json found.json

A line is an object: its label, its confidence, and its box: left, top, width and height in pixels. Without --annotations, the \
image_id of --json is the number of the picture, counted from 1, and the category_id is the number of the class in config.json.";

fn probability(text: &str) -> Result<f64, String> {
    let p = text.parse().ok().filter(|p| (0.0..=1.0).contains(p));
    p.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    detection: Detection,
    label: &'a str,
    file_name: &'a str,
}

/// A picture to read.
struct Given {
    image_id: i64,
    name: String,
    path: PathBuf,
}

pub(crate) fn run(detect: &Detect) -> Result<(), Error> {
    if let (Some(_), [_, _, ..]) = (&detect.out, &detect.pictures[..]) {
        let problem = "is for one picture: give one picture at a time".to_owned();
        return Err(Error::Flag { option: "out", problem });
    }
    let first = detect.pictures.first().map(PathBuf::as_path);
    output::must_differ(["the picture", "--out"], [first, detect.out.as_deref()])?;
    let references = detect.annotations.as_deref().map(References::open).transpose()?;
    let (backend, form) = detect.compute.encoder(detect.precision)?;
    let detector = Detector::open(&backend, &detect.model.folder()?, form)?;
    let categories = match &references {
        Some(references) => ids(detector.labels(), &references.categories)?,
        None => (0..detector.labels().len() as i64).map(Some).collect(),
    };
    let threshold = detect.threshold.unwrap_or(if references.is_some() { 0.0 } else { 0.5 });
    let mut lines = Vec::new();
    let pictures = detect.given(references.as_ref());
    for Given { image_id, name, path } in &pictures {
        let mut picture = Picture::open(path)?;
        let found = detector.detect(&picture, threshold).map_err(|problem| problem.of(path))?;
        if let Some(out) = &detect.out {
            draw(&mut picture, &found, detector.labels(), 1.0);
            output::to_file(out, |file| Ok(file.write_all(&picture.to_png())?))?;
        }
        for Detected { class, score, bbox } in found {
            let label = &detector.labels()[class];
            if !detect.json {
                let name = if pictures.len() > 1 { format!("{name}\t") } else { String::new() };
                let bbox = bbox.map(|x| format!("{x:.1}")).join(" ");
                output::write(&format!("{name}{label}\t{score:.4}\t{bbox}\n"))?;
            } else if let Some(category_id) = categories[class] {
                let detection = Detection { image_id: *image_id, category_id, bbox, score };
                lines.push(Line { detection, label, file_name: name });
            }
        }
    }
    if detect.json { output::json(&lines) } else { Ok(()) }
}

impl Detect {
    fn given(&self, references: Option<&References>) -> Vec<Given> {
        let (Some(references), Some(file)) = (references, &self.annotations) else {
            let given = |(path, image_id): (&PathBuf, i64)| Given {
                image_id,
                name: path.display().to_string(),
                path: path.clone(),
            };
            return self.pictures.iter().zip(1..).map(given).collect();
        };
        let folder = self.images.clone().unwrap_or_else(|| attentive_image::boxes::folder_of_images(file));
        let given = |image: &attentive_image::boxes::Image| Given {
            image_id: image.id,
            name: image.file_name.clone(),
            path: folder.join(&image.file_name),
        };
        references.images.iter().map(given).collect()
    }
}

/// The category of each class, by its name; classes that no category is called after are left out.
fn ids(labels: &[String], categories: &[Category]) -> Result<Vec<Option<i64>>, Error> {
    let known: HashMap<&str, i64> =
        categories.iter().map(|category| (&*category.name, category.id)).collect();
    let ids: Vec<Option<i64>> = labels.iter().map(|label| known.get(&**label).copied()).collect();
    if ids.iter().all(Option::is_none) {
        let names = labels.iter().take(5).map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let problem = format!("no category of the file is called like a class of the model, such as {names}");
        return Err(Error::Flag { option: "annotations", problem });
    }
    Ok(ids)
}

/// Draws what was found, the most certain last, so that it is on top. The picture is `enlarged` times as large as the one that was looked
/// into.
pub(crate) fn draw(picture: &mut Picture, found: &[Detected], labels: &[String], enlarged: f64) {
    for &Detected { class, score, bbox } in found.iter().rev() {
        let word = format!("{} {:.0}%", labels[class], 100.0 * score);
        picture.frame(bbox.map(|side| enlarged * side), colour_of(class), &word);
    }
}
