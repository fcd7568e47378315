//! `--split`: what of a text is translated for itself.

use clap::ValueEnum;

/// What of a text is translated for itself.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Split {
    /// Sentences, unless the model was trained on lines of several sentences
    Auto,
    /// Sentences
    Sentences,
    /// Lines, unless they are too long for the model
    Lines,
}

impl From<Split> for attentive_generate::Split {
    fn from(split: Split) -> attentive_generate::Split {
        match split {
            Split::Auto => attentive_generate::Split::Auto,
            Split::Sentences => attentive_generate::Split::Sentences,
            Split::Lines => attentive_generate::Split::Lines,
        }
    }
}
