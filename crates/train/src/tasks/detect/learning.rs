//! Training and validation of a DETR.

use super::picture::{Entry, Prepared};
use crate::Error;
use crate::corpus::{Example, ExampleBatch};
use crate::tasks::{Judgement, Ranks, Task};
use attentive_image::Processor;
use attentive_image::boxes::{Annotation, Detection, average_precision};
use attentive_model::checkpoint::Staged;
use attentive_model::families::detr::{Batch, Detr, Found, Targets};
use attentive_tasks::{Detected, things};
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Threads, Var};
use std::path::Path;
use std::sync::Arc;

/// How many validation pictures are in memory at once.
const VALIDATION_CHUNK: usize = 64;

/// A model, and its pictures by number.
#[derive(Debug)]
pub(super) struct LearningDetr {
    pub model: Detr,
    pub entries: Arc<Vec<Entry>>,
    pub held: Vec<Entry>,
    pub processor: Processor,
    pub threads: Threads,
    /// Whether the model began with random weights, so that its loss includes the guide.
    pub is_guided: bool,
}

impl LearningDetr {
    /// Reads and prepares pictures on all threads, each with the random bits of its augmentation.
    fn prepare(&self, pictures: &[(&Entry, u32)]) -> Result<Vec<Prepared>, Error> {
        let prepared = self.threads.map(pictures, |(entry, bits)| entry.prepare(*bits, &self.processor));
        prepared.into_iter().collect()
    }

    /// A batch of pictures, their targets, and the number of objects that the loss is divided by.
    fn batch(&self, backend: &dyn Backend, pictures: &[Prepared]) -> (Batch, Vec<Targets>, f32) {
        let inputs: Vec<_> = pictures.iter().map(|picture| (picture.read, &picture.numbers[..])).collect();
        let targets = pictures.iter().map(|picture| picture.targets.clone()).collect();
        let objects: usize = pictures.iter().map(|picture| picture.objects).sum();
        (Batch::new(backend, &inputs), targets, objects as f32)
    }

    /// The predictions for a picture, and its contribution to the mean loss over `of` objects.
    fn found_and_loss(&self, backend: &Arc<dyn Backend>, picture: &Prepared, of: usize) -> (Found, f32) {
        let tape = Tape::inference(backend);
        let (batch, targets, objects) = self.batch(&**backend, std::slice::from_ref(picture));
        let (found, loss, _) = self.model.found_and_loss(&tape, &batch, &targets, objects);
        (found, backend.download_f32(loss.value())[0] * (objects / of as f32))
    }
}

/// The class of each detection, and the bits of its score and of its box.
fn bits_of(found: &[Detected]) -> Vec<(usize, u64, [u64; 4])> {
    found.iter().map(|one| (one.class, one.score.to_bits(), one.bbox.map(f64::to_bits))).collect()
}

impl Task for LearningDetr {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn d_model(&self) -> usize {
        self.model.config().d_model
    }

    fn partial_loss(&self, tape: &Tape, batch: &ExampleBatch, _: f32, of: usize) -> Result<Var, Error> {
        let numbered =
            |example: &Example| (&self.entries[example.source[0] as usize], example.source[1] as u32);
        let pictures: Vec<(&Entry, u32)> = batch.examples.iter().map(numbered).collect();
        let (batch, targets, objects) = self.batch(&**tape.backend(), &self.prepare(&pictures)?);
        let loss = match self.is_guided {
            true => self.model.guided_loss(tape, &batch, &targets, objects),
            false => self.model.loss(tape, &batch, &targets, objects).0,
        };
        Ok(tape.scale(&loss, objects / of as f32))
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        if self.held.is_empty() {
            return Ok(None);
        }
        let objects: usize = self.held.iter().map(Entry::objects).sum();
        let held: Vec<(&Entry, u32)> = self.held.iter().map(|entry| (entry, 0)).collect();
        let judged = ranks.share(&held, |mine| {
            let mut judgements = Vec::with_capacity(mine.len());
            for pictures in mine.chunks(VALIDATION_CHUNK) {
                judgements.extend(self.prepare(pictures)?.into_iter().map(|picture| {
                    let (predictions, part) = self.found_and_loss(backend, &picture, objects);
                    let detected = things(&**backend, &predictions, picture.size);
                    (part.to_bits(), picture.things, bits_of(&detected))
                }));
            }
            Ok(judgements)
        })?;
        let (mut loss, mut annotations, mut detections) = (0.0, Vec::new(), Vec::new());
        for ((part, things, detected), image_id) in judged.into_iter().zip(0..) {
            loss += f64::from(f32::from_bits(part));
            annotations.extend(things.into_iter().map(|(class, bbox)| Annotation {
                image_id,
                category_id: class as i64,
                bbox,
                area: None,
                iscrowd: 0,
            }));
            detections.extend(detected.into_iter().map(|(class, score, bbox)| Detection {
                image_id,
                category_id: class as i64,
                bbox: bbox.map(f64::from_bits),
                score: f64::from_bits(score),
            }));
        }
        let (images, categories): (Vec<i64>, Vec<i64>) =
            ((0..self.held.len() as i64).collect(), (0..self.model.config().labels.len() as i64).collect());
        let scores = average_precision(&images, &categories, &annotations, &detections);
        let share = |score: f64| Some(100.0 * score.max(0.0));
        Ok(Some(Judgement { loss, ap: share(scores.ap), ap50: share(scores.ap50), ..Judgement::default() }))
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.model.read_weights(backend, path)?)
    }
}
