//! From one folder of a ViT to another: weights in another type, in one file, under the names that all folders have.

use super::folder::Folder;
use super::{Task, Vit};
use crate::builder::Builder;
use crate::checkpoint::StoredType;
use crate::convert::{Converted, Plain, must_be_free};
use crate::error::Error;
use attentive_tensor::Backend;
use std::path::Path;
use std::sync::Arc;

/// Reads the model in the folder `from` and writes it, with all that belongs to it, to the folder `to`, which may not hold a model
/// yet. Heads of other tasks stay behind.
pub fn convert(
    backend: &Arc<dyn Backend>,
    from: &Path,
    to: &Path,
    stored: StoredType,
) -> Result<Converted, Error> {
    let plain = Plain::new(stored)?;
    must_be_free(to)?;
    let task = Task::of(from)?;
    let folder = Folder::open(from)?;
    let (read, names) = (&folder.read, folder.config.relative.particulars().names);
    let model = Vit::new(&Builder::shapes_of(backend, &read.checkpoint), &folder.config, task)?;
    plain.write([from, to], names.in_files(read, model.parameters(), task != Task::Hidden))
}
