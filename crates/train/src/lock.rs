//! A lock that keeps two runs out of one folder.
//!
//! The system gives it back when the process ends, however it ends, so that nothing has to be cleaned up
//! after `kill -9`.

use crate::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

/// The name of the file in a run's folder.
pub(crate) const FILE_NAME: &str = "train.lock";

/// Held as long as a run lasts.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Closing it gives the lock back.
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder, or says who has it.
    pub(crate) fn take(folder: &Path) -> Result<Lock, Error> {
        let path = folder.join(FILE_NAME);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = options.map_err(Error::file(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Whoever has it may not have written its number yet.
                let _ = file.read_to_string(&mut text);
                return Err(Error::Locked { folder: folder.to_owned(), process: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(source)) => return Err(Error::File { path, source }),
        }
        // The number is only for messages, so a full disk is no error here.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }
}
