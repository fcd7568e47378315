//! Safetensors files, written beside the old one before they take its place.

use super::WEIGHTS;
use super::stored::StoredType;
use crate::error::Error;
use attentive_tensor::{Backend, Parameter, Shape, Tensor};
use safetensors::tensor::{Metadata, TensorInfo};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a model folder, which is made if it is not there: each file is replaced at once or not at all. `weights` and `config` write
/// theirs beside the old one.
pub(crate) fn save_folder(
    folder: &Path,
    weights: impl FnOnce(&Path) -> Result<Staged, Error>,
    config: impl FnOnce(&Path) -> Result<Staged, Error>,
) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
    // Both are on the disk before either takes its place: what is left to fail between them is a rename.
    let weights = weights(&folder.join(WEIGHTS))?;
    let config = config(folder)?;
    weights.commit()?;
    config.commit()
}

/// Writes parameters, and further tensors by name, as `f32`; they take the place of `path` when they are
/// committed.
pub fn stage(
    path: &Path,
    backend: &dyn Backend,
    parameters: &[Parameter],
    further: &[(&str, Vec<f32>, Shape)],
) -> Result<Staged, Error> {
    let parameters = parameters.iter().map(|p| (p.name().to_owned(), p.value()));
    let further = further
        .iter()
        .map(|(name, numbers, shape)| ((*name).to_owned(), backend.upload_f32(numbers, *shape)));
    stage_tensors(path, backend, &parameters.chain(further).collect::<Vec<_>>(), None)
}

/// Writes tensors by name as `f32`, one after the other, so that no second copy of them all is made; and a
/// note, if there is something to say about them.
pub fn stage_tensors(
    path: &Path,
    backend: &dyn Backend,
    tensors: &[(String, Tensor)],
    note: Option<(&str, String)>,
) -> Result<Staged, Error> {
    let item = |(name, tensor): &(String, Tensor)| Item {
        name: name.clone(),
        shape: tensor.shape(),
        stored: StoredType::F32,
    };
    let items: Vec<_> = tensors.iter().map(item).collect();
    stage_items(path, &items, note, |i| {
        let numbers = backend.download_f32(&tensors[i].1);
        Ok(numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
    })
}

/// A tensor that is to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub name: String,
    pub shape: Shape,
    pub stored: StoredType,
}

/// Writes tensors whose bytes are asked for one after the other.
pub(crate) fn stage_items(
    path: &Path,
    items: &[Item],
    note: Option<(&str, String)>,
    mut bytes: impl FnMut(usize) -> Result<Vec<u8>, Error>,
) -> Result<Staged, Error> {
    let mut end = 0;
    let info = |Item { name, shape, stored }: &Item| {
        let (begin, dtype) = (end, stored.dtype());
        end += shape.len() * dtype.bitsize() / 8;
        (name.clone(), TensorInfo { dtype, shape: shape.to_vec(), data_offsets: (begin, end) })
    };
    let infos = items.iter().map(info).collect();
    // PyTorch's loaders look for this word.
    let format = [("format".to_owned(), "pt".to_owned())];
    let notes = format.into_iter().chain(note.map(|(key, note)| (key.to_owned(), note))).collect();
    let metadata = Metadata::new(Some(notes), infos).expect("names and shapes are valid");
    let mut header = serde_json::to_vec(&metadata).expect("a plain structure");
    // The numbers begin at a multiple of their size.
    header.resize(header.len().next_multiple_of(8), b' ');
    Staged::with(path, |file| {
        let failed = |source| Error::File { path: path.to_owned(), source };
        file.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
        file.write_all(&header).map_err(failed)?;
        for i in 0..items.len() {
            file.write_all(&bytes(i)?).map_err(failed)?;
        }
        Ok(())
    })
}

/// What was asked of a file, or none if there is no such file. That the system cannot tell is a failure: a file that is taken for
/// absent would be left out or replaced.
pub(crate) fn if_there<T>(asked: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match asked {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        asked => asked.map(Some),
    }
}

/// A file that has reached the disk, whole, under another name, and waits to take the place of the old one:
/// whatever happens, one of the two is there. Dropped without [`Staged::commit`] it is gone.
#[derive(Debug)]
pub struct Staged {
    path: PathBuf,
    beside: PathBuf,
}

impl Staged {
    /// Writes what `path` is to hold beside it.
    pub fn new(path: &Path, contents: &[u8]) -> Result<Staged, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        Staged::with(path, |file| file.write_all(contents).map_err(failed))
    }

    /// Lets `write` write what `path` is to hold beside it, piece by piece.
    pub fn with<E: From<Error>>(
        path: &Path,
        write: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<Staged, E> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        // What a link leads to is replaced, not the link.
        let there = if_there(std::fs::symlink_metadata(path)).map_err(failed)?;
        let is_link = there.is_some_and(|there| there.is_symlink());
        let target = if is_link { std::fs::canonicalize(path) } else { Ok(path.to_owned()) };
        let (staged, mut file) = target.and_then(|target| Staged::create(&target)).map_err(failed)?;
        if let Some(old) = if_there(std::fs::metadata(path)).map_err(failed)? {
            // Who could not read the old one cannot read the new one.
            file.set_permissions(old.permissions()).map_err(failed)?;
        }
        write(&mut file)?;
        file.sync_all().map_err(failed)?;
        Ok(staged)
    }

    /// A new file under a unique name, which no other thread uses, nor a process that died.
    fn create(path: &Path) -> std::io::Result<(Staged, File)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let beside = path.with_file_name(format!(".{name}.{}.{number}.part", std::process::id()));
            match File::create_new(&beside) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => return Ok((Staged { path: path.to_owned(), beside }, file?)),
            }
        }
    }

    /// Lets it take the place of the old one.
    pub fn commit(self) -> Result<(), Error> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let renamed = std::fs::rename(&self.beside, &self.path)
            // The new name, too, has to reach the disk.
            .and_then(|()| File::open(parent.unwrap_or(Path::new(".")))?.sync_all());
        renamed.map_err(|source| Error::File { path: self.path.clone(), source })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // After a commit nothing has this name.
        let _ = std::fs::remove_file(&self.beside);
    }
}
