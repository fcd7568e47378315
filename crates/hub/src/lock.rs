//! Locks between processes, those of Python's tools: one file for each blob, under `.locks` of the cache.
//!
//! The system gives a lock back when its process ends, however it ends.

use crate::error::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Held as long as a file is downloaded.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Closing it gives the lock back.
    _file: File,
}

impl Lock {
    /// Takes a lock. If another process has it, calls `waits` once and waits for that process.
    pub fn take(path: &Path, waits: impl FnOnce()) -> Result<Lock, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let mut waits = Some(waits);
        loop {
            let file = open(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    if let Some(waits) = waits.take() {
                        waits();
                    }
                    file.lock().map_err(failed)?;
                }
                // Some network file systems have no locks. The hash still tells whether a file is whole.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            if is_at(&file, path) {
                return Ok(Lock { _file: file });
            }
        }
    }

    /// Whether a process has a lock now.
    pub fn is_taken(path: &Path) -> Result<bool, Error> {
        let file = open(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        Ok(matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Whether an open file is still the one of its name: a process that is done with a lock may remove its file.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (Ok(own), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
        (own.dev(), own.ino()) == (there.dev(), there.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}
