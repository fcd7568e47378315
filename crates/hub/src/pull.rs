//! A model by its name: from the cache, or file by file from the Hub.

use crate::cache::{CachedModel, State};
use crate::choose;
use crate::client::Client;
use crate::digest::Etag;
use crate::download::Download;
use crate::error::{Error, shown};
use crate::name::ModelName;
use crate::near::near;
use crate::protocol::{Listing, Protocol, Remote};
use crate::retry::Retry;
use crate::settings::Settings;
use crate::watch::{Plan, Watch};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many files are asked for at a time.
const AT_A_TIME: usize = 4;

/// The Hub and the cache.
pub struct Hub {
    pub(crate) settings: Settings,
    client: Client,
}

/// What of a model is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// All that it is read from.
    Model,
    /// Its tokenizer alone.
    Tokenizer,
}

/// A model that is in the cache now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Its folder.
    pub folder: PathBuf,
    /// Its commit.
    pub commit: String,
    /// How many files it is read from.
    pub files: usize,
    /// How many bytes had to be downloaded.
    pub bytes: u64,
}

impl Hub {
    /// The Hub and the cache that the environment names.
    pub fn from_env() -> Result<Hub, Error> {
        Ok(Hub::new(Settings::from_env()?))
    }

    /// The Hub and the cache of these settings.
    pub fn new(settings: Settings) -> Hub {
        Hub { client: Client::new(&settings), settings }
    }

    /// The folder of a model: from the cache if the model is there, even if the Hub has a newer one, or else downloaded.
    ///
    /// `check` is given a folder with the `config.json` of a model before anything large is downloaded, and can refuse it.
    pub fn find<E: From<Error>>(
        &self,
        name: &ModelName,
        need: Need,
        check: &dyn Fn(&Path) -> Result<(), E>,
        watch: &dyn Watch,
    ) -> Result<PathBuf, E> {
        let cached = CachedModel::new(&self.settings.cache, name);
        let commit = cached.commit_of(name.revision())?;
        let state = |commit: &str| match need {
            Need::Model => cached.state(commit),
            Need::Tokenizer => Ok(cached.tokenizer_state(commit)?.max(cached.state(commit)?)),
        };
        let found =
            commit.map(|commit| Ok::<_, Error>((cached.snapshot(&commit), state(&commit)?))).transpose()?;
        match found.filter(|(_, state)| *state != State::Part) {
            Some((folder, State::Whole)) => Ok(folder),
            Some((folder, _)) if self.settings.is_offline => Ok(folder),
            Some((folder, _)) => match self.pull(name, need, &|_| Ok(()), watch) {
                Ok(pulled) => Ok(pulled.folder),
                Err(error) if Error::is_outage(&error) => {
                    watch.warns(&format!("{error}; using what the cache has of `{name}`"));
                    Ok(folder)
                }
                Err(error) => Err(error.into()),
            },
            None => Ok(self.pull(name, need, check, watch)?.folder),
        }
    }

    /// Downloads the files of the current revision that the cache lacks.
    ///
    /// `check` is given a folder with the `config.json` of a model before anything large is downloaded, and can refuse it.
    pub fn pull<E: From<Error>>(
        &self,
        name: &ModelName,
        need: Need,
        check: &dyn Fn(&Path) -> Result<(), E>,
        watch: &dyn Watch,
    ) -> Result<Pulled, E> {
        if self.settings.is_offline {
            let cache = self.settings.cache.clone();
            return Err(Error::Offline { name: name.to_string(), cache, near: self.near(name) }.into());
        }
        let protocol = Protocol { client: &self.client, name };
        let stop = AtomicBool::new(false);
        let retry = Retry { pause: self.settings.pause, watch, stop: &stop };
        let listing = retry.run(|| protocol.list()).map_err(|error| self.with_near(error, name))?;
        let cached = CachedModel::new(&self.settings.cache, name);
        let pull = Pull { protocol, cached, listing, retry, host: self.client.host() };
        let pulled = match need {
            Need::Model => pull.model(check)?,
            Need::Tokenizer => pull.tokenizer()?,
        };
        Ok(pulled)
    }

    /// Names in the cache that are near to one that was not found.
    pub(crate) fn near(&self, name: &ModelName) -> Vec<String> {
        let names = self.names().unwrap_or_default();
        near(name.id(), names.iter().map(ModelName::id).filter(|other| *other != name.id()))
    }

    fn with_near(&self, error: Error, name: &ModelName) -> Error {
        match error {
            Error::Missing { host, name: text, or_login, .. } => {
                Error::Missing { host, name: text, or_login, near: self.near(name) }
            }
            other => other,
        }
    }
}

/// A blob that is not there, and the files that it is.
struct Wanted {
    remote: Remote,
    files: Vec<String>,
}

/// A model on its way.
struct Pull<'a> {
    protocol: Protocol<'a>,
    cached: CachedModel,
    listing: Listing,
    retry: Retry<'a>,
    host: String,
}

