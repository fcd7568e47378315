//! A picture with what a model finds in it.

use crate::blocks;
use crate::detect::draw;
use crate::error::Error;
use crate::output;
use attentive_image::{Filter, Picture, colour_of};
use attentive_tasks::{Detected, Detector};
use attentive_train::scenes::Scene;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// The file of the picture.
pub(super) const FILE: &str = "found.png";
/// How certain a thing must be to be shown.
const CERTAIN: f64 = 0.5;
/// How much larger the picture is in its file, so that there is room for words.
const ENLARGED: usize = 4;

/// A scene, and what was found in it.
pub(super) struct Findings<'a> {
    scene: Scene,
    detected: Vec<Detected>,
    labels: &'a [String],
}

/// A thing that was found.
#[derive(Serialize)]
pub(super) struct Found<'a> {
    label: &'a str,
    score: f64,
    bbox: [f64; 4],
}

impl<'a> Findings<'a> {
    /// Looks for things in a scene.
    pub(super) fn new(detector: &'a Detector, scene: Scene) -> Result<Findings<'a>, Error> {
        let detected = detector.detect(&scene.picture, CERTAIN);
        let detected = detected.map_err(|problem| problem.of(Path::new("a scene")))?;
        Ok(Findings { scene, detected, labels: detector.labels() })
    }

    /// What was found, the most certain first.
    pub(super) fn found(&self) -> Vec<Found<'a>> {
        let found = |thing: &Detected| Found {
            label: &self.labels[thing.class],
            score: thing.score,
            bbox: thing.bbox,
        };
        self.detected.iter().map(found).collect()
    }

    /// The picture in lines of at most `width` characters, and a line for each thing.
    pub(super) fn text(&self, width: usize, colours: bool) -> Result<String, Error> {
        let frames: Vec<blocks::Frame> =
            self.detected.iter().rev().map(|thing| (thing.bbox, colour_of(thing.class))).collect();
        let drawn = blocks::draw(&self.scene.picture, &frames, width, colours);
        let mut text = drawn.map_err(|problem| problem.of(Path::new("a scene")))?;
        text.push('\n');
        for (thing, Found { label, score, bbox }) in self.detected.iter().zip(self.found()) {
            let mark = match (colours, colour_of(thing.class)) {
                (true, [red, green, blue]) => format!("\x1b[38;2;{red};{green};{blue}m■\x1b[0m "),
                (false, _) => String::new(),
            };
            let [left, top, width, height] = bbox.map(|side| format!("{side:.0}"));
            text.push_str(&format!(
                "  {mark}{label:<8} {:3.0} %  {width} × {height} at {left}, {top}\n",
                100.0 * score
            ));
        }
        if self.detected.is_empty() {
            text.push_str("  nothing that is certain yet\n");
        }
        let there: Vec<String> = self.scene.things.iter().map(|thing| thing.name()).collect();
        text.push_str(&format!("  in the picture: {}\n", there.join(", ")));
        Ok(text)
    }

    /// Writes the picture into a folder.
    pub(super) fn save(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILE);
        let picture = self.enlarged().map_err(|problem| problem.of(&path))?;
        output::to_file(&path, |file| Ok(file.write_all(&picture.to_png())?))
    }

    fn enlarged(&self) -> Result<Picture, attentive_image::Problem> {
        let [width, height] = [self.scene.picture.width(), self.scene.picture.height()];
        let mut picture = self.scene.picture.resized(ENLARGED * width, ENLARGED * height, Filter::Nearest)?;
        draw(&mut picture, &self.detected, self.labels, ENLARGED as f64);
        Ok(picture)
    }
}
