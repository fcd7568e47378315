//! What can go wrong, each in one sentence.

use std::path::PathBuf;

/// Why a model cannot be had by its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that cannot be the name of a model.
    #[error("`{name}` is no name of a model on the Hub: {problem}", name = shown(name))]
    Name {
        /// The text.
        name: String,
        /// What it should be.
        problem: &'static str,
    },
    /// A variable of the environment makes no sense.
    #[error("{variable} {problem}")]
    Setting {
        /// Its name.
        variable: &'static str,
        /// What is wrong, without its value, which may be secret.
        problem: String,
    },
    /// The Hub does not say whether there is such a model, or says that there is none.
    #[error("{host} has no model `{name}`{or_login}{near}", near = suggestion(near))]
    Missing {
        /// The host that was asked.
        host: String,
        /// The model.
        name: String,
        /// What else can be the reason, if there is one.
        or_login: &'static str,
        /// Models of the cache with similar names.
        near: Vec<String>,
    },
    /// The model is there, and the person may not have it.
    #[error(
        "{host} does not give out `{name}`: accept its conditions at {page}, and log in (`hf auth login`, or a token in HF_TOKEN)"
    )]
    Forbidden {
        /// The host that was asked.
        host: String,
        /// The model.
        name: String,
        /// Its page.
        page: String,
    },
    /// The model is there, the revision is not.
    #[error("`{name}` has no revision `{revision}` at {host}")]
    Revision {
        /// The host that was asked.
        host: String,
        /// The model.
        name: String,
        /// What was asked for.
        revision: String,
    },
    /// Too many requests.
    #[error(
        "{host} has had too many requests, and takes more {when}; with a token (HF_TOKEN) it takes more of them"
    )]
    Limit {
        /// The host that was asked.
        host: String,
        /// When it takes more.
        when: String,
    },
    /// An answer that is none.
    #[error("{host} answers with {problem}")]
    Answer {
        /// The host that was asked.
        host: String,
        /// What came.
        problem: String,
    },
    /// The server cannot be reached, or breaks off.
    #[error("cannot download from {host}: {problem}")]
    Connection {
        /// The host that was asked.
        host: String,
        /// What happened.
        problem: String,
    },
    /// Who answers cannot prove to be the host.
    #[error(
        "the certificate of {host} is not trusted: {problem} (SSL_CERT_FILE names the certificates to trust)"
    )]
    Certificate {
        /// The host that was asked.
        host: String,
        /// What is wrong.
        problem: String,
    },
    /// A file is not what the Hub says it is.
    #[error(
        "`{file}` of `{name}` was damaged on its way: its {kind} is {found}, and should be {expected}; it was thrown away"
    )]
    Damaged {
        /// The model.
        name: String,
        /// The file.
        file: String,
        /// The kind of the hash.
        kind: &'static str,
        /// The hash that the Hub names.
        expected: String,
        /// The hash of what came.
        found: String,
    },
    /// A model that has not what is needed, or not as it should be.
    #[error("`{name}` {problem}")]
    Unfit {
        /// The model.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// Nothing may be asked, and the cache does not have it.
    #[error("`{name}` is not in the cache ({cache}), and HF_HUB_OFFLINE forbids to download it{near}", cache = cache.display(), near = suggestion(near))]
    Offline {
        /// The model.
        name: String,
        /// The folder of the cache.
        cache: PathBuf,
        /// Models of the cache with similar names.
        near: Vec<String>,
    },
    /// A model that is not in the cache.
    #[error("`{name}` is not in the cache ({cache}){near}", cache = cache.display(), near = suggestion(near))]
    NotCached {
        /// The model.
        name: String,
        /// The folder of the cache.
        cache: PathBuf,
        /// Models of the cache with similar names.
        near: Vec<String>,
    },
    /// A model that a process is just downloading.
    #[error("`{name}` is being downloaded by another process")]
    Busy {
        /// The model.
        name: String,
    },
    /// A link in the cache that leads out of it.
    #[error("{}: leads out of the cache", path.display())]
    Leaves {
        /// The link.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another thread has failed; its error is the one that is reported.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// Whether the reason may be that something else than a name was meant.
    pub fn is_about_name(&self) -> bool {
        matches!(self, Error::Missing { .. } | Error::Offline { .. } | Error::Connection { .. })
    }

    /// Whether the server could not be reached or does not work: another time it may.
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Error::Connection { .. } | Error::Answer { .. } | Error::Limit { .. } | Error::Certificate { .. }
        )
    }
}

fn suggestion(near: &[String]) -> String {
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { String::new() } else { format!("; the cache has {}", quoted.join(" and ")) }
}

/// A text that others wrote, without what would change the terminal, and not too long.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(120).map(|c| if c.is_control() { '?' } else { c }).collect()
}
