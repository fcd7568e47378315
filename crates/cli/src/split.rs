//! `--split`: what of a text is translated for itself.

use clap::ValueEnum;

/// What of a text is translated for itself.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Split {
    /// Sentences; whole lines if the model was trained on lines with several sentences
    Auto,
    /// Each sentence by itself
    Sentences,
    /// Whole lines; a line that is too long for the model is split
    Lines,
}

impl From<Split> for attentive_tasks::Split {
    fn from(split: Split) -> attentive_tasks::Split {
        match split {
            Split::Auto => attentive_tasks::Split::Auto,
            Split::Sentences => attentive_tasks::Split::Sentences,
            Split::Lines => attentive_tasks::Split::Lines,
        }
    }
}
