//! A model that reads pictures, and the processor of its pictures: what all tasks of pictures have in common.

mod classify;
mod embed;

pub use classify::PictureClassifier;
pub use embed::PictureEmbedder;

use crate::error::Error;
use crate::kind::PictureKind;
use attentive_generate::{Inspection, Sizes};
use attentive_image::{Filter, Picture, Pixels, Problem, Processor};
use attentive_model::families::Family;
use attentive_model::families::vit::{self, Batch, Task, Vit};
use attentive_tensor::{Backend, Form, Tape, Var};
use std::borrow::Borrow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default number of pictures in a batch.
const BATCH: usize = 8;

/// A model, and the processor of its pictures. Clones share the model.
#[derive(Debug, Clone)]
pub struct PictureEncoder {
    backend: Arc<dyn Backend>,
    model: Vit,
    processor: Processor,
    folder: PathBuf,
    batch: usize,
}

impl PictureEncoder {
    /// Reads the model of a folder for a task, for inference only. `form` is the number format of its weights.
    pub fn open(
        backend: &Arc<dyn Backend>,
        folder: &Path,
        task: Task,
        form: Form,
    ) -> Result<PictureEncoder, Error> {
        let processor = Processor::of(folder)?;
        let load = match form {
            Form::Precise => Vit::load_packed,
            Form::Int8 => Vit::load_in_int8,
        };
        let model = load(backend, folder, task)?;
        PictureEncoder::new(backend, model, processor, folder)
    }

    /// A model that was read from `folder` before.
    pub fn new(
        backend: &Arc<dyn Backend>,
        model: Vit,
        processor: Processor,
        folder: &Path,
    ) -> Result<PictureEncoder, Error> {
        let channels = model.config().channels;
        if channels != 3 {
            let problem = format!("num_channels: pictures have 3, red, green and blue, not {channels}");
            return Err(Error::Format { path: folder.join("config.json"), problem });
        }
        Ok(PictureEncoder {
            backend: Arc::clone(backend),
            model,
            processor,
            folder: folder.to_owned(),
            batch: BATCH,
        })
    }

    /// Sets the number of pictures in a batch.
    pub fn with_batch(self, pictures: usize) -> PictureEncoder {
        PictureEncoder { batch: pictures.max(1), ..self }
    }

    /// Sets the size of a batch to about so many tokens.
    pub fn with_batch_tokens(self, tokens: usize) -> PictureEncoder {
        let pictures = tokens / self.model.config().tokens();
        self.with_batch(pictures)
    }

    /// The model.
    pub fn model(&self) -> &Vit {
        &self.model
    }

    /// The folder that it comes from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The processor, which prepares pictures.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// The number of pictures in a batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Prepares a picture. Errors name it by `number`, counted from 0.
    pub fn read(&self, number: usize, picture: &Picture) -> Result<Pixels, Error> {
        self.ready(picture)
            .map_err(|problem| Error::Picture { picture: number + 1, problem: problem.to_string() })
    }

    /// Prepares a picture.
    pub fn ready(&self, picture: &Picture) -> Result<Pixels, Problem> {
        let pixels = self.processor.process(picture)?;
        if self.model.config().grid(pixels.height, pixels.width).is_none() {
            let [height, width] = self.model.config().patch_size;
            return Err(Problem::new(format!(
                "has {} × {} pixels for the model, which reads patches of {width} × {height}",
                pixels.width, pixels.height
            )));
        }
        Ok(pixels)
    }

    /// Computes the hidden states of pictures, batch by batch, and lets `answer` make something of each batch: an answer for each
    /// picture. Answers come back in the order of the pictures.
    fn answer<T>(
        &self,
        pictures: &[impl Borrow<Pixels>],
        mut answer: impl FnMut(&Tape, &Batch, &Var) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut answers = Vec::with_capacity(pictures.len());
        for pictures in pictures.chunks(self.batch) {
            let pictures: Vec<vit::Picture> =
                pictures.iter().map(|pixels| as_planes(pixels.borrow())).collect();
            let tape = Tape::inference(&self.backend);
            let batch = Batch::new(&*self.backend, self.model.config(), &pictures);
            let hidden = self.model.encode(&tape, &batch);
            answers.extend(answer(&tape, &batch, &hidden)?);
        }
        Ok(answers)
    }

