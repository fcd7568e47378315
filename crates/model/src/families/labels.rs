//! What a configuration says of classes.

use crate::error::Error;
use crate::limits::{self, WIDEST};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the classes of a text or a picture are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Problem {
    /// It has a number for each class.
    #[serde(rename = "regression")]
    Regression,
    /// It has one class.
    #[serde(rename = "single_label_classification")]
    SingleLabel,
    /// It has any of the classes.
    #[serde(rename = "multi_label_classification")]
    MultiLabel,
}

impl Problem {
    /// What transformers takes where a configuration says nothing: a single class means a number.
    pub(super) fn of(classes: usize) -> Problem {
        if classes == 1 { Problem::Regression } else { Problem::SingleLabel }
    }
}

/// What transformers takes where a configuration names no classes.
pub(super) fn default_labels(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("LABEL_{i}")).collect()
}

/// The names of the classes: two without a name where the file says nothing, as in transformers.
pub(super) fn labels(
    id2label: Option<&BTreeMap<usize, String>>,
    num_labels: Option<usize>,
) -> Result<Vec<String>, Error> {
    let Some(names) = id2label else {
        let count = num_labels.unwrap_or(2);
        // Before so many names are made.
        limits::check_size("num_labels", count, WIDEST)?;
        return Ok(default_labels(count));
    };
    if !names.keys().copied().eq(0..names.len()) {
        let problem = "must have a name for each class, counted from 0 without gaps";
        return Err(Error::config("id2label", problem));
    }
    if num_labels.is_some_and(|count| count != names.len()) {
        let problem = format!("{} classes have names in id2label", names.len());
        return Err(Error::config("num_labels", problem));
    }
    Ok(names.values().cloned().collect())
}
