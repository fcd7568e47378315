//! What can go wrong, each in one sentence for the person at the terminal.

use attentive_tensor::IsaError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The instruction set that was asked for cannot be had.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The model cannot be made.
    #[error(transparent)]
    Model(#[from] attentive_model::Error),
    /// Texts cannot be scored.
    #[error(transparent)]
    Score(#[from] attentive_text::score::Error),
    /// A batch that nobody wants to wait for.
    #[error("--batch {batch} × --{side} {length} are {tokens} tokens: at most {most} fit in a batch")]
    Batch { batch: usize, side: &'static str, length: usize, tokens: usize, most: usize },
    /// A model or a batch that would not fit.
    #[error(
        "this needs at least {needed:.1} GB of memory and {available:.1} GB are free: \
         make the model or the batch smaller"
    )]
    Memory { needed: f64, available: f64 },
    /// Nothing to measure.
    #[error("no kernel has `{0}` in its name: leave the name out to see them all")]
    Kernel(String),
    /// A tokenizer cannot be had or used.
    #[error(transparent)]
    Tokenizer(#[from] attentive_text::tokenizer::Error),
    /// A run cannot begin or go on.
    #[error(transparent)]
    Train(#[from] attentive_train::Error),
    /// Nothing can be generated.
    #[error(transparent)]
    Generate(attentive_generate::Error),
    /// A flag makes no sense with the others, or with the model.
    #[error("--{}: {problem}", option.replace('_', "-"))]
    Flag { option: &'static str, problem: String },
    /// The server does not run.
    #[error(transparent)]
    Serve(#[from] attentive_serve::Error),
    /// A sentence cannot be looked into, or not be drawn.
    #[error("{0}")]
    Inspect(String),
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// A line of the input makes no sense.
    #[error("{input}, line {line}: {problem}")]
    Line { input: String, line: usize, problem: String },
    /// A document makes no sense.
    #[error("{input}: {problem}")]
    Document { input: String, problem: String },
    /// The input cannot be read.
    #[error("{input}: {source}")]
    Input { input: String, source: std::io::Error },
    /// The result cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] std::io::Error),
}

impl Error {
    /// Whether another command line would help, as when the parser of flags refuses one.
    pub(crate) fn is_wrong_usage(&self) -> bool {
        matches!(self, Error::Flag { .. } | Error::Batch { .. } | Error::Kernel(_))
    }
}

impl From<attentive_generate::Error> for Error {
    fn from(error: attentive_generate::Error) -> Error {
        match error {
            attentive_generate::Error::Option { option, problem } => Error::Flag { option, problem },
            other => Error::Generate(other),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::Output(error.into())
    }
}