impl Pull<'_> {
    /// All that a model is read from. What names further files comes first.
    fn model<E: From<Error>>(&self, check: &dyn Fn(&Path) -> Result<(), E>) -> Result<Pulled, E> {
        let name = self.protocol.name.id();
        let listed = |file: &&str| self.listing.files.contains(*file);
        if !listed(&choose::CONFIG) {
            let problem = "has no config.json: it is no model that can be read here".to_owned();
            return Err(Error::Unfit { name: name.to_owned(), problem }.into());
        }
        let commit = &self.listing.commit;
        let mut wanted = BTreeSet::from([choose::CONFIG.to_owned()]);
        let mut bytes = self.fetch(&wanted)?;
        check(&self.cached.snapshot(commit))?;
        let weights = choose::weights(&self.listing.files, name)?;
        let beside = choose::BESIDE.iter().chain(&choose::TOKENIZER).copied();
        wanted.extend(beside.filter(listed).map(str::to_owned));
        let mut large = BTreeSet::from([weights.to_owned()]);
        if choose::is_index(weights) {
            wanted.extend(large);
            bytes += self.fetch(&wanted)?;
            large = self.named_in(weights, choose::parts)?;
        } else if listed(&choose::MODULES) {
            bytes += self.fetch(&wanted)?;
        }
        if listed(&choose::MODULES) {
            wanted.extend(self.named_in(choose::MODULES, choose::pooling)?);
        }
        wanted.extend(large);
        bytes += self.fetch(&wanted)?;
        self.remember_lacks(&choose::BESIDE);
        self.remember_lacks(&choose::TOKENIZER);
        Ok(self.done(&wanted, bytes)?)
    }

    fn tokenizer(&self) -> Result<Pulled, Error> {
        let listed = choose::TOKENIZER.iter().filter(|file| self.listing.files.contains(**file));
        let wanted: BTreeSet<String> = listed.map(|file| (*file).to_owned()).collect();
        if wanted.is_empty() {
            let problem = "has no tokenizer".to_owned();
            return Err(Error::Unfit { name: self.protocol.name.id().to_owned(), problem });
        }
        let bytes = self.fetch(&wanted)?;
        self.remember_lacks(&choose::TOKENIZER);
        self.done(&wanted, bytes)
    }

    /// The revision is remembered at last, so that an update that breaks off leaves the model of before.
    fn done(&self, wanted: &BTreeSet<String>, bytes: u64) -> Result<Pulled, Error> {
        let commit = self.listing.commit.clone();
        self.cached.remember(self.protocol.name.revision(), &commit)?;
        Ok(Pulled { folder: self.cached.snapshot(&commit), commit, files: wanted.len(), bytes })
    }

    fn remember_lacks(&self, files: &[&str]) {
        for file in files.iter().filter(|file| !self.listing.files.contains(**file)) {
            self.cached.remember_lack(&self.listing.commit, file);
        }
    }

    /// The files that a file names. They must be files of this model.
    fn named_in(
        &self,
        file: &str,
        names: impl Fn(&serde_json::Value) -> Option<BTreeSet<String>>,
    ) -> Result<BTreeSet<String>, Error> {
        let unfit = |problem: String| Error::Unfit { name: self.protocol.name.id().to_owned(), problem };
        let named = self.cached.json(&self.listing.commit, file)?.as_ref().and_then(names);
        let named = named.ok_or_else(|| unfit(format!("has a {file} that cannot be read")))?;
        match named.iter().find(|name| !choose::stays(name) || !self.listing.files.contains(*name)) {
            Some(other) => {
                Err(unfit(format!("has a {file} that names `{}`, which is no file of it", shown(other))))
            }
            None => Ok(named),
        }
    }

    /// Downloads those of these files that are not there, and returns how many bytes these have.
    fn fetch(&self, files: &BTreeSet<String>) -> Result<u64, Error> {
        let commit = &self.listing.commit;
        let mut missing = Vec::new();
        for file in files {
            if !self.cached.has(commit, file)? {
                missing.push(file);
            }
        }
        if missing.is_empty() {
            return Ok(0);
        }
        self.cached.prepare()?;
        let described = self.each(&missing, |file| {
            let remote = self.retry.run(|| self.protocol.describe(commit, file))?;
            Ok(((*file).clone(), remote))
        })?;
        let mut missing: HashMap<Etag, Wanted> = HashMap::new();
        for (file, remote) in described {
            if self.cached.blob(&remote.etag).exists() {
                self.cached.link(commit, &file, &remote.etag)?;
                continue;
            }
            // Files with the same contents are one blob.
            let wanted = missing.entry(remote.etag.clone());
            wanted.or_insert_with(|| Wanted { remote, files: Vec::new() }).files.push(file);
        }
        if missing.is_empty() {
            return Ok(0);
        }
        let mut wanted: Vec<Wanted> = missing.into_values().collect();
        // The largest takes longest, so that it begins first.
        wanted.sort_by_key(|wanted| std::cmp::Reverse(wanted.remote.size));
        let bytes = wanted.iter().map(|wanted| wanted.remote.size).sum();
        let (name, host) = (self.protocol.name, self.host.as_str());
        self.retry.watch.begins(&Plan { name, host, files: wanted.len(), bytes });
        self.each(&wanted, |wanted| self.download(wanted))?;
        Ok(bytes)
    }

    fn download(&self, Wanted { remote, files }: &Wanted) -> Result<(), Error> {
        let Pull { protocol, cached, listing, retry, .. } = self;
        Download { protocol, cached, commit: &listing.commit, file: &files[0], remote }.run(retry)?;
        files.iter().try_for_each(|file| cached.link(&listing.commit, file, &remote.etag))
    }

    /// Does something for each, several at a time. The first error stops all.
    fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        act: impl Fn(&T) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        let next = Mutex::new(items.iter());
        let (results, first) = (Mutex::new(Vec::new()), Mutex::new(None));
        let work = || {
            while !self.retry.stop.load(Ordering::Relaxed) {
                let Some(item) = next.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
                match act(item) {
                    Ok(result) => results.lock().unwrap_or_else(PoisonError::into_inner).push(result),
                    Err(error) => {
                        // In this order: what others return when they are stopped is never the first error.
                        first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        self.retry.stop.store(true, Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..AT_A_TIME.min(items.len()) {
                scope.spawn(work);
            }
            work();
        });
        match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}
