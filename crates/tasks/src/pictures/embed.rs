//! Pictures to vectors.

use super::PictureEncoder;
use crate::embed::Vectors;
use crate::error::Error;
use attentive_image::Pixels;
use attentive_model::families::vit::Task;
use attentive_tensor::{Backend, Form};
use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

/// Makes vectors of pictures, such that like pictures have like vectors.
#[derive(Debug, Clone)]
pub struct PictureEmbedder {
    encoder: PictureEncoder,
}

impl PictureEmbedder {
    /// Reads the model of a folder; a head for classes is left out.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<PictureEmbedder, Error> {
        Ok(PictureEmbedder { encoder: PictureEncoder::open(backend, folder, Task::Hidden, form)? })
    }

    /// The task of a model that is there already, also one with a head: vectors come from the layers below.
    pub fn new(encoder: PictureEncoder) -> PictureEmbedder {
        PictureEmbedder { encoder }
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(PictureEncoder) -> PictureEncoder) -> PictureEmbedder {
        PictureEmbedder { encoder: change(self.encoder) }
    }

    /// The model, and what it wants of pictures.
    pub fn encoder(&self) -> &PictureEncoder {
        &self.encoder
    }

    /// The vectors of pictures that were made ready: the hidden state of the class token of each, divided by its length.
    pub fn vectors(&self, pictures: &[Pixels]) -> Result<Vectors, Error> {
        Ok(self.class_tokens(pictures)?.normalised())
    }

    /// The same, not divided by their lengths.
    pub fn class_tokens(&self, pictures: &[impl Borrow<Pixels>]) -> Result<Vectors, Error> {
        let rows = self.encoder.answer(pictures, |tape, batch, hidden| {
            Ok(self.encoder.rows(&self.encoder.model.vectors(tape, hidden, batch)))
        })?;
        Ok(Vectors { width: self.encoder.model.config().d_model, numbers: rows.concat() })
    }
}
