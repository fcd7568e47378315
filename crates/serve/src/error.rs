//! Why a server does not run.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not run, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The system refuses threads, sockets or signals.
    #[error("the server cannot start: {0}")]
    System(#[from] std::io::Error),
    /// A model cannot be read.
    #[error("model `{name}`: {source}")]
    Model {
        /// The name that it was to be served under.
        name: String,
        /// Why not.
        source: Box<attentive_tasks::Error>,
    },
    /// The model that comes with the program has to be a folder for a moment.
    #[error("cannot unpack the built-in model into {}: {source}", folder.display())]
    Unpack {
        /// The folder for such things.
        folder: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A setting makes no sense: `models` of one name or none at all, `origins` or `keys` that no request can have.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// The thread that computes has died.
    #[error("the worker thread has ended unexpectedly")]
    Worker,
}

impl Error {
    pub(crate) fn setting(setting: &'static str, problem: impl Into<String>) -> Error {
        Error::Setting { setting, problem: problem.into() }
    }
}
