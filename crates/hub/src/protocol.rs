//! What the Hub is asked: which files a model has, and what each of them is.
//!
//! `GET api/models/NAME/revision/REVISION` lists the files and names the commit. `HEAD NAME/resolve/COMMIT/FILE` tells the hash and the
//! size of a file, `GET` gives it, often from another host.

use crate::address::escaped;
use crate::client::{Client, Method, Reply};
use crate::digest::Etag;
use crate::error::{Error, shown};
use crate::name::{ModelName, is_commit};
use crate::retry::Failure;
use crate::wait::wait;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most bytes of a list of files.
const LONGEST_LIST: u64 = 1 << 26;

/// A model at one commit.
#[derive(Debug)]
pub(crate) struct Listing {
    pub commit: String,
    /// The paths of its files.
    pub files: BTreeSet<String>,
}

/// What a file is.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub etag: Etag,
    pub size: u64,
}

#[derive(Deserialize)]
struct Info {
    sha: Option<String>,
    siblings: Option<Vec<Sibling>>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

/// The Hub, asked for one model.
pub(crate) struct Protocol<'a> {
    pub client: &'a Client,
    pub name: &'a ModelName,
}

impl Protocol<'_> {
    /// The files of the revision that is meant.
    pub fn list(&self) -> Result<Listing, Failure> {
        let revision = escaped(self.name.revision(), false);
        let path = format!("api/models/{}/revision/{revision}", self.name.id());
        let reply = self.client.send(Method::List, self.client.address(&path)?, None)?;
        let reply = self.accepted(reply)?;
        let strange = |problem: String| Error::Answer { host: self.client.host(), problem };
        let bytes = reply.bytes(LONGEST_LIST)?;
        let info: Info = serde_json::from_slice(&bytes)
            .map_err(|error| strange(format!("what is no description of a model: {error}")))?;
        let commit = info.sha.filter(|sha| is_commit(sha));
        let commit =
            commit.ok_or_else(|| strange("a description of a model without its commit".to_owned()))?;
        let siblings = info.siblings;
        let siblings =
            siblings.ok_or_else(|| strange("a description of a model without its files".to_owned()))?;
        Ok(Listing { commit, files: siblings.into_iter().map(|file| file.rfilename).collect() })
    }

    /// The hash and the size of a file.
    pub fn describe(&self, commit: &str, file: &str) -> Result<Remote, Failure> {
        let reply = self.accepted(self.ask(Method::Head, commit, file, None)?)?;
        let strange = |what: &str| Error::Answer {
            host: reply.host.clone(),
            problem: format!("a description of `{}` without {what}", shown(file)),
        };
        let etag = reply.header("x-linked-etag").or_else(|| reply.header("etag")).and_then(Etag::parse);
        let size = reply.header("x-linked-size").or_else(|| reply.header("content-length"));
        let size = size.and_then(|size| size.trim().parse().ok());
        Ok(Remote {
            etag: etag.ok_or_else(|| strange("its hash (ETag)"))?,
            size: size.ok_or_else(|| strange("its size"))?,
        })
    }

    /// The contents of a file, from a byte on.
    pub fn fetch(&self, commit: &str, file: &str, from: Option<u64>) -> Result<Reply, Failure> {
        let reply = self.ask(Method::Get, commit, file, from)?;
        if reply.status == 416 { Ok(reply) } else { self.accepted(reply) }
    }

    fn ask(&self, method: Method, commit: &str, file: &str, from: Option<u64>) -> Result<Reply, Failure> {
        let path = format!("{}/resolve/{commit}/{}", self.name.id(), escaped(file, true));
        self.client.send(method, self.client.address(&path)?, from)
    }

    /// An answer, unless it is a refusal. A redirect is an answer to a question for headers.
    fn accepted(&self, reply: Reply) -> Result<Reply, Failure> {
        let (host, name) = (reply.host.clone(), self.name.id().to_owned());
        let code = reply.header("x-error-code").unwrap_or_default();
        let final_error = match reply.status {
            200..=399 => return Ok(reply),
            401 | 403 if code == "GatedRepo" => self.forbidden(host),
            401 if self.client.has_token() => {
                let or_login = ", or your token (HF_TOKEN, `hf auth login`) does not let you see it";
                Error::Missing { host, name, or_login, near: Vec::new() }
            }
            401 => {
                let or_login = ", or you have to log in to see it (`hf auth login`, or a token in HF_TOKEN)";
                Error::Missing { host, name, or_login, near: Vec::new() }
            }
            403 => self.forbidden(host),
            404 if code == "RevisionNotFound" => {
                Error::Revision { host, name, revision: self.name.revision().to_owned() }
            }
            404 => Error::Missing { host, name, or_login: "", near: Vec::new() },
            429 => {
                let wait = wait_of(&reply);
                let when = wait.map_or("later".to_owned(), |wait| format!("in {} s", wait.as_secs()));
                return Err(Failure::Again {
                    error: Error::Limit { host, when }.into(),
                    wait,
                    progress: false,
                });
            }
            408 | 500.. => {
                let error = Error::Answer { host, problem: format!("status {}", reply.status) };
                return Err(Failure::Again { error: error.into(), wait: wait_of(&reply), progress: false });
            }
            status => Error::Answer { host, problem: format!("status {status}") },
        };
        Err(final_error.into())
    }

    fn forbidden(&self, host: String) -> Error {
        let name = self.name.id().to_owned();
        let page = self.client.address(&name).map_or_else(|_| name.clone(), |page| page.to_string());
        Error::Forbidden { host, name, page }
    }
}

/// How long a server asks to wait.
fn wait_of(reply: &Reply) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    wait(reply.header("retry-after")?, reply.header("date"), now)
}
