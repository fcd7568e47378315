//! A BERT as a folder, as transformers reads and writes it.

use super::{Bert, BertConfig, Task};
use crate::builder::Builder;
use crate::checkpoint::CONFIG;
use crate::checkpoint::{Checkpoint, Staged, save_folder};
use crate::convert::Plan;
use crate::error::Error;
use crate::families::deberta::LEGACY;
use crate::names::{Names, Read};
use attentive_tensor::{Backend, Tensor};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// The configuration and the weights of a folder, these under our names.
struct Folder {
    config: BertConfig,
    read: Read,
}

impl Folder {
    fn open(folder: &Path, task: Task) -> Result<Folder, Error> {
        let config = BertConfig::load(folder)?;
        let names = config.relative.particulars().names;
        let read = names.read(Checkpoint::of_folder(folder)?)?;
        if task == Task::MaskedLm {
            if !config.tied_output {
                let problem =
                    "tie_word_embeddings: false is not supported for this task, only true".to_owned();
                return Err(Error::Format { path: folder.join(CONFIG), problem });
            }
            names
                .check_tied(&read.checkpoint, "the head of this model shares the table of its embeddings")?;
        }
        Ok(Folder { config, read })
    }

    /// A model, together with what it left of the folder.
    fn with_unused(&self, model: Bert) -> Bert {
        Bert {
            unused: self.config.relative.particulars().names.unused(&self.read, model.parameters(), &[]),
            ..model
        }
    }
}

/// What the model of a folder takes of its files, for a folder that has no other head.
pub(in crate::families) fn plan(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Plan, Error> {
    let task = Task::of(folder)?;
    let folder = Folder::open(folder, task)?;
    let model = Bert::new(&Builder::shapes_of(backend, &folder.read.checkpoint), &folder.config, task)?;
    let relative = folder.config.relative;
    let names = relative.particulars().names;
    let mut fields = vec![("architectures", json!([relative.architecture(task)]))];
    if folder.config.disentangled.is_some() {
        fields.push((LEGACY, true.into()));
    }
    Ok(Plan { tensors: names.in_files(&folder.read, model.parameters(), task != Task::Hidden), fields })
}

impl Bert {
    /// Reads a model folder for a task. A weight that the task needs and the folder does not have is refused by name; what it does
    /// not need is in [`Bert::unused`].
    pub fn load(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Bert, Error> {
        let folder = Folder::open(folder, task)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint);
        Ok(folder.with_unused(Bert::new(&builder, &folder.config, task)?))
    }

    /// [`Bert::load`] for a model that is only to be computed with, not to be trained or saved: the weights of products are as the
    /// backend multiplies with them.
    pub fn load_packed(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Bert, Error> {
        let folder = Folder::open(folder, task)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint).packed();
        Ok(folder.with_unused(Bert::new(&builder, &folder.config, task)?))
    }

    /// [`Bert::load_packed`] with the weights of products in int8.
    pub fn load_in_int8(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Bert, Error> {
        let folder = Folder::open(folder, task)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint).in_int8();
        Ok(folder.with_unused(Bert::new(&builder, &folder.config, task)?))
    }

    /// The model of a folder without its numbers: its parts can be listed and counted. Weights must fit.
    pub fn load_shapes(backend: &Arc<dyn Backend>, folder: &Path, task: Task) -> Result<Bert, Error> {
        let folder = Folder::open(folder, task)?;
        let builder = Builder::shapes_of(backend, &folder.read.checkpoint);
        Ok(folder.with_unused(Bert::new(&builder, &folder.config, task)?))
    }

    /// Reads a model folder to learn a task. `config` is the folder's own with the labels to learn, and with dropout as one likes.
    /// A head that the folder does not have gets random first values from `seed`, and so does one for other labels, and a pooler
    /// that is missing.
    pub fn load_to_learn(
        backend: &Arc<dyn Backend>,
        path: &Path,
        config: &BertConfig,
        task: Task,
        seed: u64,
    ) -> Result<Bert, Error> {
        let folder = Folder::open(path, task)?;
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint);
        let fresh = builder.fresh(seed);
        let is_known = match task {
            Task::Hidden => true,
            Task::MaskedLm => builder.has("masked_lm.bias"),
            Task::QuestionAnswering => builder.has("qa_outputs.bias"),
            Task::SequenceClassification | Task::TokenClassification => {
                Task::of(path)? == task && folder.config.labels == config.labels
            }
        };
        let head = if is_known { &builder } else { &fresh };
        Ok(folder.with_unused(Bert::with_head(&builder, head, config, task)?))
    }

    fn names(&self) -> &'static Names {
        self.config().relative.particulars().names
    }

    /// Writes the weights to a file as a folder has them, beside the old one.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        self.names().stage(path, backend, self.parameters(), self.task() != Task::Hidden)
    }

    /// The weights in a file that [`Bert::stage_weights`] wrote, in the order of the parameters.
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
