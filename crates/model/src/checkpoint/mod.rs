//! Weights on disk: safetensors, read with plain reads and written beside the old file before it is replaced;
//! and the files of PyTorch, which are only read.
//!
//! A matrix in int8 is a tensor of type `I8` with its rows, and another, `<name>.scale`, with an `F32` for
//! each row: a number is `row · scale`. The largest magnitude of a row is 127.

mod bytes;
mod entry;
mod folder;
mod header;
mod pickle;
mod stored;
mod torch;
mod torch_before_zip;
mod write;
mod zip;

pub(crate) use entry::Entry;
pub(crate) use folder::{CONFIG, WEIGHTS};
pub use stored::{Stored, StoredType};
pub(crate) use write::{Item, if_there, save_folder, stage_items};
pub use write::{Staged, stage, stage_tensors};

use crate::error::Error;
use attentive_tensor::{Backend, Shape, Tensor};
use half::{bf16, f16};
use safetensors::tensor::Dtype;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Named tensors in a file, or in several with an index. What is in it is known; numbers are read when they are asked for.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    files: Vec<Shard>,
    entries: BTreeMap<String, Entry>,
    notes: HashMap<String, String>,
    /// What the files call tensors that were given other names.
    named: Option<Box<dyn StoredNames>>,
}

/// What files call the tensors that a table gave other names.
pub(crate) trait StoredNames: fmt::Debug + Send + Sync {
    /// The name in the files of a tensor that we call `ours`, whether it is there or not.
    fn of(&self, ours: &str) -> String;
}

/// A file of a checkpoint, with some of the tensors.
#[derive(Debug)]
struct Shard {
    path: PathBuf,
    file: Mutex<File>,
}

impl Checkpoint {
    /// Opens a `.safetensors` file, or one that PyTorch wrote (`.bin`, `.pt`, `.pth`), of which nothing is
    /// executed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Checkpoint, Error> {
        let path = path.into();
        let failed = |source| Error::File { path: path.clone(), source };
        let mut file = File::open(&path).map_err(failed)?;
        let wrong = |problem| Error::Format { path: path.clone(), problem };
        if is_pointer(&mut file) {
            let problem =
                "this is a Git LFS pointer and not the file itself: fetch the file with `git lfs pull`";
            return Err(wrong(problem.to_owned()));
        }
        let by_torch =
            path.extension().is_some_and(|end| ["bin", "pt", "pth"].iter().any(|known| end == *known));
        let mut watched = Watched { file: &mut file, failure: None };
        let read = if by_torch {
            torch::entries(&mut watched).map(|entries| (entries, HashMap::new()))
        } else {
            let read = header::entries(&mut watched);
            read.map_err(|problem| format!("not a complete safetensors file: {problem}"))
        };
        let failure = watched.failure;
        let (entries, notes) = read.map_err(|problem| failure.map_or_else(|| wrong(problem), failed))?;
        let files = vec![Shard { path: path.clone(), file: Mutex::new(file) }];
        Ok(Checkpoint { path, files, entries, notes, named: None })
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// Whether there is such a tensor.
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The type that most of the numbers are stored in.
    pub fn stored_in(&self) -> &'static str {
        let mut counts = BTreeMap::new();
        for entry in self.entries.values() {
            let name = match entry.dtype {
                Dtype::F32 => "f32",
                Dtype::BF16 => "bf16",
                Dtype::F16 => "f16",
                Dtype::F64 => "f64",
                Dtype::I8 => "int8",
                _ => "another type",
            };
            *counts.entry(name).or_insert(0) += entry.shape.iter().product::<usize>();
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map_or("nothing", |(name, _)| name)
    }

