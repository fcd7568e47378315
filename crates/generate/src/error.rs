//! What can go wrong with generating through no fault of the programmer.

use std::path::PathBuf;

/// A folder that cannot be read, options that make no sense, or a source that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option makes no sense, alone or with the others.
    #[error("{option}: {problem}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// There is nothing to begin with.
    #[error("the source has no tokens")]
    EmptySource,
    /// A source with more tokens than the model has positions for.
    #[error("the source has {tokens} tokens, but the model can read at most {most}: split it")]
    LongSource {
        /// Its tokens.
        tokens: usize,
        /// What the model can read.
        most: usize,
    },
    /// A prefix that leaves no room for a token.
    #[error(
        "the prefix has {tokens} tokens, but a translation can have at most {most}, prefix included: shorten the prefix"
    )]
    LongPrefix {
        /// Its tokens.
        tokens: usize,
        /// What the model may write.
        most: usize,
    },
    /// A prompt that leaves no room for a token.
    #[error(
        "the prompt has {tokens} tokens, but prompt and continuation can have at most {most} together: shorten the prompt"
    )]
    LongPrompt {
        /// Its tokens.
        tokens: usize,
        /// What both can have.
        most: usize,
    },
    /// The model cannot be read.
    #[error(transparent)]
    Model(#[from] attentive_model::Error),
    /// A file of the model's folder is not what it should be.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A token that the model does not have.
    #[error("there is no token {token}: the vocabulary has {vocabulary} tokens, counted from 0")]
    Token {
        /// The token.
        token: u32,
        /// How many there are.
        vocabulary: usize,
    },
}

impl Error {
    pub(crate) fn option(option: &'static str, problem: impl Into<String>) -> Error {
        Error::Option { option, problem: problem.into() }
    }
}
