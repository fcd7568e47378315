//! What a model leaves of its folder.

use attentive_model::names::Unused;
use serde::Serialize;

/// Tensors of a folder that a model does not take.
#[derive(Serialize)]
pub(super) struct Left {
    /// Heads of other tasks, and what follows from the configuration.
    ignored: Vec<String>,
    /// What nothing is known of.
    unknown: Vec<String>,
}

impl Left {
    pub(super) fn of(unused: &Unused) -> Left {
        Left { ignored: unused.ignored.clone(), unknown: unused.unknown.clone() }
    }

    /// A row for each kind of which there are any.
    pub(super) fn rows(&self) -> impl Iterator<Item = [String; 2]> {
        let kinds = [("not used", &self.ignored), ("not known", &self.unknown)];
        let row = |(name, tensors): (&str, &Vec<String>)| [name.to_owned(), tensors.join(", ")];
        kinds.into_iter().filter(|(_, tensors)| !tensors.is_empty()).map(row)
    }
}
