//! A DETR that learns, and what it is judged by.

use super::picture::{Entry, Seen};
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

/// Pictures to judge by that are in memory together.
const TOGETHER: usize = 64;

/// A model, and its pictures by their numbers.
#[derive(Debug)]
pub(super) struct LearningDetr {
    pub model: Detr,
    pub entries: Arc<Vec<Entry>>,
    pub held: Vec<Entry>,
    pub processor: Processor,
    pub threads: Threads,
    /// Whether the model is new and learns with a guide.
    pub is_guided: bool,
}

impl LearningDetr {
    /// Reads pictures on all threads, each with its chance.
    fn see(&self, pictures: &[(&Entry, u32)]) -> Result<Vec<Seen>, Error> {
        let seen = self.threads.map(pictures, |(entry, chance)| entry.see(*chance, &self.processor));
        seen.into_iter().collect()
    }

    /// A batch of pictures, what is to be found in them, and how many answers these are.
    fn batch(&self, backend: &dyn Backend, seen: &[Seen]) -> (Batch, Vec<Targets>, f32) {
        let parts: Vec<_> = seen.iter().map(|seen| (seen.read, &seen.numbers[..])).collect();
        let targets = seen.iter().map(|seen| seen.targets.clone()).collect();
        let answers: usize = seen.iter().map(|seen| seen.answers).sum();
        (Batch::new(backend, &parts), targets, answers as f32)
    }

    /// What is found in a picture, and its loss as it adds to the mean over `of` answers.
    fn found_and_loss(&self, backend: &Arc<dyn Backend>, seen: &Seen, of: usize) -> (Found, f32) {
        let tape = Tape::inference(backend);
        let (batch, targets, answers) = self.batch(&**backend, std::slice::from_ref(seen));
        let (found, loss, _) = self.model.found_and_loss(&tape, &batch, &targets, answers);
        (found, backend.download_f32(loss.value())[0] * (answers / of as f32))
    }
}

/// The class of each thing, and the bits of its score and of its box.
fn bits_of(found: &[Detected]) -> Vec<(usize, u64, [u64; 4])> {
    found.iter().map(|thing| (thing.class, thing.score.to_bits(), thing.bbox.map(f64::to_bits))).collect()
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
        let (batch, targets, answers) = self.batch(&**tape.backend(), &self.see(&pictures)?);
        let loss = match self.is_guided {
            true => self.model.guided_loss(tape, &batch, &targets, answers),
            false => self.model.loss(tape, &batch, &targets, answers).0,
        };
        Ok(tape.scale(&loss, answers / of as f32))
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        if self.held.is_empty() {
            return Ok(None);
        }
        let answers: usize = self.held.iter().map(Entry::answers).sum();
        let held: Vec<(&Entry, u32)> = self.held.iter().map(|entry| (entry, 0)).collect();
        let judged = ranks.share(&held, |mine| {
            let mut judgements = Vec::with_capacity(mine.len());
            for pictures in mine.chunks(TOGETHER) {
                judgements.extend(self.see(pictures)?.into_iter().map(|seen| {
                    let (of_queries, part) = self.found_and_loss(backend, &seen, answers);
                    let found = things(&**backend, &of_queries, seen.size);
                    (part.to_bits(), seen.things, bits_of(&found))
                }));
            }
            Ok(judgements)
        })?;
        let (mut loss, mut there, mut found) = (0.0, Vec::new(), Vec::new());
        for ((part, things, detected), image_id) in judged.into_iter().zip(0..) {
            loss += f64::from(f32::from_bits(part));
            there.extend(things.into_iter().map(|(class, bbox)| Annotation {
                image_id,
                category_id: class as i64,
                bbox,
                area: None,
                iscrowd: 0,
            }));
            found.extend(detected.into_iter().map(|(class, score, bbox)| Detection {
                image_id,
                category_id: class as i64,
                bbox: bbox.map(f64::from_bits),
                score: f64::from_bits(score),
            }));
        }
        let (images, categories): (Vec<i64>, Vec<i64>) =
            ((0..self.held.len() as i64).collect(), (0..self.model.config().labels.len() as i64).collect());
        let scores = average_precision(&images, &categories, &there, &found);
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