    /// How large the model is.
    pub fn sizes(&self) -> Sizes {
        let config = self.model.config();
        Sizes {
            d_model: config.d_model,
            h: config.h,
            decoder_h: config.h,
            d_ff: config.d_ff,
            encoder_layers: config.layers,
            decoder_layers: 0,
            parameters: self.model.parameter_count(),
        }
    }

    /// The rows and columns of patches of a picture that was made ready.
    ///
    /// # Panics
    /// If this model did not make it ready.
    pub fn grid(&self, pixels: &Pixels) -> [usize; 2] {
        let grid = self.model.config().grid(pixels.height, pixels.width);
        grid.expect("a picture that was read has patches")
    }

    /// The tokens of a picture that was made ready: those before its patches, and one for each patch.
    pub fn tokens(&self, pixels: &Pixels) -> usize {
        let [rows, columns] = self.grid(pixels);
        self.model.config().tokens_before() + rows * columns
    }

    /// The token of the patch in this row and column, counted from 0, of a picture with such a grid; without a patch the class token.
    /// None if there is no such patch.
    pub fn token_of(&self, [rows, columns]: [usize; 2], patch: Option<[usize; 2]>) -> Option<usize> {
        match patch {
            None => Some(0),
            Some([row, column]) if row < rows && column < columns => {
                Some(self.model.config().tokens_before() + row * columns + column)
            }
            Some(_) => None,
        }
    }

    /// The part of a picture that has patches, as the model reads it, before its numbers are changed.
    pub fn seen(&self, picture: &Picture) -> Result<Picture, Problem> {
        let fitted = self.processor.fit(picture)?;
        let [height, width] = self.model.config().patch_size;
        let whole = |side: usize, patch: usize| (side / patch * patch).max(1);
        let [width, height] = [whole(fitted.width(), width), whole(fitted.height(), height)];
        fitted.region_resized([0.0, 0.0, width as f64, height as f64], width, height, Filter::Nearest)
    }

    /// All attentions of a picture, to be looked into.
    pub fn inspect(&self, pixels: &Pixels) -> Inspection {
        let tape = Tape::inference(&self.backend).watching();
        let batch = Batch::new(&*self.backend, self.model.config(), &[as_planes(pixels)]);
        self.model.encode(&tape, &batch);
        Inspection::new(&self.backend, &tape, self.model.config().layers)
    }

    /// The rows of a matrix.
    fn rows(&self, x: &Var) -> Vec<Vec<f32>> {
        let width = x.shape().cols();
        self.backend.download_f32(x.value()).chunks_exact(width).map(<[f32]>::to_vec).collect()
    }
}

fn as_planes(Pixels { height, width, numbers }: &Pixels) -> vit::Picture<'_> {
    vit::Picture { height: *height, width: *width, numbers }
}

impl PictureKind {
    /// What the model of a folder was trained for; none if it does not read pictures.
    pub fn of(folder: &Path) -> Result<Option<PictureKind>, Error> {
        Ok(match Family::of(folder)? {
            Family::Detr => Some(PictureKind::Detect),
            Family::Vit if Task::of(folder)?.has_labels() => Some(PictureKind::Classify),
            Family::Vit => Some(PictureKind::Embed),
            _ => None,
        })
    }
}

/// What the model of a folder was trained for, if it is a ViT or one of its relatives.
pub fn task_of_pictures(folder: &Path) -> Result<Option<Task>, Error> {
    if Family::of(folder)? != Family::Vit {
        return Ok(None);
    }
    Ok(Some(Task::of(folder)?))
}
