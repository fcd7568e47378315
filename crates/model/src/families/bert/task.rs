//! What a BERT is for: which head it has.

use super::Relative;
use crate::checkpoint::{CONFIG, Checkpoint};
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
    /// All tasks, in the order of the classes that each relative names.
    pub const ALL: [Task; 5] = [
        Task::Hidden,
        Task::MaskedLm,
        Task::SequenceClassification,
        Task::TokenClassification,
        Task::QuestionAnswering,
    ];

    /// What the model of a folder was saved for. A class of transformers that we do not have is refused together with those that we
    /// have; of a folder that names none, the weights tell.
    pub fn of(folder: &Path) -> Result<Task, Error> {
        let file = ConfigFile::open(folder)?;
        let Some(name) = file.architectures().first() else { return Task::of_weights(folder) };
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

    /// The task whose head is among the weights. The head of a classifier has the same name for texts and for words, so that it says
    /// nothing.
    fn of_weights(folder: &Path) -> Result<Task, Error> {
        let names = Relative::of(folder)?.particulars().names;
        let weights = names.read(Checkpoint::of_folder(folder)?)?.checkpoint;
        let heads =
            [("masked_lm.dense.weight", Task::MaskedLm), ("qa_outputs.weight", Task::QuestionAnswering)];
        let found = heads.into_iter().find(|(name, _)| weights.has(name));
        Ok(found.map_or(Task::Hidden, |(_, task)| task))
    }

    /// Whether its classes have names.
    pub fn has_labels(self) -> bool {
        matches!(self, Task::SequenceClassification | Task::TokenClassification)
    }
}
