//! What the cache has, and how to free it.

use crate::cache::CachedModel;
use crate::error::Error;
use crate::lock::Lock;
use crate::name::{ModelName, is_commit};
use crate::pull::Hub;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A model in the cache.
#[derive(Debug, Clone)]
pub struct Cached {
    /// Its name.
    pub name: String,
    /// Its commits that are there, at least in part.
    pub snapshots: Vec<Snapshot>,
    /// The bytes that it takes on the disk, of all commits and of downloads that have not ended.
    pub bytes: u64,
}

/// A commit of a model in the cache.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The commit.
    pub commit: String,
    /// The branches and tags that lead to it.
    pub revisions: Vec<String>,
    /// Its folder.
    pub folder: PathBuf,
    /// The bytes of its files.
    pub bytes: u64,
    /// When one of its files was last read, where the system tells.
    pub used: Option<SystemTime>,
}

/// What a removal has freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freed {
    /// The bytes on the disk.
    pub bytes: u64,
}

impl Hub {
    /// The models in the cache, by name. A cache that does not exist is empty.
    pub fn models(&self) -> Result<Vec<Cached>, Error> {
        self.names()?.iter().map(|name| self.cached(name)).collect()
    }

    pub(crate) fn names(&self) -> Result<Vec<ModelName>, Error> {
        let folders = entries(&self.settings.cache)?;
        let mut names: Vec<ModelName> =
            folders.iter().filter_map(|name| ModelName::of_folder(name.to_str()?)).collect();
        names.sort_by_key(|name| name.id().to_lowercase());
        Ok(names)
    }

    fn cached(&self, name: &ModelName) -> Result<Cached, Error> {
        let cached = CachedModel::new(&self.settings.cache, name);
        let refs = refs(&cached)?;
        let mut snapshots = Vec::new();
        for commit in commits(&cached)? {
            let leads = |(_, other): &&(String, String)| *other == commit;
            let revisions = refs.iter().filter(leads).map(|(name, _)| name.clone()).collect();
            let folder = cached.snapshot(&commit);
            let (mut bytes, mut used) = (0, None);
            for file in files(&folder)? {
                // A link whose blob is gone has no size.
                let Ok(found) = fs::metadata(file) else { continue };
                bytes += found.len();
                used = used.max(found.accessed().ok());
            }
            snapshots.push(Snapshot { commit, revisions, folder, bytes, used });
        }
        Ok(Cached { name: name.id().to_owned(), snapshots, bytes: size(cached.folder())? })
    }

    /// Removes a model from the cache; of a name with a revision, that commit alone and what no other commit needs.
    pub fn remove(&self, name: &ModelName) -> Result<Freed, Error> {
        let cached = CachedModel::new(&self.settings.cache, name);
        let missing = || {
            let cache = self.settings.cache.clone();
            Error::NotCached { name: name.to_string(), cache, near: self.near(name) }
        };
        let folder = cached.folder();
        match fs::symlink_metadata(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing()),
            Err(source) => return Err(Error::File { path: folder.to_owned(), source }),
            Ok(found) if !found.is_dir() => return Err(Error::Leaves { path: folder.to_owned() }),
            Ok(_) => {}
        }
        for lock in entries(cached.locks())? {
            if Lock::is_taken(&cached.locks().join(lock))? {
                return Err(Error::Busy { name: name.id().to_owned() });
            }
        }
        let before = size(folder)?;
        let all = commits(&cached)?;
        match name.named_revision() {
            None => remove_all(&cached)?,
            Some(revision) => {
                let commit =
                    cached.commit_of(revision)?.filter(|commit| all.contains(commit)).ok_or_else(missing)?;
                if all.len() == 1 { remove_all(&cached)? } else { remove_one(&cached, &commit)? }
            }
        }
        let after = if folder.exists() { size(folder)? } else { 0 };
        Ok(Freed { bytes: before.saturating_sub(after) })
    }
}

/// Links go before what they lead to, so that what is left of a removal that breaks off is never taken for a model.
fn remove_all(cached: &CachedModel) -> Result<(), Error> {
    for part in ["refs", "snapshots"] {
        remove_folder(&cached.folder().join(part))?;
    }
    remove_folder(cached.folder())?;
    remove_folder(cached.locks())
}

/// Removes a commit, the revisions that lead to it, and the blobs that no other commit needs.
fn remove_one(cached: &CachedModel, commit: &str) -> Result<(), Error> {
    for (revision, _) in refs(cached)?.into_iter().filter(|(_, other)| other == commit) {
        let path = cached.folder().join("refs").join(revision);
        fs::remove_file(&path).map_err(|source| Error::File { path, source })?;
    }
    remove_folder(&cached.snapshot(commit))?;
    remove_folder(&cached.folder().join(".no_exist").join(commit))?;
    let mut needed: HashSet<OsString> = HashSet::new();
    for file in files(&cached.folder().join("snapshots"))? {
        needed.extend(fs::read_link(file).ok().and_then(|target| Some(target.file_name()?.to_owned())));
    }
    let blobs = cached.folder().join("blobs");
    for blob in entries(&blobs)?.into_iter().filter(|blob| !needed.contains(blob)) {
        let path = blobs.join(blob);
        fs::remove_file(&path).map_err(|source| Error::File { path, source })?;
    }
    Ok(())
}

fn remove_folder(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|source| Error::File { path: path.to_owned(), source }),
    }
}

/// The commits that have a folder.
fn commits(cached: &CachedModel) -> Result<Vec<String>, Error> {
    let names = entries(&cached.folder().join("snapshots"))?;
    let mut commits: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    commits.retain(|commit| is_commit(commit));
    commits.sort();
    Ok(commits)
}

/// Branches and tags with their commits.
fn refs(cached: &CachedModel) -> Result<Vec<(String, String)>, Error> {
    let root = cached.folder().join("refs");
    let mut refs = Vec::new();
    for file in files(&root)? {
        let name = file.strip_prefix(&root).ok().and_then(Path::to_str).map(|name| name.replace('\\', "/"));
        if let (Some(name), Ok(commit)) = (name, fs::read_to_string(&file)) {
            refs.push((name, commit.trim().to_owned()));
        }
    }
    refs.sort();
    Ok(refs)
}

/// The names in a folder; none if there is no such folder.
fn entries(folder: &Path) -> Result<Vec<OsString>, Error> {
    let failed = |source| Error::File { path: folder.to_owned(), source };
    match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        entries => entries.map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.file_name())).collect(),
    }
}

/// The files in a folder and in those below. Links to folders are not followed.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for name in entries(folder)? {
        let path = folder.join(name);
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_dir() => found.extend(files(&path)?),
            _ => found.push(path),
        }
    }
    Ok(found)
}

/// The bytes of all files in a folder, without what links lead to.
fn size(folder: &Path) -> Result<u64, Error> {
    let sizes = files(folder)?.into_iter().filter_map(|file| fs::symlink_metadata(file).ok());
    Ok(sizes.filter(fs::Metadata::is_file).map(|file| file.len()).sum())
}
