//! What can end a training run, each in one sentence.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why a run cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] crate::corpus::Error),
    /// A picture, or a file of boxes, cannot be read.
    #[error(transparent)]
    Image(#[from] attentive_image::Error),
    /// The model cannot be made, read or written.
    #[error(transparent)]
    Model(#[from] attentive_model::Error),
    /// The tokenizer cannot be had.
    #[error(transparent)]
    Tokenizer(#[from] attentive_text::tokenizer::Error),
    /// A translation cannot be had.
    #[error(transparent)]
    Generate(#[from] attentive_generate::Error),
    /// A task cannot answer.
    #[error(transparent)]
    Task(#[from] attentive_tasks::Error),
    /// Translations cannot be scored.
    #[error(transparent)]
    Score(#[from] attentive_text::score::Error),
    /// The ranks cannot work together.
    #[error(transparent)]
    Ranks(#[from] attentive_ranks::Error),
    /// The ranks are not about to train the same.
    #[error("rank {rank} has {what}: start all ranks with the same program, files and environment")]
    Apart {
        /// The rank that differs from rank 0.
        rank: usize,
        /// In what.
        what: String,
    },
    /// The instruction set that was asked for cannot be had.
    #[error(transparent)]
    Backend(#[from] attentive_tensor::Error),
    /// A setting makes no sense, alone or with the others.
    #[error("{name}: {problem}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A file of settings is none.
    #[error("{}: {problem}", path.display())]
    SettingsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A run cannot go on with other settings than it began with.
    #[error(
        "{name} is {now}, but the run in {} started with {then}: use the same value, or start a new run in \
         another folder",
        folder.display()
    )]
    Changed {
        /// The folder of the run.
        folder: PathBuf,
        /// The setting.
        name: String,
        /// What it was.
        then: String,
        /// What it is.
        now: String,
    },
    /// The folder has a run already.
    #[error(
        "there is a run in {} already: resume it with --resume, or choose another folder",
        folder.display()
    )]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has a model that was not made by a run.
    #[error("there is a model in {} already: choose another folder", folder.display())]
    ModelExists {
        /// The folder.
        folder: PathBuf,
    },
    /// Somebody else trains in the folder.
    #[error("{} is in use by another run{}: wait until it has ended, or choose another folder",
        folder.display(), process.map(|id| format!(" (process {id})")).unwrap_or_default())]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The other process, where it has left its number.
        process: Option<u32>,
    },
    /// A file of the run cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Something of the run cannot be saved.
    #[error(
        "cannot save step {step}: {source}; {}: {}resume with --resume",
        match saved {
            Some(saved) => format!("the checkpoint of step {saved} is intact"),
            None => "there is no checkpoint yet".to_owned(),
        },
        if source.is_full_disk() { "free some disk space, and " } else { "" }
    )]
    Save {
        /// The step that should have been saved.
        step: u64,
        /// The last one that is.
        saved: Option<u64>,
        /// What is in the way.
        source: Box<Error>,
    },
    /// A checkpoint is not what it should be.
    #[error("{}: {problem}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The loss went astray again and again.
    #[error(
        "training diverged: the loss {reason} at step {step}, after halving the learning rate {times} times: use a lower \
         learning rate, a longer warm-up or clipping"
    )]
    Diverged {
        /// Where it did last.
        step: u64,
        /// What it did.
        reason: String,
        /// How often the run went back.
        times: u32,
    },
}

impl Error {
    pub(crate) fn setting(name: &'static str, problem: impl Into<String>) -> Error {
        Error::Setting { name, problem: problem.into() }
    }

    /// Whether more disk space would help.
    fn is_full_disk(&self) -> bool {
        match self {
            Error::File { source, .. } | Error::Model(attentive_model::Error::File { source, .. }) => {
                matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }

    /// For `map_err`: a failure of the system with this file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    }
}
