//! The attentions of a sentence and its translation, as answers and pictures have them.

use crate::token::{Token, finite, tokens, tokens_of};
use attentive_generate::{AttentionKind, AttentionMatrix, HeadVectors, Look};
use attentive_tasks::Codec;
use attentive_text::tokenizer::{Encoding, Side, Tokenizer};
use serde::{Deserialize, Serialize};

/// Some attentions, with the tokens on their axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attention {
    /// The name of the model.
    pub model: String,
    /// The tokens of the source.
    pub source: Vec<Token>,
    /// What was written.
    pub target: Vec<Token>,
    /// What the decoder was shown: the start token, and the target without its last token.
    pub shown: Vec<Token>,
    /// The weights.
    pub attention: Vec<Matrix>,
    /// The vectors of one head, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<Vectors>,
}

/// From which tokens to which an attention goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// From the source to the source.
    Encoder,
    /// From each step to what was written before.
    Decoder,
    /// From each step to the source.
    Cross,
    /// From each token of a text to itself and to those before it, in a decoder alone.
    Causal,
}

/// The weights of one head, or the mean of all heads of a layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// From what to what.
    pub kind: Kind,
    /// The layer, counted from 0.
    pub layer: usize,
    /// The head, counted from 0; none for the mean.
    pub head: Option<usize>,
    /// How many queries there are.
    pub rows: usize,
    /// How many keys there are.
    pub columns: usize,
    /// Whether what lies behind the diagonal is masked.
    pub causal: bool,
    /// Of each row, the weights of all columns.
    pub weights: Vec<Vec<f32>>,
}

/// The queries, keys and values of one head.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Vectors {
    /// From what to what.
    pub kind: Kind,
    /// The layer, counted from 0.
    pub layer: usize,
    /// The head, counted from 0.
    pub head: usize,
    /// What dot products are multiplied with.
    pub scale: f32,
    /// Whether query `i` sees no key behind key `i`.
    pub causal: bool,
    /// A row for each token that asks.
    pub queries: Vec<Vec<f32>>,
    /// A row for each token that is asked.
    pub keys: Vec<Vec<f32>>,
    /// A row for each token that is asked.
    pub values: Vec<Vec<f32>>,
}

impl Attention {
    /// The attentions that were seen between a source and a target, both not empty.
    pub fn new(
        model: &str,
        codec: &Codec,
        [source, target]: [&[u32]; 2],
        seen: impl IntoIterator<Item = (Look, AttentionMatrix)>,
    ) -> Attention {
        let start = codec.spec().start;
        let shown: Vec<u32> = [start].iter().chain(target).copied().take(target.len()).collect();
        Attention {
            model: model.to_owned(),
            source: tokens(codec.tokenizer(), source, Side::Source, None),
            target: tokens(codec.tokenizer(), target, Side::Target, None),
            shown: tokens(codec.tokenizer(), &shown, Side::Target, None),
            attention: seen.into_iter().map(|(look, matrix)| Matrix::new(look, &matrix)).collect(),
            vectors: None,
        }
    }

    /// The attentions that an encoder alone was seen to have in a text.
    pub fn of_text(
        model: &str,
        tokenizer: &Tokenizer,
        encoding: &Encoding,
        seen: impl IntoIterator<Item = (Look, AttentionMatrix)>,
    ) -> Attention {
        Attention::within(model, tokens_of(tokenizer, encoding), seen)
    }

    /// The attentions that a decoder alone was seen to have in a text of these tokens.
    pub fn of_tokens(
        model: &str,
        tokenizer: &Tokenizer,
        ids: &[u32],
        seen: impl IntoIterator<Item = (Look, AttentionMatrix)>,
    ) -> Attention {
        Attention::within(model, tokens(tokenizer, ids, Side::Source, None), seen)
    }

    /// The attentions from tokens to each other.
    fn within(
        model: &str,
        source: Vec<Token>,
        seen: impl IntoIterator<Item = (Look, AttentionMatrix)>,
    ) -> Attention {
        Attention {
            model: model.to_owned(),
            source,
            target: Vec::new(),
            shown: Vec::new(),
            attention: seen.into_iter().map(|(look, matrix)| Matrix::new(look, &matrix)).collect(),
            vectors: None,
        }
    }

    /// The same, with the vectors of a head.
    pub fn with_vectors(self, look: Look, vectors: HeadVectors) -> Attention {
        Attention { vectors: Some(Vectors::new(look, vectors)), ..self }
    }

    /// The same, with the log of the probability of each token that was written.
    pub fn with_scores(mut self, scores: &[f32]) -> Attention {
        for (token, score) in self.target.iter_mut().zip(scores) {
            token.logprob = Some(finite(*score));
        }
        self
    }

    /// The tokens on both axes of an attention: who looks, and what is looked at.
    pub fn axes(&self, kind: Kind) -> [&[Token]; 2] {
        match kind {
            Kind::Encoder | Kind::Causal => [&self.source, &self.source],
            Kind::Decoder => [&self.target, &self.shown],
            Kind::Cross => [&self.target, &self.source],
        }
    }
}

impl Vectors {
    /// The vectors of the head that `look` names.
    pub fn new(look: Look, vectors: HeadVectors) -> Vectors {
        let HeadVectors { queries, keys, values, scale, causal } = vectors;
        let (kind, layer, head) = (look.kind.into(), look.layer, look.head.unwrap_or(0));
        Vectors { kind, layer, head, scale, causal, queries, keys, values }
    }

    /// How many numbers they have together.
    pub fn numbers(&self) -> usize {
        [&self.queries, &self.keys, &self.values].into_iter().flatten().map(Vec::len).sum()
    }

    /// The same with enough digits for a page, and half the bytes.
    pub fn rounded(mut self) -> Vectors {
        let all = [&mut self.queries, &mut self.keys, &mut self.values].into_iter().flatten().flatten();
        all.for_each(|number| *number = (*number * 1e4).round() / 1e4);
        self
    }
}

impl Matrix {
    fn new(look: Look, matrix: &AttentionMatrix) -> Matrix {
        let rows = matrix.weights.len() / matrix.keys.max(1);
        let row = |row| matrix.row(row).iter().map(|weight| rounded(*weight)).collect();
        Matrix {
            kind: look.kind.into(),
            layer: look.layer,
            head: look.head,
            rows,
            columns: matrix.keys,
            causal: matches!(look.kind, AttentionKind::Decoder | AttentionKind::Causal),
            weights: (0..rows).map(row).collect(),
        }
    }

    /// What it is, for people, who count from 1.
    pub fn name(&self) -> String {
        let head =
            self.head.map_or_else(|| "mean of all heads".to_owned(), |head| format!("head {}", head + 1));
        format!("layer {}, {head}", self.layer + 1)
    }
}

/// Enough digits for any picture, and half the bytes.
pub(crate) fn rounded(weight: f32) -> f32 {
    (weight * 1e5).round() / 1e5
}

impl From<AttentionKind> for Kind {
    fn from(kind: AttentionKind) -> Kind {
        match kind {
            AttentionKind::Encoder => Kind::Encoder,
            AttentionKind::Decoder => Kind::Decoder,
            AttentionKind::Cross => Kind::Cross,
            AttentionKind::Causal => Kind::Causal,
        }
    }
}

impl From<Kind> for AttentionKind {
    fn from(kind: Kind) -> AttentionKind {
        match kind {
            Kind::Encoder => AttentionKind::Encoder,
            Kind::Decoder => AttentionKind::Decoder,
            Kind::Cross => AttentionKind::Cross,
            Kind::Causal => AttentionKind::Causal,
        }
    }
}
