//! The values of settings that are one of a few: tasks, tokenizers, measures.

use serde::{Deserialize, Serialize};

/// What can be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Translation, by the original Transformer.
    Translate,
    /// Any text from any other, by T5 or BART.
    Seq2Seq,
    /// The next token, by GPT-2.
    Lm,
    /// The tokens behind masks, by BERT.
    Mlm,
    /// The label of a text or of a pair of texts, by BERT.
    Classify,
    /// The tag of each word, by BERT.
    Tag,
    /// The label of a picture, by ViT.
    #[serde(rename = "classify-images")]
    ClassifyImages,
    /// Where a text answers a question, by BERT.
    Answer,
    /// The boxes around things in pictures, by DETR.
    Detect,
    /// What pictures have in common, without labels, by ViT.
    Dino,
}

impl TaskKind {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            TaskKind::Translate => "translate",
            TaskKind::Seq2Seq => "seq2seq",
            TaskKind::Lm => "lm",
            TaskKind::Mlm => "mlm",
            TaskKind::Classify => "classify",
            TaskKind::Tag => "tag",
            TaskKind::ClassifyImages => "classify-images",
            TaskKind::Answer => "answer",
            TaskKind::Detect => "detect",
            TaskKind::Dino => "dino",
        }
    }

    /// Whether it reads pictures, which have no tokens.
    pub fn reads_pictures(self) -> bool {
        matches!(self, TaskKind::ClassifyImages | TaskKind::Detect | TaskKind::Dino)
    }

    /// What its examples are called.
    pub fn examples(self) -> &'static str {
        match self {
            TaskKind::Translate | TaskKind::Seq2Seq => "pairs",
            TaskKind::Lm => "windows",
            TaskKind::Mlm => "lines",
            TaskKind::Classify => "texts",
            TaskKind::Tag => "sentences",
            TaskKind::ClassifyImages => "pictures",
            TaskKind::Answer => "questions",
            TaskKind::Detect | TaskKind::Dino => "pictures",
        }
    }

    /// What a model for it can be judged by.
    pub fn measures(self) -> &'static [Measure] {
        match self {
            TaskKind::Translate => &[Measure::Loss, Measure::Bleu, Measure::Chrf],
            TaskKind::Seq2Seq => &[Measure::Loss, Measure::Bleu, Measure::Chrf, Measure::Rouge],
            TaskKind::Lm | TaskKind::Mlm => &[Measure::Loss],
            TaskKind::Answer => &[Measure::Loss, Measure::Exact, Measure::F1],
            TaskKind::Classify | TaskKind::Tag | TaskKind::ClassifyImages => {
                &[Measure::Loss, Measure::Accuracy, Measure::F1]
            }
            TaskKind::Detect => &[Measure::Loss, Measure::Ap],
            TaskKind::Dino => &[Measure::Loss, Measure::Accuracy],
        }
    }
}

/// Tokenizers that can be trained along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerKind {
    /// Byte pair encoding: of characters for a translator, of bytes for a language model.
    Bpe,
    /// Unigram language model.
    Unigram,
    /// BERT's WordPiece.
    WordPiece,
    /// A token for each character, for a language model.
    Characters,
}

/// Where norms stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// After each sublayer, as in the paper.
    Post,
    /// Before each sublayer.
    Pre,
}

/// What makes one model better than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// The loss, lower is better.
    Loss,
    /// BLEU, higher is better.
    Bleu,
    /// chrF, higher is better.
    Chrf,
    /// The F1 of ROUGE-L, higher is better.
    Rouge,
    /// The share of labels that are right.
    Accuracy,
    /// The share of answers that are exactly a known one.
    Exact,
    /// F1 of spans or of answers, or the mean over the classes of texts.
    F1,
    /// The average precision of boxes.
    Ap,
}

impl Measure {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Loss => "loss",
            Measure::Bleu => "bleu",
            Measure::Chrf => "chrf",
            Measure::Rouge => "rouge",
            Measure::Accuracy => "accuracy",
            Measure::Exact => "exact",
            Measure::F1 => "f1",
            Measure::Ap => "ap",
        }
    }
}

/// The precision that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrecisionChoice {
    /// Single precision.
    F32,
    /// Operands of products in bf16.
    Bf16,
    /// The faster one.
    Auto,
}
