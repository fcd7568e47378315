//! The families that share BERT's encoder, and what tells each from BERT.

use super::Task;
use super::names::NAMES;
use crate::error::Error;
use crate::families::{BERT, ConfigFile, deberta, roberta};
use crate::names::Names;
use attentive_tensor::Activation;
use std::path::Path;

/// A family that shares the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relative {
    /// BERT itself.
    Bert,
    /// RoBERTa.
    Roberta,
    /// XLM-R: RoBERTa for many languages.
    XlmRoberta,
    /// The first DeBERTa.
    Deberta,
    /// The second and third DeBERTa.
    DebertaV2,
}

/// What a family says of itself in files.
#[derive(Debug)]
pub(crate) struct Particulars {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The class of transformers for each task, in the order of [`Task::ALL`].
    pub classes: [&'static str; Task::ALL.len()],
    /// What its weights are called.
    pub names: &'static Names,
    /// The token of padding, where `config.json` says nothing of it.
    pub pad: usize,
    /// Whether the first token of a text has the position behind the number of the padding token, as in fairseq.
    pub positions_follow_pad: bool,
    /// The function in the head for masks, where it is not that of the layers.
    pub mask_activation: Option<Activation>,
    /// Our names of what makes the class of a text: the dense layer over its first token, and the output.
    pub text_class: [&'static str; 2],
    /// How many types of tokens there are, where `config.json` says nothing of it.
    pub token_types: usize,
    /// What norms add to the variance, where it says nothing of that.
    pub epsilon: f32,
    /// Whether a model of hidden states alone has a dense layer over the first token, too.
    pub pools_hidden: bool,
}

static PARTICULARS: Particulars = Particulars {
    model_type: BERT,
    title: "BERT",
    classes: [
        "BertModel",
        "BertForMaskedLM",
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertForQuestionAnswering",
    ],
    names: &NAMES,
    pad: 0,
    positions_follow_pad: false,
    mask_activation: None,
    text_class: ["pooler", "classifier"],
    token_types: 2,
    epsilon: 1e-12,
    pools_hidden: true,
};

impl Relative {
    const ALL: [Relative; 5] =
        [Relative::Bert, Relative::Roberta, Relative::XlmRoberta, Relative::Deberta, Relative::DebertaV2];

    pub(crate) fn particulars(self) -> &'static Particulars {
        match self {
            Relative::Bert => &PARTICULARS,
            Relative::Roberta => &roberta::ENGLISH,
            Relative::XlmRoberta => &roberta::MULTILINGUAL,
            Relative::Deberta => &deberta::FIRST,
            Relative::DebertaV2 => &deberta::LATER,
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        self.particulars().title
    }

    /// The class of transformers for a task.
    pub fn architecture(self, task: Task) -> &'static str {
        let place = Task::ALL.iter().position(|other| *other == task);
        place.map_or("", |place| self.particulars().classes[place])
    }

    /// The family of a folder, as its `config.json` says.
    pub fn of(folder: &Path) -> Result<Relative, Error> {
        let file = ConfigFile::open(folder)?;
        let architecture = file.architectures().first().map(String::as_str);
        Ok(Relative::find(file.model_type().unwrap_or_default(), architecture).unwrap_or(Relative::Bert))
    }

    /// The family with this `model_type`; without one, the family that has the class `architecture`.
    pub(super) fn find(model_type: &str, architecture: Option<&str>) -> Option<Relative> {
        let is_it = |relative: &&Relative| {
            let particulars = relative.particulars();
            match model_type {
                "" => architecture.is_some_and(|name| particulars.classes.contains(&name)),
                _ => particulars.model_type == model_type,
            }
        };
        Relative::ALL.iter().find(is_it).copied()
    }

    /// How many rows of the table of positions come before that of the first token. fairseq begins behind the number of the padding
    /// token.
    pub(super) fn first_position(self, pad: Option<usize>) -> usize {
        pad.filter(|_| self.particulars().positions_follow_pad).map_or(0, |pad| pad + 1)
    }
}
