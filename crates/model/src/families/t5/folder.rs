//! A T5 as a folder, as transformers reads and writes it.

use super::names::{OUTPUT, names};
use super::{T5, T5Config};
use crate::builder::Builder;
use crate::checkpoint::{Checkpoint, Staged, save_folder};
use crate::convert::Old;
use crate::error::Error;
use crate::families::encoder_decoder::EncoderDecoder;
use crate::names::{Names, Read};
use attentive_tensor::{Backend, Tensor};
use std::path::Path;
use std::sync::Arc;

/// The configuration and the weights of a folder, these under our names.
struct Folder {
    config: T5Config,
    names: &'static Names,
    read: Read,
}

/// The table of the embeddings, under our name.
const TABLE: &str = "shared.weight";

impl Folder {
    fn open(folder: &Path) -> Result<Folder, Error> {
        let mut config = T5Config::load(folder)?;
        let names = names(&config);
        let read = names.read(Checkpoint::of_folder(folder)?)?;
        // What configurations say of it has changed with the versions of transformers. An output that is there, and is not the
        // table, is what the model was trained with.
        let checkpoint = &read.checkpoint;
        config.tied_output =
            !checkpoint.has(OUTPUT) || checkpoint.has(TABLE) && checkpoint.same(TABLE, OUTPUT)?;
        Ok(Folder { config, names, read })
    }

    /// The model with the parameters that `builder` gives it, together with what it left of the folder.
    fn load(&self, builder: &Builder) -> Result<T5, Error> {
        let model = T5::new(builder, &self.config)?;
        Ok(T5 { unused: self.names.unused(&self.read, model.parameters(), &[]), ..model })
    }
}

/// The tensors that the model of a folder takes of its files, and what a new file calls them.
pub(in crate::families) fn tensors(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Vec<Old>, Error> {
    let folder = Folder::open(folder)?;
    let model = folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))?;
    Ok(folder.names.in_files(&folder.read, model.parameters(), true))
}

impl T5 {
    /// Reads a model folder. A weight that is missing is refused by name; what the model does not need is in [`T5::unused`].
    pub fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Result<T5, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint))
    }

    /// [`T5::load`] for a model that is only to be computed with, not to be trained or saved: the weights of products are as the
    /// backend multiplies with them.
    pub fn load_packed(backend: &Arc<dyn Backend>, folder: &Path) -> Result<T5, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).packed())
    }

    /// [`T5::load_packed`] with the weights of products in int8.
    pub fn load_in_int8(backend: &Arc<dyn Backend>, folder: &Path) -> Result<T5, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).in_int8())
    }

    /// The model of a folder without its numbers: its parts can be listed and counted. Weights must fit.
    pub fn load_shapes(backend: &Arc<dyn Backend>, folder: &Path) -> Result<T5, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))
    }

    /// Reads a model folder to learn more, with its own dropout where none is given.
    pub fn load_to_learn(backend: &Arc<dyn Backend>, path: &Path, dropout: Option<f32>) -> Result<T5, Error> {
        let mut folder = Folder::open(path)?;
        folder.config.dropout = dropout.unwrap_or(folder.config.dropout);
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint))
    }

    /// Writes the weights to a file as a folder has them, beside the old one.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        names(self.config()).stage(path, backend, self.parameters(), true)
    }

    /// The weights in a file that [`T5::stage_weights`] wrote, in the order of the parameters.
    pub fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        names(self.config()).read_parameters(path, backend, self.parameters())
    }

    /// Writes a model folder as transformers reads it; each file is replaced at once or not at all.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        save_folder(folder, |path| self.stage_weights(backend, path), |folder| self.config().stage(folder))
    }
}
