//! The cache on disk, in the layout of Python's tools:
//!
//! ```text
//! models--OWNER--NAME/blobs/HASH                the contents of a file, under its hash
//!                     blobs/HASH.incomplete     what has been downloaded so far
//!                     snapshots/COMMIT/FILE     a link to the blob
//!                     refs/REVISION             the commit of a branch or a tag
//!                     .no_exist/COMMIT/FILE     the commit has no such file
//! .locks/models--OWNER--NAME/HASH.lock          held while the blob is downloaded
//! ```

use crate::choose;
use crate::digest::Etag;
use crate::error::Error;
use crate::name::{ModelName, is_commit};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The folders and files of a model in the cache.
#[derive(Debug)]
pub(crate) struct CachedModel {
    /// The whole cache.
    cache: PathBuf,
    /// The folder of the model.
    folder: PathBuf,
    locks: PathBuf,
}

impl CachedModel {
    pub fn new(cache: &Path, name: &ModelName) -> CachedModel {
        let folder = name.folder();
        CachedModel {
            cache: cache.to_owned(),
            locks: cache.join(".locks").join(&folder),
            folder: cache.join(folder),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn locks(&self) -> &Path {
        &self.locks
    }

    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    pub fn blob(&self, etag: &Etag) -> PathBuf {
        self.folder.join("blobs").join(etag.as_str())
    }

    pub fn incomplete(&self, etag: &Etag) -> PathBuf {
        self.folder.join("blobs").join(format!("{}.incomplete", etag.as_str()))
    }

    pub fn lock(&self, etag: &Etag) -> PathBuf {
        self.locks.join(format!("{}.lock", etag.as_str()))
    }

    /// The commit of a revision, if the cache knows it.
    pub fn commit_of(&self, revision: &str) -> Result<Option<String>, Error> {
        if is_commit(revision) {
            return Ok(Some(revision.to_owned()));
        }
        let path = self.folder.join("refs").join(revision);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|commit| is_commit(commit))),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory
                ) =>
            {
                Ok(None)
            }
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// Whether a file of a commit is there. A link may lead anywhere in the cache, and nowhere else.
    pub fn has(&self, commit: &str, file: &str) -> Result<bool, Error> {
        let path = self.snapshot(commit).join(file);
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() => return Ok(false),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            Err(source) => return Err(Error::File { path, source }),
        }
        let whole =
            |path: &Path| path.canonicalize().map_err(|source| Error::File { path: path.to_owned(), source });
        let target = whole(&path)?;
        // The folder of a model may itself be a link to another disk.
        if target.starts_with(whole(&self.folder)?) || target.starts_with(whole(&self.cache)?) {
            return Ok(true);
        }
        Err(Error::Leaves { path })
    }

    /// Whether a commit is known to have no such file.
    pub fn lacks(&self, commit: &str, file: &str) -> bool {
        self.absent(commit, file).exists()
    }

    /// Remembers that a commit has no such file. That this fails does no harm: the Hub will be asked again.
    pub fn remember_lack(&self, commit: &str, file: &str) {
        let path = self.absent(commit, file);
        if !path.exists() && create_parent(&path).is_ok() {
            let _ = File::create(path);
        }
    }

    fn absent(&self, commit: &str, file: &str) -> PathBuf {
        self.folder.join(".no_exist").join(commit).join(file)
    }

    /// Makes the folders that a download needs.
    pub fn prepare(&self) -> Result<(), Error> {
        for folder in [self.folder.join("blobs"), self.locks.clone()] {
            fs::create_dir_all(&folder).map_err(|source| Error::File { path: folder, source })?;
        }
        // Programs that make backups leave out a folder with this file.
        let tag = self.cache.join("CACHEDIR.TAG");
        if !tag.exists() {
            let _ = fs::write(tag, "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of models.\n");
        }
        Ok(())
    }

    /// Lets a file of a commit be a blob: a link, or where there are no links, the blob itself or a copy.
    pub fn link(&self, commit: &str, file: &str, etag: &Etag) -> Result<(), Error> {
        let path = self.snapshot(commit).join(file);
        let failed = |source| Error::File { path: path.clone(), source };
        create_parent(&path)?;
        let parent = path.parent().unwrap_or(&self.folder);
        let inside =
            parent.canonicalize().map_err(failed)?.starts_with(self.folder.canonicalize().map_err(failed)?);
        if !inside {
            return Err(Error::Leaves { path });
        }
        let up = "../".repeat(file.split('/').count() + 1);
        let target = format!("{up}blobs/{}", etag.as_str());
        let beside = beside(&path);
        let _ = fs::remove_file(&beside);
        if symlink(Path::new(&target), &beside).is_err() {
            fs::copy(self.blob(etag), &beside).map_err(failed)?;
        }
        fs::rename(&beside, &path).map_err(failed)
    }

    /// Remembers the commit of a branch or a tag.
    pub fn remember(&self, revision: &str, commit: &str) -> Result<(), Error> {
        if revision == commit || self.commit_of(revision)?.as_deref() == Some(commit) {
            return Ok(());
        }
        let path = self.folder.join("refs").join(revision);
        let failed = |source| Error::File { path: path.clone(), source };
        create_parent(&path)?;
        let beside = beside(&path);
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(commit.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&beside, &path)).map_err(failed)
    }
}

