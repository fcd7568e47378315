//! The folder of a run that is about to begin. A run that fails before it has begun leaves the folder as it was.

use crate::lock::{self, Lock};
use crate::{Error, logs, settings, tensorboard};
use attentive_text::tokenizer;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a run makes in its folder before its first step, beside its lock and the files of its tokenizer.
const MADE: [&str; 7] = [
    "corpus",
    "checkpoints",
    settings::FILE_NAME,
    "config.json",
    "generation_config.json",
    logs::FILE_NAME,
    tensorboard::FILE_NAME,
];

/// A folder in which a run is to begin.
pub(super) struct Fresh {
    lock: Arc<Lock>,
    /// Folders that were made for it, the innermost first.
    folders: Vec<PathBuf>,
    /// Files and folders that the run would make, and that were not there before.
    absent: Vec<PathBuf>,
}

impl Fresh {
    /// Makes the folder, if there is none, and takes its lock.
    pub(super) fn take(folder: &Path) -> Result<Fresh, Error> {
        let folders: Vec<PathBuf> =
            folder.ancestors().take_while(|path| is_absent(path)).map(Path::to_owned).collect();
        let made = std::fs::create_dir_all(folder).map_err(Error::file(folder));
        let lock_file = Some(folder.join(lock::FILE_NAME)).filter(|path| is_absent(path));
        let lock = made.and_then(|()| Lock::take(folder)).inspect_err(|_| remove_empty(&folders))?;
        // Under the lock, no other run creates any of these.
        let names = MADE.into_iter().chain(tokenizer::FILE_NAMES);
        let absent = names.map(|name| folder.join(name)).filter(|path| is_absent(path)).chain(lock_file);
        Ok(Fresh { lock: Arc::new(lock), folders, absent: absent.collect() })
    }

    /// The lock.
    pub(super) fn lock(&self) -> Arc<Lock> {
        Arc::clone(&self.lock)
    }

    /// Removes what was made since.
    pub(super) fn leave(self) {
        for path in &self.absent {
            // A file that cannot be removed does no harm: the next run begins anyway.
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
        remove_empty(&self.folders);
    }
}

/// Removes folders that hold nothing.
fn remove_empty(folders: &[PathBuf]) {
    let _ = folders.iter().try_for_each(std::fs::remove_dir);
}

/// Whether it is certain that nothing is at a path.
fn is_absent(path: &Path) -> bool {
    let is_named = !path.as_os_str().is_empty();
    is_named && std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_there_stays_and_what_came_goes() {
        let base = std::env::temp_dir().join(format!("attentive-fresh-{}", std::process::id()));
        let run = base.join("new/run");
        let fresh = Fresh::take(&run).unwrap();
        fs::write(run.join("train.toml"), "").unwrap();
        fs::create_dir(run.join("corpus")).unwrap();
        assert!(Fresh::take(&run).is_err() && run.join("train.toml").exists());
        fresh.leave();
        assert!(!base.exists());

        // A file of a person keeps the folder, and so does a file of a run before.
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("config.json"), "old").unwrap();
        let fresh = Fresh::take(&run).unwrap();
        fs::write(run.join("notes.txt"), "").unwrap();
        fresh.leave();
        let mut left: Vec<_> = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(left, ["config.json", "notes.txt"]);
    }
}
