//! Files, whole: read at once, written beside the old one before they take its place.

use super::error::Error;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// What is at a path, or none if nothing is. That the system cannot tell is a failure: what is taken for absent would be left out,
/// or replaced.
pub(crate) fn metadata(path: &Path) -> Result<Option<Metadata>, Error> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(|source| Error::File { path: path.to_owned(), source }),
    }
}

pub(crate) fn is_file(path: &Path) -> Result<bool, Error> {
    Ok(metadata(path)?.is_some_and(|found| found.is_file()))
}

/// Reads a text whose lines are all UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(read(path)?).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        Error::Utf8 { path: path.to_owned(), line }
    })
}

pub(crate) fn read_json(path: &Path) -> Result<serde_json::Value, Error> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| Error::format(path, format!("not JSON: {error}")))
}

/// Writes files that belong together. None takes its name before all of them are on the disk, so that a full
/// disk leaves the old ones as they were.
pub(crate) fn write_all(folder: &Path, files: &[(&'static str, Vec<u8>)]) -> Result<(), Error> {
    let mut staged = Vec::with_capacity(files.len());
    for (name, contents) in files {
        staged.push(Staged::new(folder.join(name), contents)?);
    }
    staged.into_iter().try_for_each(Staged::commit)
}

/// A file under another name, which goes if it is not committed.
struct Staged {
    path: PathBuf,
    beside: PathBuf,
}

impl Staged {
    fn new(path: PathBuf, contents: &[u8]) -> Result<Staged, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let staged = Staged { path, beside };
        File::create(&staged.beside)
            .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
            .map_err(|source| staged.failed(source))?;
        Ok(staged)
    }

    fn commit(self) -> Result<(), Error> {
        std::fs::rename(&self.beside, &self.path).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::File { path: self.path.clone(), source }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // After a commit it is not there any more; whatever else is wrong, no half of a file is left behind.
        let _ = std::fs::remove_file(&self.beside);
    }
}

/// Makes a folder and those above it.
pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|source| Error::File { path: path.to_owned(), source })
}
