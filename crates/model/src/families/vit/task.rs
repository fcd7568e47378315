//! The tasks of a ViT: each has its head.

use super::Relative;
use crate::checkpoint::{CONFIG, Checkpoint};
use crate::error::Error;
use crate::families::ConfigFile;
use std::path::Path;

/// A task, which decides about the head of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Hidden states alone: vectors of pictures.
    Hidden,
    /// The class of a picture.
    Classes,
    /// The class of a picture as the mean of two heads, one of which was distilled from a teacher.
    ClassesWithTeacher,
}

impl Task {
    /// All tasks, in the order of the classes that each relative names.
    pub const ALL: [Task; 3] = [Task::Hidden, Task::Classes, Task::ClassesWithTeacher];

    /// The task of a folder, by the class of transformers in its `architectures`. An unknown class is an error, which names the known ones.
    /// If the folder names no class, the heads among its weights decide.
    pub fn of(folder: &Path) -> Result<Task, Error> {
        let file = ConfigFile::open(folder)?;
        let relative = Relative::of(folder)?;
        let Some(name) = file.architectures().first() else { return Task::of_weights(folder, relative) };
        let known = relative.particulars().classes;
        let found = Task::ALL.into_iter().zip(known).find(|(_, class)| *class == Some(name));
        found.map(|(task, _)| task).ok_or_else(|| {
            let classes: Vec<&str> = known.into_iter().flatten().collect();
            let problem =
                format!("architectures: `{name}` is not supported; supported are {}", classes.join(", "));
            Error::Format { path: folder.join(CONFIG), problem }
        })
    }

    /// The task whose head is among the weights.
    fn of_weights(folder: &Path, relative: Relative) -> Result<Task, Error> {
        let weights = relative.particulars().names.read(Checkpoint::of_folder(folder)?)?.checkpoint;
        let heads =
            [("classifier.weight", Task::Classes), ("cls_classifier.weight", Task::ClassesWithTeacher)];
        let found = heads.into_iter().find(|(name, _)| weights.has(name));
        Ok(found.map_or(Task::Hidden, |(_, task)| task))
    }

    /// Whether its classes have names.
    pub fn has_labels(self) -> bool {
        self != Task::Hidden
    }
}
