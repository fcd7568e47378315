//! Which task the model of a folder was trained for.

use crate::error::Error;
use crate::pooling::MODULES;
use attentive_model::families::Family;
use attentive_model::families::bert::{BertConfig, Task};
use std::path::Path;

/// What a model that reads texts makes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Vectors: [`crate::Embedder`].
    Embed,
    /// Words for masks: [`crate::MaskFiller`].
    FillMask,
    /// Classes of texts: [`crate::Classifier`].
    Classify,
    /// How well texts fit a query: [`crate::Reranker`].
    Rerank,
    /// Entities: [`crate::Tagger`].
    Tag,
    /// Answers to questions: [`crate::Answerer`].
    Answer,
}

/// What a model that reads pictures makes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureKind {
    /// Vectors: [`crate::PictureEmbedder`].
    Embed,
    /// Classes: [`crate::PictureClassifier`].
    Classify,
    /// Boxes: [`crate::Detector`].
    Detect,
}

impl Kind {
    /// What the model of a folder was trained for; none if it does not read texts but writes them. A folder of sentence-transformers
    /// makes vectors, also if the model below was saved with a head for masks.
    pub fn of(folder: &Path) -> Result<Option<Kind>, Error> {
        if Family::of(folder)? != Family::Bert {
            return Ok(None);
        }
        Ok(Some(match Task::of(folder)? {
            Task::Hidden => Kind::Embed,
            Task::MaskedLm if folder.join(MODULES).exists() => Kind::Embed,
            Task::MaskedLm => Kind::FillMask,
            // A class alone tells nothing apart: its number says how well two texts fit.
            Task::SequenceClassification if BertConfig::load(folder)?.labels.len() == 1 => Kind::Rerank,
            Task::SequenceClassification => Kind::Classify,
            Task::TokenClassification => Kind::Tag,
            Task::QuestionAnswering => Kind::Answer,
        }))
    }
}
