//! What can go wrong with a model through no fault of the programmer.

use std::path::PathBuf;

/// A configuration that cannot be, or a checkpoint that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value of the configuration makes no sense, alone or with the others.
    #[error("{field}: {problem}")]
    Config {
        /// The field.
        field: &'static str,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is missing or not what it should be.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The checkpoint has no such tensor.
    #[error("{}: the tensor `{name}` is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor of the checkpoint has another shape than the model.
    #[error("{}: `{name}` has shape {found}, but the model needs {expected}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The shape in the file.
        found: String,
        /// The shape in the model.
        expected: String,
    },
}

impl Error {
    /// The same mistake of a configuration with its field called as in a file: `words` has our name and theirs.
    pub(crate) fn in_words(self, words: &[(&'static str, &'static str)]) -> Error {
        match self {
            Error::Config { field, problem } => {
                let word = words.iter().find(|(ours, _)| *ours == field).map_or(field, |(_, theirs)| theirs);
                Error::Config { field: word, problem }
            }
            other => other,
        }
    }

    pub(crate) fn config(field: &'static str, problem: impl Into<String>) -> Error {
        Error::Config { field, problem: problem.into() }
    }
}