    /// Whether there is such a tensor and it is stored in int8.
    pub fn is_int8(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.dtype == Dtype::I8)
    }

    /// The numbers of a tensor as `f32`, with their shape; none if there is no such tensor.
    pub fn get(&self, name: &str) -> Result<Option<(Vec<f32>, Shape)>, Error> {
        Ok(self.stored(name)?.map(|(stored, shape)| (stored.into_f32(), shape)))
    }

    /// The numbers of a tensor as they are stored, with their shape; none if there is no such tensor.
    pub fn stored(&self, name: &str) -> Result<Option<(Stored, Shape)>, Error> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        if entry.shape.len() > 4 {
            return Err(self.unreadable(
                name,
                format!("has {} dimensions; at most four are supported", entry.shape.len()),
            ));
        }
        let shape = Shape::from(&entry.shape[..]);
        let f32s = |numbers| self.all_finite(name, shape, numbers, f32::is_finite).map(Stored::F32);
        let stored = match entry.dtype {
            Dtype::F32 => f32s(self.each(entry, f32::from_le_bytes, f32::is_finite)?)?,
            Dtype::F64 => f32s(self.each(entry, |b| f64::from_le_bytes(b) as f32, f32::is_finite)?)?,
            Dtype::F16 => f32s(self.each(entry, |b| f16::from_le_bytes(b).to_f32(), f32::is_finite)?)?,
            Dtype::I32 => f32s(self.each(entry, |b| i32::from_le_bytes(b) as f32, f32::is_finite)?)?,
            Dtype::BF16 => {
                let numbers = self.each(entry, bf16::from_le_bytes, bf16::is_finite)?;
                Stored::Bf16(self.all_finite(name, shape, numbers, bf16::is_finite)?)
            }
            Dtype::I8 => {
                let (scales, rows) =
                    (self.scales(name, shape)?, self.each(entry, i8::from_le_bytes, |_| true)?.numbers);
                // Products count on it.
                if rows.contains(&i8::MIN) || scales.iter().any(|scale| !(scale.is_finite() && *scale >= 0.0))
                {
                    let problem =
                        "has a value of -128 or an invalid scale, which attentive never writes in int8";
                    return Err(self.unreadable(name, problem.to_owned()));
                }
                Stored::Int8 { rows, scales }
            }
            other => return Err(self.unreadable(name, format!("has type {other:?}, which is not supported"))),
        };
        Ok(Some((stored, shape)))
    }

    /// Names a tensor that is not there or has another shape.
    pub fn check(&self, name: &str, expected: Shape) -> Result<(), Error> {
        let (path, found) = (self.path.clone(), self.entries.get(name));
        let name = self.stored_name(name);
        match found.map(|entry| &entry.shape[..]) {
            None => Err(Error::Missing { path, name }),
            Some(found) if *found == expected[..] => Ok(()),
            Some(found) => {
                let (found, expected) = (format!("{found:?}"), expected.to_string());
                Err(Error::Shape { path, name, found, expected })
            }
        }
    }

    /// [`Checkpoint::stored`] of a tensor that must be there and have this shape.
    pub fn stored_as(&self, name: &str, expected: Shape) -> Result<Stored, Error> {
        self.check(name, expected)?;
        let missing = || Error::Missing { path: self.path.clone(), name: self.stored_name(name) };
        Ok(self.stored(name)?.ok_or_else(missing)?.0)
    }

    /// A tensor that must be there and have this shape, as `f32`.
    pub fn tensor(&self, backend: &dyn Backend, name: &str, expected: Shape) -> Result<Tensor, Error> {
        self.check(name, expected)?;
        let fits = |entry: &&Entry| entry.length == expected.len() * entry.dtype.bitsize() / 8;
        let entry = self.entries.get(name).filter(|entry| entry.strides.is_none()).filter(fits);
        let read = entry.map(|entry| match entry.dtype {
            Dtype::F32 => self.read_to(backend, entry, expected, f32::from_le_bytes),
            Dtype::BF16 => self.read_to(backend, entry, expected, |b| bf16::from_le_bytes(b).to_f32()),
            Dtype::F16 => self.read_to(backend, entry, expected, |b| f16::from_le_bytes(b).to_f32()),
            _ => Ok(None),
        });
        match read.transpose()?.flatten() {
            Some(tensor) => Ok(tensor),
            // Other types, and numbers that are not finite, of which the row is told.
            None => Ok(backend.upload_f32(&self.stored_as(name, expected)?.into_f32(), expected)),
        }
    }

    /// A tensor whose rows lie one after the other, read into the memory of the backend; none if a number is not finite.
    fn read_to<const N: usize>(
        &self,
        backend: &dyn Backend,
        entry: &Entry,
        shape: Shape,
        convert: impl Fn([u8; N]) -> f32,
    ) -> Result<Option<Tensor>, Error> {
        let (mut read, mut finite) = (Ok(()), true);
        let tensor = backend.written(shape, &mut |numbers| {
            let mut rest = numbers;
            read = self.pieces(entry, |piece: &[[u8; N]]| {
                let (numbers, behind) = std::mem::take(&mut rest).split_at_mut(piece.len());
                numbers.iter_mut().zip(piece).for_each(|(number, &bytes)| *number = convert(bytes));
                finite &= numbers.iter().fold(true, |all, number| all & number.is_finite());
                rest = behind;
            });
        });
        read.map(|()| finite.then_some(tensor))
    }

    /// A note that was written with the tensors.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.notes.get(key).map(String::as_str)
    }

    /// The file, or the index of several.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files that have the numbers.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|part| &*part.path)
    }

    /// What the file calls a tensor, or should call it.
    pub fn stored_name(&self, name: &str) -> String {
        self.named.as_ref().map_or_else(|| name.to_owned(), |names| names.of(name))
    }

    /// The tensors by name, to be given others.
    pub(crate) fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    /// The same tensors under other names.
    pub(crate) fn with_names(
        self,
        entries: BTreeMap<String, Entry>,
        stored: impl StoredNames + 'static,
    ) -> Checkpoint {
        Checkpoint { entries, named: Some(Box::new(stored)), ..self }
    }

    /// Whether two tensors that are there are the same numbers in the same shape.
    pub(crate) fn same(&self, a: &str, b: &str) -> Result<bool, Error> {
        // In a file of PyTorch, what is tied is often one storage with several names.
        Ok(self.entries.get(a) == self.entries.get(b) || self.get(a)? == self.get(b)?)
    }

    /// The scales of the rows of a tensor in int8.
    fn scales(&self, name: &str, shape: Shape) -> Result<Vec<f32>, Error> {
        let scales = self.stored_as(&format!("{name}{SCALE}"), [shape.rows()].into())?;
        Ok(scales.into_f32())
    }

    /// The numbers of a tensor in the order of its shape, from `N` bytes each.
    fn each<T: Copy, const N: usize>(
        &self,
        entry: &Entry,
        convert: impl Fn([u8; N]) -> T,
        is_finite: impl Fn(T) -> bool,
    ) -> Result<Numbers<T>, Error> {
        let (mut numbers, mut finite) = (Vec::with_capacity(entry.length / N), true);
        self.pieces(entry, |piece: &[[u8; N]]| {
            let before = numbers.len();
            numbers.extend(piece.iter().map(|&bytes| convert(bytes)));
            // Without a branch for each, which vectors do not have.
            finite &= numbers[before..].iter().fold(true, |all, &number| all & is_finite(number));
        })?;
        Ok(Numbers { numbers: entry.in_order(numbers), finite })
    }

    /// The bytes of a tensor, `N` for each number, a piece at a time: so they never lie in memory as a whole, and are looked through
    /// while a piece is in the cache.
    fn pieces<const N: usize>(&self, entry: &Entry, mut take: impl FnMut(&[[u8; N]])) -> Result<(), Error> {
        let mut bytes = vec![0; entry.length.min(PIECE)];
        // A thread that panicked in between has left behind a position, and that is set anew.
        let Shard { path, file } = &self.files[entry.file];
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |source| Error::File { path: path.clone(), source };
        file.seek(SeekFrom::Start(entry.start)).map_err(failed)?;
        for start in (0..entry.length).step_by(PIECE) {
            let bytes = &mut bytes[..PIECE.min(entry.length - start)];
            file.read_exact(bytes).map_err(failed)?;
            take(bytes.as_chunks().0);
        }
        Ok(())
    }

    /// The numbers of a tensor, or the row in which one is not finite.
    fn all_finite<T: Copy>(
        &self,
        name: &str,
        shape: Shape,
        read: Numbers<T>,
        is_finite: impl Fn(T) -> bool,
    ) -> Result<Vec<T>, Error> {
        // Of a tensor that is a part of what the file stores, the rest does not matter.
        let broken = |numbers: &[T]| numbers.iter().position(|&number| !is_finite(number));
        match (!read.finite).then(|| broken(&read.numbers)).flatten() {
            None => Ok(read.numbers),
            Some(at) => {
                let row = at / shape.cols();
                let problem = format!(
                    "has a number in row {row}, counted from 0, that is not finite (NaN or infinity): the weights are damaged"
                );
                Err(self.unreadable(name, problem))
            }
        }
    }

    fn unreadable(&self, name: &str, problem: String) -> Error {
        Error::Format { path: self.path.clone(), problem: format!("`{}` {problem}", self.stored_name(name)) }
    }
}

/// The numbers of a tensor, and whether all that were read on the way are finite.
struct Numbers<T> {
    numbers: Vec<T>,
    finite: bool,
}

/// What the name of a matrix in int8 is followed by in that of its scales.
pub(crate) const SCALE: &str = ".scale";

/// Bytes that are read at a time: whole numbers of every type.
const PIECE: usize = 1 << 16;

/// A file that remembers why it could not be read: that is not the fault of what is in it.
struct Watched<'a> {
    file: &'a mut File,
    failure: Option<std::io::Error>,
}

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.file.read(bytes).map_err(|error| {
            let kind = error.kind();
            // What was interrupted is read again.
            self.failure = (kind != ErrorKind::Interrupted).then_some(error);
            kind.into()
        })
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, position: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(position)
    }
}

/// Whether a file is what Git leaves in the place of a large one.
fn is_pointer(file: &mut File) -> bool {
    const START: &[u8] = b"version https://git-lfs";
    zip::read(file, 0, START.len() as u64).is_ok_and(|start| start == START)
}