/// The name that a file has until it is whole, another one at each call in each process.
fn beside(path: &Path) -> PathBuf {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}.{call}.part", std::process::id()))
}

fn create_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(|source| Error::File { path: parent.to_owned(), source })
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, link)
}

/// How much of a model a snapshot has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// Files are missing that every model has.
    Part,
    /// A model can be read, but it may be that files are missing that it has on the Hub.
    Usable,
    /// Each file is there, or known not to be on the Hub.
    Whole,
}

impl CachedModel {
    /// How much of a model a snapshot has.
    pub fn state(&self, commit: &str) -> Result<State, Error> {
        let Some(weights) = self.weights(commit)? else { return Ok(State::Part) };
        let mut needed = vec![choose::CONFIG.to_owned(), weights.to_owned()];
        let mut is_known = true;
        if choose::is_index(weights) {
            match self.json(commit, weights)?.as_ref().and_then(choose::parts) {
                Some(parts) => needed.extend(parts),
                None => return Ok(State::Part),
            }
        }
        if self.has(commit, choose::MODULES)? {
            let modules = self.json(commit, choose::MODULES)?;
            needed.extend(modules.as_ref().and_then(choose::pooling).unwrap_or_default());
        }
        for file in needed {
            if !choose::stays(&file) || !self.has(commit, &file)? {
                return Ok(State::Part);
            }
        }
        for file in choose::BESIDE.iter().chain(&choose::TOKENIZER) {
            is_known &= self.has(commit, file)? || self.lacks(commit, file);
        }
        Ok(if is_known { State::Whole } else { State::Usable })
    }

    /// How much of a tokenizer a snapshot has.
    pub fn tokenizer_state(&self, commit: &str) -> Result<State, Error> {
        let (mut some, mut all) = (false, true);
        for file in choose::TOKENIZER {
            let is_there = self.has(commit, file)?;
            some |= is_there;
            all &= is_there || self.lacks(commit, file);
        }
        Ok(match (some, all) {
            (false, _) => State::Part,
            (true, false) => State::Usable,
            (true, true) => State::Whole,
        })
    }

    /// The file of weights that a snapshot is read from.
    pub fn weights(&self, commit: &str) -> Result<Option<&'static str>, Error> {
        for file in choose::WEIGHTS {
            if self.has(commit, file)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// A file of JSON in a snapshot; none if it is no JSON.
    pub fn json(&self, commit: &str, file: &str) -> Result<Option<serde_json::Value>, Error> {
        let path = self.snapshot(commit).join(file);
        let bytes = fs::read(&path).map_err(|source| Error::File { path, source })?;
        Ok(serde_json::from_slice(&bytes).ok())
    }
}
