//! One text or several, as many fields of requests have them.

use serde::{Deserialize, Serialize};

/// A text or a list of texts.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "must be a text or a list of texts")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    pub fn as_slice(&self) -> &[String] {
        match self {
            OneOrMany::One(text) => std::slice::from_ref(text),
            OneOrMany::Many(texts) => texts,
        }
    }

    /// All of them, to keep.
    pub fn into_vec(self) -> Vec<String> {
        match self {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}
