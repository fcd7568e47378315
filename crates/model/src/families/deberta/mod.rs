//! DeBERTa: BERT with disentangled attention. A score has terms for the content of a token and the distance of the other one; positions
//! are not added to the embedded tokens, or not only.
//!
//! The first version has a byte-level tokenizer and a row for each distance. The second and third have SentencePiece models and buckets
//! of distances; they mostly project distances with the matrices of the contents. The large ones of the second version have a convolution
//! behind the first layer.

mod attention;
mod config;
mod convolution;
mod encoder;
mod names;

pub use config::Disentangled;
pub(super) use config::Fields;
pub(super) use config::LEGACY;
pub(super) use encoder::Encoder;

use super::bert::Particulars;
use super::{DEBERTA, DEBERTA_V2};

/// The first version.
pub(super) static FIRST: Particulars = Particulars {
    model_type: DEBERTA,
    title: "DeBERTa",
    classes: [
        "DebertaModel",
        "DebertaForMaskedLM",
        "DebertaForSequenceClassification",
        "DebertaForTokenClassification",
        "DebertaForQuestionAnswering",
    ],
    names: &names::FIRST,
    pad: 0,
    token_types: 0,
    epsilon: 1e-7,
    positions_follow_pad: false,
    mask_activation: None,
    text_class: ["pooler", "classifier"],
    pools_hidden: false,
};

/// The second and the third.
pub(super) static LATER: Particulars = Particulars {
    model_type: DEBERTA_V2,
    title: "DeBERTa v2 or v3",
    classes: [
        "DebertaV2Model",
        "DebertaV2ForMaskedLM",
        "DebertaV2ForSequenceClassification",
        "DebertaV2ForTokenClassification",
        "DebertaV2ForQuestionAnswering",
    ],
    names: &names::LATER,
    ..FIRST
};
