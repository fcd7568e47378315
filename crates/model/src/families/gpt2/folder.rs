//! A GPT-2 or GPT-1 as a folder, as transformers reads and writes it.

use super::{Gpt2, Gpt2Config};
use crate::builder::Builder;
use crate::checkpoint::{Checkpoint, Staged, save_folder};
use crate::convert::Old;
use crate::error::Error;
use crate::names::Read;
use attentive_tensor::{Backend, Tensor};
use std::path::Path;
use std::sync::Arc;

/// The configuration and the weights of a folder, these under our names.
struct Folder {
    config: Gpt2Config,
    read: Read,
}

impl Folder {
    fn open(folder: &Path) -> Result<Folder, Error> {
        let config = Gpt2Config::load(folder)?;
        let names = config.version.names();
        let read = names.read(Checkpoint::of_folder(folder)?)?;
        if config.tied_output {
            names.check_tied(
                &read.checkpoint,
                "config.json ties them: set tie_word_embeddings to false there",
            )?;
        }
        Ok(Folder { config, read })
    }

    /// The model with the parameters that `builder` gives it, together with what it left of the folder.
    fn load(&self, builder: &Builder) -> Result<Gpt2, Error> {
        let model = Gpt2::new(builder, &self.config)?;
        Ok(Gpt2 { unused: self.config.version.names().unused(&self.read, model.parameters(), &[]), ..model })
    }
}

/// The tensors that the model of a folder takes of its files, and what a new file calls them.
pub(in crate::families) fn tensors(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Vec<Old>, Error> {
    let folder = Folder::open(folder)?;
    let model = folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))?;
    Ok(model.config().version.names().in_files(&folder.read, model.parameters(), true))
}

impl Gpt2 {
    /// Reads a model folder. A weight that is missing is refused by name; what the model does not need is in [`Gpt2::unused`].
    pub fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Gpt2, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint))
    }

    /// [`Gpt2::load`] for a model that is only to be computed with, not to be trained or saved: the weights of products are as the
    /// backend multiplies with them.
    pub fn load_packed(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Gpt2, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).packed())
    }

    /// [`Gpt2::load_packed`] with the weights of products in int8.
    pub fn load_in_int8(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Gpt2, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).in_int8())
    }

    /// The model of a folder without its numbers: its parts can be listed and counted. Weights must fit.
    pub fn load_shapes(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Gpt2, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))
    }

    /// Reads a model folder to learn more. `config` is the folder's own, with dropout as one likes.
    pub fn load_to_learn(
        backend: &Arc<dyn Backend>,
        path: &Path,
        config: &Gpt2Config,
    ) -> Result<Gpt2, Error> {
        let folder = Folder { config: config.clone(), ..Folder::open(path)? };
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint))
    }

    /// Writes the weights to a file as a folder has them, beside the old one.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        self.config().version.names().stage(path, backend, self.parameters(), true)
    }

    /// The weights in a file that [`Gpt2::stage_weights`] wrote, in the order of the parameters.
    pub fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        self.config().version.names().read_parameters(path, backend, self.parameters())
    }

    /// Writes a model folder as transformers reads it; each file is replaced at once or not at all.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        save_folder(folder, |path| self.stage_weights(backend, path), |folder| self.config().stage(folder))
    }
}
