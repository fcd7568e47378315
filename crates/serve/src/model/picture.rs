//! A model that reads pictures and makes numbers of them: vectors, scores of classes, or boxes.

use crate::engine::Engine;
use crate::error::Error;
use attentive_generate::Sizes;
use attentive_image::{Picture, Pixels, Problem};
use attentive_tasks::{
    Classified, Detected, Detector, PictureClassifier, PictureEmbedder, PictureEncoder, PictureKind, Vectors,
};
use attentive_tensor::Form;
use std::path::Path;

/// A model of pictures. Threads beside those that answer connections make pictures ready for it; only the thread that computes calls
/// [`PictureModel::compute`].
pub(crate) struct PictureModel {
    pub name: String,
    /// Whether its weights are in int8.
    pub int8: bool,
    /// What it is computed in, in the words of PyTorch.
    pub dtype: &'static str,
    task: PictureTask,
}

/// What it does.
enum PictureTask {
    Embed(PictureEmbedder),
    /// The layers below the head make vectors, too; both share their weights.
    Classify(Box<PictureClassifier>, PictureEmbedder),
    Detect(Box<Detector>),
}

/// A picture that was made ready.
#[derive(Debug)]
pub(crate) struct Ready {
    pub pixels: Pixels,
    /// The width and height that it came with.
    pub size: [usize; 2],
}

impl PictureModel {
    /// Reads the model of a folder, of which `kind` is known.
    pub(super) fn open(
        engine: &Engine,
        name: &str,
        folder: &Path,
        kind: PictureKind,
    ) -> Result<PictureModel, Error> {
        let failed = |source| Error::Model { name: name.to_owned(), source: Box::new(source) };
        let (int8, backend) = (engine.int8.unwrap_or(false), &engine.encoder);
        let form = if int8 { Form::Int8 } else { Form::Precise };
        let task = match kind {
            PictureKind::Embed => {
                PictureTask::Embed(PictureEmbedder::open(backend, folder, form).map_err(failed)?)
            }
            PictureKind::Classify => {
                let classifier = PictureClassifier::open(backend, folder, form).map_err(failed)?;
                let embedder = PictureEmbedder::new(classifier.encoder().clone());
                PictureTask::Classify(Box::new(classifier), embedder)
            }
            PictureKind::Detect => {
                PictureTask::Detect(Box::new(Detector::open(backend, folder, form).map_err(failed)?))
            }
        };
        Ok(PictureModel { name: name.to_owned(), int8, dtype: engine.dtype_of_encoders(), task })
    }

    /// What it does.
    pub fn kind(&self) -> PictureKind {
        match self.task {
            PictureTask::Embed(_) => PictureKind::Embed,
            PictureTask::Classify(..) => PictureKind::Classify,
            PictureTask::Detect(_) => PictureKind::Detect,
        }
    }

    /// Whether it does this, also beside something else.
    pub fn can(&self, kind: PictureKind) -> bool {
        self.kind() == kind || kind == PictureKind::Embed && self.embedder().is_some()
    }

    /// The encoder whose attention goes from patch to patch, if it has one.
    pub fn encoder(&self) -> Option<&PictureEncoder> {
        self.embedder().map(PictureEmbedder::encoder)
    }

    /// What makes vectors, if it does.
    pub fn embedder(&self) -> Option<&PictureEmbedder> {
        match &self.task {
            PictureTask::Embed(embedder) | PictureTask::Classify(_, embedder) => Some(embedder),
            PictureTask::Detect(_) => None,
        }
    }

    /// The names of its classes, if it has any.
    pub fn labels(&self) -> Option<&[String]> {
        match &self.task {
            PictureTask::Embed(_) => None,
            PictureTask::Classify(classifier, _) => Some(classifier.labels()),
            PictureTask::Detect(detector) => Some(detector.labels()),
        }
    }

    /// How large it is.
    pub fn sizes(&self) -> Sizes {
        match &self.task {
            PictureTask::Embed(embedder) | PictureTask::Classify(_, embedder) => embedder.encoder().sizes(),
            PictureTask::Detect(detector) => detector.sizes(),
        }
    }

    /// Makes a picture ready.
    pub fn read(&self, picture: &Picture) -> Result<Ready, Problem> {
        let pixels = match &self.task {
            PictureTask::Embed(embedder) | PictureTask::Classify(_, embedder) => {
                embedder.encoder().ready(picture)?
            }
            PictureTask::Detect(detector) => detector.read(picture)?,
        };
        Ok(Ready { pixels, size: [picture.width(), picture.height()] })
    }

    /// How many pictures are computed at once.
    pub fn batch(&self) -> usize {
        // The pictures of a DETR are large enough to keep all threads busy.
        self.encoder().map_or(1, PictureEncoder::batch)
    }

    /// The tokens of a picture; those of a DETR are places behind its backbone, which are not counted.
    pub fn tokens(&self, picture: &Ready) -> usize {
        self.encoder().map_or(0, |encoder| encoder.tokens(&picture.pixels))
    }

    /// The numbers of each picture. `kind` says which, of a model that can do more than one thing: a vector that is not divided by its
    /// length; a logit for each class; or of each query its logits and its box.
    pub fn compute(
        &self,
        kind: PictureKind,
        pictures: &[&Pixels],
    ) -> Result<Vec<Vec<f32>>, attentive_tasks::Error> {
        match &self.task {
            PictureTask::Classify(classifier, _) if kind == PictureKind::Classify => {
                classifier.logits(pictures)
            }
            PictureTask::Embed(embedder) | PictureTask::Classify(_, embedder) => {
                Ok(embedder.class_tokens(pictures)?.rows().map(<[f32]>::to_vec).collect())
            }
            PictureTask::Detect(detector) => {
                Ok(pictures.iter().map(|pixels| detector.outputs(pixels)).collect())
            }
        }
    }

    /// The vectors that clients get of those that were computed.
    pub fn finished(&self, numbers: Vec<Vec<f32>>) -> Vectors {
        Vectors { width: self.sizes().d_model, numbers: numbers.concat() }.normalised()
    }

    /// The labels of a picture with their scores, best first, by what was computed.
    pub fn ranked(&self, logits: &[f32]) -> Classified {
        match &self.task {
            PictureTask::Classify(classifier, _) => classifier.ranked(logits),
            PictureTask::Embed(_) | PictureTask::Detect(_) => Classified { scores: Vec::new() },
        }
    }

    /// What is in a picture of this size, by what was computed.
    pub fn things(&self, outputs: &[f32], size: [usize; 2], threshold: f64) -> Vec<Detected> {
        match &self.task {
            PictureTask::Detect(detector) => detector.things(outputs, size, threshold),
            PictureTask::Embed(_) | PictureTask::Classify(..) => Vec::new(),
        }
    }
}

impl std::fmt::Debug for PictureModel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.debug_struct("PictureModel").field("name", &self.name).finish_non_exhaustive()
    }
}
