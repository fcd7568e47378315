//! What of a text is translated for itself.

use serde::Deserialize;

/// What of a text is translated for itself. In any case a line that is longer than the model can read is translated sentence
/// by sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Sentences, unless the model was trained on lines of several sentences; see
    /// [`Reading::paragraphs`](super::Reading::paragraphs).
    #[default]
    Auto,
    /// Sentences.
    Sentences,
    /// Lines.
    Lines,
    /// Lines, without the marks that `Auto` leaves out (see [`marker`](attentive_text::sentences::marker)): of a line with one
    /// sentence, the model reads what it reads with `Auto`.
    #[serde(skip)]
    Whole,
}
