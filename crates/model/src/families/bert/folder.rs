//! A BERT as a folder, as transformers reads and writes it.

use super::names::NAMES;
use super::{Bert, BertConfig, Task};
use crate::builder::Builder;
use crate::checkpoint::{Checkpoint, WEIGHTS};
use crate::error::Error;
use crate::families::CONFIG;
use crate::names::Read;
use attentive_tensor::Backend;
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
        let read = NAMES.read(Checkpoint::of_folder(folder)?)?;
        if task == Task::MaskedLm {
            if !config.tied_output {
                let problem =
                    "tie_word_embeddings: false is not supported for this task, only true".to_owned();
                return Err(Error::Format { path: folder.join(CONFIG), problem });
            }
            NAMES
                .check_tied(&read.checkpoint, "the head of this model shares the table of its embeddings")?;
        }
        Ok(Folder { config, read })
    }

    /// A model, together with what it left of the folder.
    fn with_unused(&self, model: Bert) -> Bert {
        Bert { unused: NAMES.unused(&self.read, model.parameters()), ..model }
    }
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

    /// Reads a model folder to learn another task: the classifier is new, with random first values from `seed` and these classes;
    /// so is the pooler, and the head of a masked language model, if the folder has none.
    pub fn load_to_learn(
        backend: &Arc<dyn Backend>,
        folder: &Path,
        task: Task,
        labels: &[String],
        seed: u64,
    ) -> Result<Bert, Error> {
        let folder = Folder::open(folder, task)?;
        let config = BertConfig { labels: labels.to_vec(), problem: None, ..folder.config.clone() };
        let config = if task.has_labels() { config } else { folder.config.clone() };
        let builder = Builder::checkpoint(backend, &folder.read.checkpoint);
        let fresh = builder.fresh(seed);
        let known = task == Task::MaskedLm && builder.has("masked_lm.bias");
        let head = if known { &builder } else { &fresh };
        Ok(folder.with_unused(Bert::with_head(&builder, head, &config, task)?))
    }

    /// Writes a model folder as transformers reads it; each file is replaced at once or not at all.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
        // Both are on the disk before either takes its place: what is left to fail between them is a rename.
        let prefixed = self.task() != Task::Hidden;
        let weights = NAMES.stage(&folder.join(WEIGHTS), backend, self.parameters(), prefixed)?;
        let config = self.config().stage(folder, self.task())?;
        weights.commit()?;
        config.commit()
    }
}
