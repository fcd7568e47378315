//! A folder for one target, which goes with it.

use std::path::{Path, PathBuf};

/// A folder that is removed when it is dropped.
pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("attentive-fuzz-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        Scratch { folder }
    }

    /// With the files of a folder of the repository.
    pub(crate) fn copy_of(name: &str, folder: &str) -> Scratch {
        let scratch = Scratch::new(name);
        let files = std::fs::read_dir(crate::repository(folder)).expect("a folder of the repository");
        for file in files.map(|file| file.expect("a folder of the repository").path()) {
            std::fs::copy(&file, scratch.path(&file.file_name().expect("a file").to_string_lossy()))
                .expect("room");
        }
        scratch
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        // Some file systems write a file to the disk when it takes the place of another one in this way: not worth the time.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).expect("room for a small file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
