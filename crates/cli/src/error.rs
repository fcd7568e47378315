//! What can go wrong, each in one sentence for the person at the terminal.

use crate::interrupt;
use attentive_generate as generate;
use attentive_tensor::IsaError;
use std::path::PathBuf;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The instruction set that was asked for cannot be had.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The model cannot be made.
    #[error(transparent)]
    Model(attentive_model::Error),
    /// Several processes cannot work together.
    #[error(transparent)]
    Ranks(#[from] attentive_ranks::Error),
    /// Texts cannot be scored.
    #[error(transparent)]
    Score(#[from] attentive_text::score::Error),
    /// A file of questions cannot be read.
    #[error(transparent)]
    Squad(#[from] attentive_text::squad::Error),
    /// A batch that is too large.
    #[error("--batch {batch} × --{side} {length} are {tokens} tokens: a batch can have at most {most}")]
    Batch { batch: usize, side: &'static str, length: usize, tokens: usize, most: usize },
    /// A model or a batch that would not fit.
    #[error(
        "this needs at least {needed:.1} GB of memory, but only {available:.1} GB are free: \
         make the model or the batch smaller"
    )]
    Memory { needed: f64, available: f64 },
    /// Nothing to measure.
    #[error("no kernel has `{0}` in its name: omit the name to run all kernels")]
    Kernel(String),
    /// A picture, or a file of boxes, cannot be read.
    #[error(transparent)]
    Image(#[from] attentive_image::Error),
    /// A tokenizer cannot be had or used.
    #[error(transparent)]
    Tokenizer(#[from] attentive_text::tokenizer::Error),
    /// A run cannot begin or go on.
    #[error(transparent)]
    Train(#[from] attentive_train::Error),
    /// A model cannot do what is asked, or not with this text.
    #[error(transparent)]
    Tasks(attentive_tasks::Error),
    /// A text makes no sense.
    #[error("text {text} {problem}")]
    Text { text: usize, problem: String },
    /// A flag makes no sense with the others, or with the model.
    #[error("--{}: {problem}", option.replace('_', "-"))]
    Flag { option: &'static str, problem: String },
    /// What is asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A model cannot be had by its name.
    #[error(transparent)]
    Hub(#[from] attentive_hub::Error),
    /// What was meant is neither a folder nor a model that can be had by its name.
    #[error("{}: no such file; as a name on the Hub: {source}", folder.join("config.json").display())]
    NoFolder { folder: PathBuf, source: Box<attentive_hub::Error> },
    /// The server does not run.
    #[error(transparent)]
    Serve(attentive_serve::Error),
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
    /// The exit code of the program. Where another command line would help, it is that of the parser of flags when it refuses one.
    pub(crate) fn code(&self) -> u8 {
        use attentive_train::Error::{Changed, SettingsFile};
        match self {
            Error::Interrupted => interrupt::CODE,
            Error::Flag { .. }
            | Error::Usage(_)
            | Error::Batch { .. }
            | Error::Kernel(_)
            | Error::Hub(attentive_hub::Error::Name { .. } | attentive_hub::Error::Setting { .. })
            | Error::Ranks(attentive_ranks::Error::NoLauncher)
            | Error::Train(SettingsFile { .. } | Changed { .. }) => 2,
            _ => 1,
        }
    }
}

/// Flags that are called otherwise than the field of a library that they set.
const FLAGS: [(&str, &str); 7] = [
    ("h", "heads"),
    ("encoder_layers", "layers"),
    ("decoder_layers", "layers"),
    ("vocab_size", "vocab"),
    ("origins", "cors"),
    ("keys", "api-keys"),
    ("models", "model"),
];

const SEVERAL: &str = "the model has several target languages: choose one, as in `--to de`, or begin each line with its \
                       token, as in `>>de<< A dog runs.`";

/// The flag that sets a field of a library.
fn flag(field: &'static str, problem: String) -> Error {
    let option = FLAGS.iter().find(|(known, _)| *known == field).map_or(field, |(_, flag)| flag);
    Error::Flag { option, problem }
}

impl From<attentive_model::Error> for Error {
    fn from(error: attentive_model::Error) -> Error {
        match error {
            // What is wrong in a file comes with the file's name, in another variant.
            attentive_model::Error::Config { field, problem } => flag(field, problem),
            other => Error::Model(other),
        }
    }
}

impl From<attentive_serve::Error> for Error {
    fn from(error: attentive_serve::Error) -> Error {
        match error {
            attentive_serve::Error::Setting { setting, problem } => flag(setting, problem),
            other => Error::Serve(other),
        }
    }
}

impl From<attentive_tasks::Error> for Error {
    fn from(error: attentive_tasks::Error) -> Error {
        match error {
            attentive_tasks::Error::Generate(generate::Error::Option { option, problem }) => {
                flag(option, problem)
            }
            attentive_tasks::Error::NoLanguage { known } => {
                flag("to", format!("{SEVERAL}; the languages are {known}"))
            }
            other => Error::Tasks(other),
        }
    }
}

impl From<generate::Error> for Error {
    fn from(error: generate::Error) -> Error {
        attentive_tasks::Error::from(error).into()
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::Output(error.into())
    }
}
