//! What is wanted of texts that are to be translated, and what becomes of them.

use crate::chosen::Chosen;
use attentive_generate::Options;
use attentive_tasks::{Cut, Split, Translated};
use attentive_tensor::Best;

/// What is wanted of texts.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub chosen: Chosen,
    pub options: Options,
    /// What every translation begins with.
    pub prefix: Vec<u32>,
    /// What of a text is translated for itself.
    pub split: Split,
    /// Whether words are to be aligned.
    pub align: bool,
    /// How many of the most probable tokens are wanted in the place of each token.
    pub top: usize,
    /// The most tokens of a translation as a whole.
    pub max_tokens: Option<usize>,
}

impl Order {
    /// The texts' translations and nothing more.
    pub fn new(chosen: Chosen, options: Options, split: Split) -> Order {
        Order { chosen, options, prefix: Vec::new(), split, align: false, top: 0, max_tokens: None }
    }
}

/// A text and its translations.
#[derive(Debug)]
pub(crate) struct Done {
    pub cut: Cut,
    /// Best first; one at least.
    pub best: Vec<Translated>,
    /// Whether each came to its end.
    pub ended: Vec<bool>,
    /// The most probable tokens in the place of each token of each; none if the order wants none.
    pub top: Vec<Vec<Vec<Best>>>,
}

impl Done {
    /// The tokens of the source.
    pub fn source_tokens(&self) -> usize {
        self.cut.source_tokens()
    }

    /// The tokens of all translations.
    pub fn target_tokens(&self) -> usize {
        self.best.iter().map(|best| best.tokens.len()).sum()
    }
}
