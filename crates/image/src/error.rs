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
    /// The file does not hold what it should.
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

/// What is wrong with a picture, wherever it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    text: String,
    fault: Fault,
}

/// The kinds of problems that a server tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The picture is broken, or cannot be made ready.
    Broken,
    /// The bytes are of no format that is read.
    Format,
    /// There are more pixels than are read.
    Size,
}

impl Problem {
    /// A picture that cannot be used, in a few words.
    pub fn new(text: impl Into<String>) -> Problem {
        Problem { text: text.into(), fault: Fault::Broken }
    }

    /// What a decoder of this format could not read.
    pub(crate) fn broken(format: &str, error: impl fmt::Display) -> Problem {
        Problem::new(format!("a broken {format} picture: {error}"))
    }

    /// The same problem, of this kind.
    pub(crate) fn with_fault(self, fault: Fault) -> Problem {
        Problem { fault, ..self }
    }

    /// What kind of problem it is.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The same problem of a file.
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
