//! A DETR as a folder, as transformers reads and writes it.

use super::config::BackboneNames;
use super::{Detr, DetrConfig, names};
use crate::builder::Builder;
use crate::checkpoint::{Checkpoint, Staged, save_folder};
use crate::convert::Old;
use crate::error::Error;
use crate::names::{Names, Read};
use attentive_tensor::{Backend, Tensor};
use std::path::Path;
use std::sync::Arc;

/// The configuration and the weights of a folder, these under our names.
struct Folder {
    config: DetrConfig,
    read: Read,
}

fn names(config: &DetrConfig) -> &'static Names {
    match config.backbone.names {
        BackboneNames::Timm => &names::TIMM,
        BackboneNames::ResNet => &names::RESNET,
    }
}

impl Folder {
    fn open(folder: &Path) -> Result<Folder, Error> {
        let config = DetrConfig::load(folder)?;
        let read = names(&config).read(Checkpoint::of_folder(folder)?)?;
        Ok(Folder { config, read })
    }

    /// The model with the parameters that `builder` gives it, together with what it left of the folder.
    fn load(&self, builder: &Builder) -> Result<Detr, Error> {
        self.with_unused(Detr::new(builder, &self.config)?)
    }

    fn with_unused(&self, model: Detr) -> Result<Detr, Error> {
        Ok(Detr { unused: names(&self.config).unused(&self.read, &model.parameters, &[]), ..model })
    }
}

/// The tensors that the model of a folder takes of its files, and what a new file calls them.
pub(in crate::families) fn tensors(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Vec<Old>, Error> {
    let folder = Folder::open(folder)?;
    let model = folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))?;
    Ok(names(&folder.config).in_files(&folder.read, &model.parameters, true))
}

impl Detr {
    /// Reads a model folder. A weight that is missing is refused by name; what the model does not need is in [`Detr::unused`].
    pub fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Detr, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint))
    }

    /// [`Detr::load`] for a model that is only to be computed with, not to be trained or saved: the weights of products are as the
    /// backend multiplies with them.
    pub fn load_packed(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Detr, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).packed())
    }

    /// [`Detr::load_packed`] with the weights of products in int8, but for the heads.
    pub fn load_in_int8(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Detr, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).in_int8())
    }

    /// The model of a folder without its numbers: its parts can be listed and counted. Weights must fit.
    pub fn load_shapes(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Detr, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))
    }

    /// Reads a model folder to train it further. `config` is the folder's own with the labels to learn. If these are other labels, the
    /// class head gets random initial values from `seed`.
    pub fn load_to_learn(
        backend: &Arc<dyn Backend>,
        path: &Path,
        config: &DetrConfig,
        seed: u64,
    ) -> Result<Detr, Error> {
        let folder = Folder::open(path)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint);
        let fresh = builder.fresh(seed);
        let classes = if config.labels == folder.config.labels { &builder } else { &fresh };
        folder.with_unused(Detr::with_classes(&builder, classes, config)?)
    }

    /// Writes the weights to a file as a folder has them, beside the old one.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        names(&self.config).stage(path, backend, &self.parameters, true)
    }

    /// The weights in a file that [`Detr::stage_weights`] wrote, in the order of the parameters.
    pub fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        names(&self.config).read_parameters(path, backend, &self.parameters)
    }

    /// Writes a model folder; each file is replaced at once or not at all. transformers reads it if its norms are frozen.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        save_folder(folder, |path| self.stage_weights(backend, path), |folder| self.config.stage(folder))
    }
}
