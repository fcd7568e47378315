//! What can be wrong with a corpus, each in one sentence.

use super::{Batching, CorpusSize, LeftOut};
use std::path::PathBuf;

/// Why a corpus cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A folder where a file should be.
    #[error("{} is a directory: name the files in it", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// Sources and targets come in pairs of files.
    #[error(
        "there are {sources} source files and {targets} target files: each source file needs a target file, in the same order"
    )]
    FileCounts {
        /// How many files have sources.
        sources: usize,
        /// How many files have targets.
        targets: usize,
    },
    /// A text is no translation of itself.
    #[error("{} is given as source and as target: give two different files", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// Files that do not belong together.
    #[error(
        "{} has {source_lines} lines and {} has {target_lines}: \
         line n of one file must be the translation of line n of the other",
        source_path.display(), target_path.display()
    )]
    LineCounts {
        /// The file with the sources.
        source_path: PathBuf,
        /// Its number of lines.
        source_lines: usize,
        /// The file with the targets.
        target_path: PathBuf,
        /// Its number of lines.
        target_lines: usize,
    },
    /// A file that is no text.
    #[error("{}: line {line} is not UTF-8: {}", path.display(), attentive_text::encoding::advice(path))]
    Encoding {
        /// The file.
        path: PathBuf,
        /// The first line that is broken, counted from one.
        line: usize,
    },
    /// A line that does not hold a pair.
    #[error("{}: line {line} {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The first such line, counted from one.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A picture cannot be read.
    #[error(transparent)]
    Picture(#[from] attentive_image::Error),
    /// Files with pictures that cannot be used.
    #[error("{} {problem}", path.display())]
    Pictures {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of questions that is none, or an answer that is not in its text.
    #[error(transparent)]
    Questions(#[from] attentive_text::squad::Error),
    /// A compressed file that cannot be unpacked to its end.
    #[error("{}: the file is incomplete or damaged: download or compress it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Nothing to learn from.
    #[error("the corpus is empty: there are no lines in {}", list(paths))]
    Empty {
        /// All its files.
        paths: Vec<PathBuf>,
    },
    /// More pairs than have numbers.
    #[error("the corpus has {pairs} pairs, but at most {} are supported", u32::MAX)]
    TooLarge {
        /// How many it has.
        pairs: u64,
    },
    /// No pair passed the filters.
    #[error(
        "all examples were skipped ({left_out}): raise the maximum length, the length ratio or the tokens of a batch"
    )]
    AllLeftOut {
        /// For which reasons.
        left_out: LeftOut,
    },
    /// A file became another while it was in use.
    #[error("{} has changed since it was opened: start again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The system has no thread for us.
    #[error("cannot start a thread to read the corpus: {source}")]
    Thread {
        /// The system's reason.
        source: std::io::Error,
    },
    /// A position in another corpus.
    #[error(
        "the checkpoint belongs to a corpus with {saved}, but this corpus has {found}: use the same files"
    )]
    OtherCorpus {
        /// That corpus.
        saved: CorpusSize,
        /// This corpus.
        found: CorpusSize,
    },
    /// A position in other batches.
    #[error(
        "the checkpoint belongs to batches made with {saved:?}, not with {found:?}: use the same settings"
    )]
    OtherBatching {
        /// How those were made.
        saved: Batching,
        /// How these are made.
        found: Batching,
    },
    /// A position where there is nothing.
    #[error(
        "the position of the checkpoint, batch {batch} in window {window}, does not exist: the checkpoint is damaged"
    )]
    NoSuchPosition {
        /// The window.
        window: usize,
        /// The batch in it.
        batch: usize,
    },
    /// The ranks cannot share the work of encoding.
    #[error(transparent)]
    Ranks(#[from] attentive_ranks::Error),
    /// What another rank sent are no examples.
    #[error("rank {rank} sent something that is no examples: start all ranks with the same program")]
    Garbled {
        /// The rank.
        rank: usize,
    },
}

/// What is written to the cache is written as everything else is.
impl From<attentive_model::Error> for Error {
    fn from(error: attentive_model::Error) -> Error {
        match error {
            attentive_model::Error::File { path, source } => Error::File { path, source },
            other => unreachable!("staging a file has no other errors than the system's: {other}"),
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
