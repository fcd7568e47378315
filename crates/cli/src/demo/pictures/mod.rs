//! `attentive demo --pictures`: a DETR learns to find shapes in pictures, from nothing, while one watches.

mod findings;
mod score;

use super::lesson::{Lesson, Subject};
use super::{Demo, Folder};
use crate::error::Error;
use crate::words::thousands;
use crate::{output, terminal};
use attentive_image::boxes::BoxScores;
use attentive_tasks::Detector;
use attentive_tensor::Form;
use attentive_train::metrics::ValidationMetric;
use attentive_train::scenes::{self, FIRST_UNSEEN, Scene};
use attentive_train::{Begin, Outcome, Run, Sample, Settings};
use findings::{Findings, Found};
use serde::Serialize;
use std::io::stderr;
use std::path::{Path, PathBuf};

/// The scene that is shown.
const SHOWN: u64 = FIRST_UNSEEN + 4;
/// Pictures that are shown while a model learns, at most.
const LOOKS: u64 = 3;

pub(super) fn run(demo: &Demo) -> Result<(), Error> {
    let folder = Folder::new(demo.out.as_deref());
    let settings = scenes::settings(&folder.path, demo.seed);
    let settings = Settings {
        steps: demo.steps.map_or(settings.steps, |steps| Some(steps as u64)),
        threads: demo.threads,
        ..settings
    };
    // Another run or model in the folder must not be touched.
    Run::refuse_folder(&folder.path, &settings)?;
    let quiet = demo.quiet || demo.json;
    let pupil = Shapes {
        folder: folder.path.clone(),
        kept: demo.out.clone(),
        settings: settings.clone(),
        validations: 0,
    };
    let outcome = Lesson::new(pupil, quiet).learn(&folder.path, &settings)?;
    let detector = Detector::open(
        &settings.backend().map_err(attentive_train::Error::from)?,
        &folder.path,
        Form::Precise,
    )?;
    // The model is in memory.
    drop(folder);

    let scores = score::of(&detector)?;
    let findings = Findings::new(&detector, Scene::new(SHOWN))?;
    if let Some(out) = &demo.out {
        findings.save(out)?;
    }
    if demo.json {
        return output::json(&Report::new(demo, &outcome, &scores, findings.found()));
    }
    output::write(&score::text(&scores))?;
    let shown = findings.text(terminal::width(), terminal::colours())?;
    output::write(&format!("\nOne of these pictures, with what the model finds in it:\n\n{shown}"))?;
    if let Some(out) = &demo.out {
        let out = out.display();
        output::write(&format!(
            "\nThe picture is in {out}/{}, the model in {out}, and its training report in {out}/report.html.\n\
             To find shapes in another picture: attentive detect --model {out} PICTURE\n",
            findings::FILE
        ))?;
    }
    Ok(())
}

/// Finding shapes, as a person watches it.
struct Shapes {
    folder: PathBuf,
    /// Where a person wants to have the picture.
    kept: Option<PathBuf>,
    settings: Settings,
    /// Validations so far.
    validations: u64,
}

impl Shapes {
    /// What the best model so far finds in the picture that is shown.
    fn draw(&self) -> Result<String, Error> {
        let detector = Detector::open(
            &self.settings.backend().map_err(attentive_train::Error::from)?,
            &self.folder,
            Form::Precise,
        )?;
        let findings = Findings::new(&detector, Scene::new(SHOWN))?;
        if let Some(out) = &self.kept {
            findings.save(out)?;
        }
        Ok(format!("\n{}", findings.text(terminal::width(), terminal::colours_on(&stderr()))?))
    }
}

impl Subject for Shapes {
    fn begin(&self, begin: &Begin) -> String {
        let Begin { parameters, device, .. } = begin;
        format!(
            "A DETR (a convolutional network and a Transformer) with {} parameters learns to\n\
             find shapes in pictures, with a box around each. It starts from random weights\n\
             and never sees a picture often: the program draws them. This takes a quarter of\n\
             an hour on two cores (here: {device}).\n\n\
             AP50 is the average precision of the boxes in unseen pictures, in %. A box is\n\
             right if it has the right name and overlaps the shape by half or more.\n",
            thousands(*parameters)
        )
    }

    fn heading(&self, _: &[Sample]) -> Option<String> {
        Some("AP50".to_owned())
    }

    fn result(&self, metric: &ValidationMetric, _: &[Sample]) -> String {
        format!("{:4.1}", metric.ap50.unwrap_or_default())
    }

    fn look(&mut self) -> Option<String> {
        self.validations += 1;
        let all = self.settings.steps.unwrap_or_default() / self.settings.validate_every;
        // An error of drawing is reported at the end.
        let is_due = self.validations.is_multiple_of(all.div_ceil(LOOKS + 1).max(1));
        is_due.then(|| self.draw().ok()).flatten()
    }
}

/// What the command says with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    seed: u64,
    steps: u64,
    seconds: f64,
    loss: Option<f64>,
    tested: u64,
    ap: f64,
    ap50: f64,
    found: Vec<Found<'a>>,
    out: Option<&'a Path>,
}

impl<'a> Report<'a> {
    fn new(demo: &'a Demo, outcome: &Outcome, scores: &BoxScores, found: Vec<Found<'a>>) -> Report<'a> {
        Report {
            seed: demo.seed,
            steps: outcome.step,
            seconds: outcome.seconds,
            loss: outcome.best.as_ref().map(|best| best.loss),
            tested: score::TESTED,
            ap: scores.ap,
            ap50: scores.ap50,
            found,
            out: demo.out.as_deref(),
        }
    }
}
