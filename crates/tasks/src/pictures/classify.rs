//! Pictures to labels.

use super::PictureEncoder;
use crate::classify::{Classified, ranked, scores};
use crate::error::Error;
use attentive_image::Pixels;
use attentive_model::families::vit::{Relative, Task};
use attentive_tensor::{Backend, Form};
use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

/// Tells the class of a picture.
#[derive(Debug, Clone)]
pub struct PictureClassifier {
    encoder: PictureEncoder,
}

impl PictureClassifier {
    /// Reads the model of a folder.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<PictureClassifier, Error> {
        let task = Task::of(folder)?;
        if task == Task::Hidden {
            let relative = Relative::of(folder)?;
            let class = |task| relative.architecture(task).unwrap_or_default();
            let (needed, found) = (class(Task::Classes), class(task));
            return Err(Error::NoHead { path: folder.to_owned(), task: "classify", needed, found });
        }
        Ok(PictureClassifier { encoder: PictureEncoder::open(backend, folder, task, form)? })
    }

    /// The task of a model that is there already, and that has the head for it.
    pub fn new(encoder: PictureEncoder) -> PictureClassifier {
        PictureClassifier { encoder }
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(PictureEncoder) -> PictureEncoder) -> PictureClassifier {
        PictureClassifier { encoder: change(self.encoder) }
    }

    /// The model, and what it wants of pictures.
    pub fn encoder(&self) -> &PictureEncoder {
        &self.encoder
    }

    /// The classes of pictures that were made ready: all labels with their scores, the best first.
    pub fn classify(&self, pictures: &[Pixels]) -> Result<Vec<Classified>, Error> {
        Ok(self.logits(pictures)?.iter().map(|logits| self.ranked(logits)).collect())
    }

    /// All labels with their scores, the best first, from what the model says of each class.
    pub fn ranked(&self, logits: &[f32]) -> Classified {
        ranked(self.labels(), &scores(self.encoder.model.config().problem(), logits))
    }

    /// The labels, in the order of the model.
    pub fn labels(&self) -> &[String] {
        &self.encoder.model.config().labels
    }

    /// What the model says of each class of each picture, before it becomes a score.
    pub fn logits(&self, pictures: &[impl Borrow<Pixels>]) -> Result<Vec<Vec<f32>>, Error> {
        self.encoder.answer(pictures, |tape, batch, hidden| {
            Ok(self.encoder.rows(&self.encoder.model.logits(tape, hidden, batch)?))
        })
    }
}
