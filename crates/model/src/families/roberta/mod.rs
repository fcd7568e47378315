//! RoBERTa and XLM-R: BERT's encoder with other tokenizers, other names and other heads.
//!
//! Positions are counted from the one behind the padding token's number, so a table of 514 rows has 512 positions. Texts have no
//! types to be told apart; the table of types has one row. A classifier of texts has a dense layer of its own and no pooler.
//!
//! RoBERTa's tokenizer is GPT-2's byte pair encoding, XLM-R's is a SentencePiece model with the ids of fairseq.

mod names;

use super::bert::Particulars;
use super::{ROBERTA, XLM_ROBERTA};
use attentive_tensor::Activation;
use names::NAMES;

/// RoBERTa.
pub(super) static ENGLISH: Particulars = Particulars {
    model_type: ROBERTA,
    title: "RoBERTa",
    classes: [
        "RobertaModel",
        "RobertaForMaskedLM",
        "RobertaForSequenceClassification",
        "RobertaForTokenClassification",
        "RobertaForQuestionAnswering",
    ],
    names: &NAMES,
    pad: 1,
    positions_follow_pad: true,
    mask_activation: Some(Activation::Gelu),
    text_class: ["classifier.dense", "classifier.out_proj"],
    token_types: 2,
    epsilon: 1e-12,
    pools_hidden: true,
};

/// XLM-R.
pub(super) static MULTILINGUAL: Particulars = Particulars {
    model_type: XLM_ROBERTA,
    title: "XLM-RoBERTa",
    classes: [
        "XLMRobertaModel",
        "XLMRobertaForMaskedLM",
        "XLMRobertaForSequenceClassification",
        "XLMRobertaForTokenClassification",
        "XLMRobertaForQuestionAnswering",
    ],
    ..ENGLISH
};
