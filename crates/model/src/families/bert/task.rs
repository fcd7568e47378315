//! What a BERT is for: which head it has.

use super::Relative;
use crate::checkpoint::CONFIG;
use crate::error::Error;
use crate::families::ConfigFile;
use std::path::Path;

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Hidden states alone: vectors of texts.
    Hidden,
    /// The tokens behind masks.
    MaskedLm,
    /// The class of a text, or of a pair of texts.
    SequenceClassification,
    /// The class of each token.
    TokenClassification,
    /// Where the answer to a question begins and ends in a text.
    QuestionAnswering,
}

impl Task {
    /// All tasks, in the order of the classes of [`Particulars`](super::Particulars).
    pub const ALL: [Task; 5] = [
        Task::Hidden,
        Task::MaskedLm,
        Task::SequenceClassification,
        Task::TokenClassification,
        Task::QuestionAnswering,
    ];

    /// What the model of a folder was saved for. A class of transformers that we do not have is refused together with those that we
    /// have; a folder that names none has hidden states.
    pub fn of(folder: &Path) -> Result<Task, Error> {
        let file = ConfigFile::open(folder)?;
        let Some(name) = file.architectures().first() else { return Ok(Task::Hidden) };
        // Trained for both of its tasks, of which the first is one of ours.
        let known = if name == "BertForPreTraining" { "BertForMaskedLM" } else { name };
        let classes = Relative::of(folder)?.particulars().classes;
        let found = Task::ALL.into_iter().zip(classes).find(|(_, class)| *class == known);
        found.map(|(task, _)| task).ok_or_else(|| {
            let classes = classes.join(", ");
            let problem = format!("architectures: `{name}` is not supported; supported are {classes}");
            Error::Format { path: folder.join(CONFIG), problem }
        })
    }

    /// Whether its classes have names.
    pub fn has_labels(self) -> bool {
        matches!(self, Task::SequenceClassification | Task::TokenClassification)
    }
}
