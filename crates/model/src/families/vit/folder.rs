//! A ViT as a folder, as transformers reads and writes it.

use super::{Task, Vit, VitConfig};
use crate::builder::Builder;
use crate::checkpoint::{Checkpoint, Staged, save_folder};
use crate::convert::{Old, Plan};
use crate::error::Error;
use crate::names::{Names, Read};
use attentive_tensor::{Backend, Tensor};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// The configuration and the weights of a folder, these under our names.
pub(super) struct Folder {
    pub config: VitConfig,
    pub read: Read,
}

impl Folder {
    pub fn open(folder: &Path) -> Result<Folder, Error> {
        let config = VitConfig::load(folder)?;
        let read = config.relative.particulars().names.read(Checkpoint::of_folder(folder)?)?;
        Ok(Folder { config, read })
    }

    /// A model that knows which tensors of the folder it did not use.
    fn with_unused(&self, model: Vit) -> Vit {
        let names = self.config.relative.particulars().names;
        Vit { unused: names.unused(&self.read, model.parameters(), &[MASK]), ..model }
    }
}

/// What the model of a folder takes of its files, and what stands for hidden patches, for a folder that has no other head.
pub(in crate::families) fn plan(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Plan, Error> {
    let task = Task::of(folder)?;
    let folder = Folder::open(folder)?;
    let checkpoint = &folder.read.checkpoint;
    let model = Vit::new(&Builder::shapes_of(backend, checkpoint), &folder.config, task)?;
    let relative = folder.config.relative;
    let (names, prefixed) = (relative.particulars().names, task != Task::Hidden);
    let mut tensors = names.in_files(&folder.read, model.parameters(), prefixed);
    if let Some((_, shape)) = checkpoint.stored(MASK)? {
        let (name, new_name) = (checkpoint.stored_name(MASK), names.name_in_file(MASK, prefixed));
        tensors.push(Old { name, new_name, shape, converts: false });
    }
    Ok(Plan { tensors, fields: vec![("architectures", json!(relative.architecture(task).as_slice()))] })
}

/// The mask token, which replaces masked patches in the pretraining of DINOv2.
const MASK: &str = "mask_token";

impl Vit {
    /// Reads a model folder for a task. A weight that the task needs and the folder does not have is refused by name; what it does
    /// not need is in [`Vit::unused`].
    pub fn load(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Vit, Error> {
        let folder = Folder::open(folder)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint);
        Ok(folder.with_unused(Vit::new(&builder, &folder.config, task)?))
    }

    /// [`Vit::load`] for a model that is only to be computed with, not to be trained or saved: the weights of products are as the
    /// backend multiplies with them.
    pub fn load_packed(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Vit, Error> {
        let folder = Folder::open(folder)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint).packed();
        Ok(folder.with_unused(Vit::new(&builder, &folder.config, task)?))
    }

    /// [`Vit::load_packed`] with the weights of products in int8.
    pub fn load_in_int8(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Vit, Error> {
        let folder = Folder::open(folder)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint).in_int8();
        Ok(folder.with_unused(Vit::new(&builder, &folder.config, task)?))
    }

    /// The model of a folder without its numbers: its parts can be listed and counted. Weights must fit.
    pub fn load_shapes(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Vit, Error> {
        let folder = Folder::open(folder)?;
        let builder = Builder::shapes_of(backend, &folder.read.checkpoint);
        Ok(folder.with_unused(Vit::new(&builder, &folder.config, task)?))
    }

    /// Reads a model folder to learn classes. `config` is the folder's own with the labels to learn, with any dropout.
    /// A head that the folder does not have, or that is for other labels, gets random first values from `seed`.
    pub fn load_to_learn(
        backend: &Arc<dyn Backend>,
        path: &Path,
        config: &VitConfig,
        seed: u64,
    ) -> Result<Vit, Error> {
        let folder = Folder::open(path)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint);
        let fresh = builder.fresh(seed);
        let is_known = Task::of(path)? == Task::Classes && folder.config.labels == config.labels;
        let head = if is_known { &builder } else { &fresh };
        Ok(folder.with_unused(Vit::with_head(&builder, head, config, Task::Classes)?))
    }

    /// Reads the [backbone](Vit::backbone) of a model folder, whatever it was saved for. `config` is the folder's own, with any
    /// dropout.
    pub fn load_backbone(backend: &Arc<dyn Backend>, path: &Path, config: &VitConfig) -> Result<Vit, Error> {
        let folder = Folder::open(path)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint);
        Ok(folder.with_unused(Vit::backbone(&builder, config)?))
    }

    fn names(&self) -> &'static Names {
        self.config().relative.particulars().names
    }

    /// Writes the weights to a file as a folder has them, beside the old one.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        self.names().stage(path, backend, self.parameters(), self.task() != Task::Hidden)
    }

    /// The weights in a file that [`Vit::stage_weights`] wrote, in the order of the parameters.
    pub fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        self.names().read_parameters(path, backend, self.parameters())
    }

    /// Writes a model folder as transformers reads it; each file is replaced at once or not at all.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        save_folder(
            folder,
            |path| self.stage_weights(backend, path),
            |folder| self.config().stage(folder, self.task()),
        )
    }
}
