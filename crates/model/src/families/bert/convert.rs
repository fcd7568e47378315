//! From one folder of a BERT to another: weights in another type, in one file, under the names of today.

use super::folder::Folder;
use super::{Bert, Task};
use crate::builder::Builder;
use crate::checkpoint::StoredType;
use crate::convert::{Converted, Old, Work, fields_of, must_be_free};
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
    if stored == StoredType::Int8 {
        let problem = "int8 is not supported for this model type, only f32 and bf16; commands compute any of them in int8";
        return Err(Error::config("precision", problem));
    }
    must_be_free(to)?;
    let task = Task::of(from)?;
    let folder = Folder::open(from, task)?;
    let (checkpoint, names) = (&folder.read.checkpoint, folder.config.relative.particulars().names);
    let model = Bert::new(&Builder::shapes_of(backend, checkpoint), &folder.config, task)?;
    let old = |name: &str, shape| Old {
        name: name.to_owned(),
        new_name: names.name_in_file(name, task != Task::Hidden),
        shape,
        converts: true,
    };
    let tensors: Vec<Old> = model.parameters().iter().map(|p| old(p.name(), p.value().shape())).collect();
    let mut fields = fields_of(from)?;
    fields.insert("dtype".to_owned(), if stored == StoredType::Bf16 { "bfloat16" } else { "float32" }.into());
    // The old name of `dtype`, which would contradict it.
    fields.shift_remove("torch_dtype");
    let work = Work { checkpoint, stored, change: &|_, numbers| numbers };
    work.write([from, to], &tensors, &fields)
}
