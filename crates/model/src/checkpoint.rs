//! Weights on disk: safetensors, read with plain reads and written beside the old file before it is replaced.

use crate::error::Error;
use attentive_tensor::{Backend, Parameter, Shape, Tensor};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of named tensors in memory.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the numbers begin.
    start: usize,
    metadata: Metadata,
}

impl Checkpoint {
    /// Reads a `.safetensors` file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Checkpoint, Error> {
        let path = path.into();
        let bytes = std::fs::read(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        let (header, metadata) = SafeTensors::read_metadata(&bytes).map_err(|error| Error::Format {
            path: path.clone(),
            problem: format!("not a whole safetensors file ({error})"),
        })?;
        Ok(Checkpoint { path, bytes, start: header + 8, metadata })
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.metadata.offset_keys();
        names.sort();
        names
    }

    /// The numbers of a tensor as `f32`, with their shape; none if there is no such tensor.
    pub fn get(&self, name: &str) -> Result<Option<(Vec<f32>, Shape)>, Error> {
        let Some(info) = self.metadata.info(name) else { return Ok(None) };
        if info.shape.len() > 4 {
            return Err(
                self.unreadable(name, format!("has {} dimensions; at most four are read", info.shape.len()))
            );
        }
        let bytes = &self.bytes[self.start + info.data_offsets.0..self.start + info.data_offsets.1];
        let numbers = match info.dtype {
            Dtype::F32 => each(bytes, f32::from_le_bytes),
            Dtype::F64 => each(bytes, |b| f64::from_le_bytes(b) as f32),
            Dtype::BF16 => each(bytes, |b| bf16::from_le_bytes(b).to_f32()),
            Dtype::F16 => each(bytes, |b| f16::from_le_bytes(b).to_f32()),
            Dtype::I32 => each(bytes, |b| i32::from_le_bytes(b) as f32),
            other => return Err(self.unreadable(name, format!("is of type {other:?}, which is not read"))),
        };
        Ok(Some((numbers, Shape::from(&info.shape[..]))))
    }

    /// A tensor that must be there and have this shape.
    pub fn tensor(&self, backend: &dyn Backend, name: &str, expected: Shape) -> Result<Tensor, Error> {
        let path = || self.path.clone();
        let found = self.get(name)?.ok_or_else(|| Error::Missing { path: path(), name: name.to_owned() })?;
        let (numbers, found) = found;
        if found != expected {
            let (found, expected) = (found.to_string(), expected.to_string());
            return Err(Error::Shape { path: path(), name: name.to_owned(), found, expected });
        }
        Ok(backend.upload_f32(&numbers, expected))
    }

    /// A note that was written with the tensors.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.metadata.metadata().as_ref()?.get(key).map(String::as_str)
    }

    fn unreadable(&self, name: &str, problem: String) -> Error {
        Error::Format { path: self.path.clone(), problem: format!("`{name}` {problem}") }
    }
}

fn each<const N: usize>(bytes: &[u8], convert: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.chunks_exact(N).map(|chunk| convert(chunk.try_into().expect("a chunk of N bytes"))).collect()
}

/// Writes parameters, and further tensors by name, as `f32`; they take the place of `path` when they are committed.
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

/// Writes tensors by name as `f32`, one after the other, so that no second copy of them all is made; and a note, if there
/// is something to say about them.
pub fn stage_tensors(
    path: &Path,
    backend: &dyn Backend,
    tensors: &[(String, Tensor)],
    note: Option<(&str, String)>,
) -> Result<Staged, Error> {
    let mut end = 0;
    let info = |(name, tensor): &(String, Tensor)| {
        let begin = end;
        end += 4 * tensor.shape().len();
        let info =
            TensorInfo { dtype: Dtype::F32, shape: tensor.shape().to_vec(), data_offsets: (begin, end) };
        (name.clone(), info)
    };
    let infos = tensors.iter().map(info).collect();
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
        for (_, tensor) in tensors {
            file.write_all(&bytes(&backend.download_f32(tensor))).map_err(failed)?;
        }
        Ok(())
    })
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// A file that has reached the disk, whole, under another name, and waits to take the place of the old one: whatever
/// happens, one of the two is there. Dropped without [`Staged::commit`] it is gone.
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
        let (staged, mut file) = Staged::create(path).map_err(failed)?;
        write(&mut file)?;
        file.sync_all().map_err(failed)?;
        Ok(staged)
    }

    /// A new file under a name that nobody has, neither another thread nor a process that died.
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
