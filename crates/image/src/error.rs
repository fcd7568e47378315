//! What can go wrong with a picture through no fault of the programmer.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The contents of the file are invalid.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Error {
        Error::File { path: path.to_owned(), source }
    }
}

/// A problem with a picture that need not come from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    text: String,
    fault: Fault,
}

/// The kinds of problems, which a server answers with different status codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The picture is broken, or cannot be resized.
    Broken,
    /// The format is not supported.
    Format,
    /// The picture has too many pixels.
    Size,
}

impl Problem {
    /// A picture that cannot be used, in a few words.
    pub fn new(text: impl Into<String>) -> Problem {
        Problem { text: text.into(), fault: Fault::Broken }
    }

    /// The error of the decoder of this format.
    pub(crate) fn broken(format: &str, error: impl fmt::Display) -> Problem {
        Problem::new(format!("a broken {format} picture: {error}"))
    }

    /// The same problem, of this kind.
    pub(crate) fn with_fault(self, fault: Fault) -> Problem {
        Problem { fault, ..self }
    }

    /// The kind of the problem.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The problem as an error of this file.
    pub fn of(self, path: &Path) -> Error {
        Error::Format { path: path.to_owned(), problem: self.text }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}
