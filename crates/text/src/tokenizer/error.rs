//! What can go wrong with a tokenizer, each in one sentence.

use std::path::{Path, PathBuf};

/// Why a tokenizer cannot be loaded, saved, trained or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A folder without any tokenizer that is known.
    #[error(
        "{}: the folder has no tokenizer; needed is tokenizer.json, or source.spm with target.spm and \
         vocab.json, or a SentencePiece .model, or vocab.json with merges.txt, or vocab.txt",
        path.display()
    )]
    NoTokenizer {
        /// The folder.
        path: PathBuf,
    },
    /// A folder of Marian's in which a file is missing.
    #[error("{}: no such file; a Marian tokenizer is source.spm, target.spm and vocab.json", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
    },
    /// A folder that has another tokenizer in it.
    #[error(
        "{} belongs to another tokenizer and would be loaded together with the new one: remove it, or save \
         to another folder",
        path.display()
    )]
    OtherTokenizer {
        /// A file of that tokenizer.
        path: PathBuf,
    },
    /// A line that is not UTF-8.
    #[error("{}, line {line}: not UTF-8; {}", path.display(), crate::encoding::advice(path))]
    Utf8 {
        /// The file.
        path: PathBuf,
        /// Its line, the first being 1.
        line: usize,
    },
    /// An id without a piece.
    #[error("there is no token with id {id}: the vocabulary has {size} tokens, counted from 0")]
    Id {
        /// The id.
        id: u32,
        /// How many there are.
        size: usize,
    },
    /// A text that the tokenizer cannot express, or ids that it cannot join.
    #[error("the tokenizer failed: {0}")]
    Pipeline(String),
    /// A tokenizer that does not say which tokens stand around a text.
    #[error("{kind} has no template for one or two texts: an encoder needs tokenizer.json or vocab.txt")]
    NoTemplate {
        /// What it is.
        kind: &'static str,
    },
    /// A limit that the template fills.
    #[error(
        "{limit} tokens leave no room for text: the special tokens around it are {template} already; allow more tokens"
    )]
    Limit {
        /// How many tokens there may be.
        limit: usize,
        /// How many the template has.
        template: usize,
    },
    /// Nothing to learn pieces from.
    #[error("there are no words in {0} to train a tokenizer on")]
    Empty(String),
    /// A size that cannot be reached.
    #[error("{0}")]
    Size(String),
}

impl Error {
    pub(crate) fn format(path: &Path, problem: impl Into<String>) -> Error {
        Error::Format { path: path.to_owned(), problem: problem.into() }
    }
}
