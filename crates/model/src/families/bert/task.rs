//! What a BERT is for: which head it has.

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
}

/// Each task and the class of transformers for it.
const ARCHITECTURES: [(Task, &str); 4] = [
    (Task::Hidden, "BertModel"),
    (Task::MaskedLm, "BertForMaskedLM"),
    (Task::SequenceClassification, "BertForSequenceClassification"),
    (Task::TokenClassification, "BertForTokenClassification"),
];

impl Task {
    /// What the model of a folder was saved for. A class of transformers that we do not have is refused together with those that we
    /// have; a folder that names none has hidden states.
    pub fn of(folder: &Path) -> Result<Task, Error> {
        let file = ConfigFile::open(folder)?;
        let Some(name) = file.architectures().first() else { return Ok(Task::Hidden) };
        // Trained for both of its tasks, of which the first is one of ours.
        let known = if name == "BertForPreTraining" { "BertForMaskedLM" } else { name };
        let found = ARCHITECTURES.iter().find(|(_, class)| *class == known);
        found.map(|(task, _)| *task).ok_or_else(|| {
            let classes = ARCHITECTURES.map(|(_, class)| class).join(", ");
            let problem = format!("architectures: `{name}` is not supported; supported are {classes}");
            Error::Format { path: folder.join(CONFIG), problem }
        })
    }

    /// The class of transformers for it.
    pub fn architecture(self) -> &'static str {
        ARCHITECTURES.iter().find(|(task, _)| *task == self).map_or("", |(_, class)| class)
    }

    /// Whether its classes have names.
    pub fn has_labels(self) -> bool {
        matches!(self, Task::SequenceClassification | Task::TokenClassification)
    }
}
