//! From one folder of a GPT-2 to another: weights in another type, in one file, under the names of today.

use super::folder::Folder;
use crate::builder::Builder;
use crate::checkpoint::StoredType;
use crate::convert::{Converted, Plain, must_be_free};
use crate::error::Error;
use attentive_tensor::Backend;
use std::path::Path;
use std::sync::Arc;

/// Reads the model in the folder `from` and writes it, with all that belongs to it, to the folder `to`, which may not hold a model
/// yet. Buffers and heads of other tasks stay behind.
pub fn convert(
    backend: &Arc<dyn Backend>,
    from: &Path,
    to: &Path,
    stored: StoredType,
) -> Result<Converted, Error> {
    let plain = Plain::new(stored)?;
    must_be_free(to)?;
    let folder = Folder::open(from)?;
    let model = folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))?;
    let names = model.config().version.names();
    plain.write([from, to], names.in_files(&folder.read, model.parameters(), true))
}
