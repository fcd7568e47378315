//! The attentions of a sentence and its translation, as answers and pictures have them.

use crate::hidden::Hidden;
use crate::token::{Token, finite, tokens, tokens_of};
use attentive_generate::{
    AttentionKind, AttentionMatrix, AttentionSelector, BiasTerm, HeadVectors, ScorePart,
};
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
    /// The hidden states of a step, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Hidden>,
}

/// A part of the scores of an attention with a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Queries against keys.
    Content,
    /// What is added to that.
    Bias,
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
    /// Whether a bias is added to the products of queries and keys.
    #[serde(skip_serializing_if = "is_false")]
    pub biased: bool,
    /// The part of the scores whose softmax the weights are; none for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
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
    /// What is added to the scaled dot products, if anything is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<Term>,
    /// A row for each token that asks.
    pub queries: Vec<Vec<f32>>,
    /// A row for each token that is asked.
    pub keys: Vec<Vec<f32>>,
    /// A row for each token that is asked.
    pub values: Vec<Vec<f32>>,
}

/// A term of scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// What it is.
    pub term: TermName,
    /// Of each query, its numbers for all keys.
    pub numbers: Vec<Vec<f32>>,
}

/// What a term says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TermName {
    /// A learned number for the distance of the two tokens.
    Distance,
    /// The query against a vector of the distance.
    ContentToPosition,
    /// The key against a vector of the distance.
    PositionToContent,
    /// A number for each pair of tokens.
    Pairs,
}

impl Attention {
    /// The attentions that were seen between a source and a target, both not empty.
    pub fn new(
        model: &str,
        codec: &Codec,
        [source, target]: [&[u32]; 2],
        seen: impl IntoIterator<Item = (AttentionSelector, AttentionMatrix)>,
    ) -> Attention {
        let start = codec.spec().start;
        let shown: Vec<u32> = [start].iter().chain(target).copied().take(target.len()).collect();
        Attention {
            model: model.to_owned(),
            source: tokens(codec.tokenizer(), source, Side::Source, None),
            target: tokens(codec.tokenizer(), target, Side::Target, None),
            shown: tokens(codec.tokenizer(), &shown, Side::Target, None),
            attention: seen.into_iter().map(|(selector, matrix)| Matrix::new(selector, &matrix)).collect(),
            vectors: None,
            hidden: None,
        }
    }

    /// The attentions that an encoder alone was seen to have in a text.
    pub fn of_text(
        model: &str,
        tokenizer: &Tokenizer,
        encoding: &Encoding,
        seen: impl IntoIterator<Item = (AttentionSelector, AttentionMatrix)>,
    ) -> Attention {
        Attention::within(model, tokens_of(tokenizer, encoding), seen)
    }

    /// The attentions that a decoder alone was seen to have in a text of these tokens.
    pub fn of_tokens(
        model: &str,
        tokenizer: &Tokenizer,
        ids: &[u32],
        seen: impl IntoIterator<Item = (AttentionSelector, AttentionMatrix)>,
    ) -> Attention {
        Attention::within(model, tokens(tokenizer, ids, Side::Source, None), seen)
    }

    /// The attentions from tokens to each other.
    fn within(
        model: &str,
        source: Vec<Token>,
        seen: impl IntoIterator<Item = (AttentionSelector, AttentionMatrix)>,
    ) -> Attention {
        Attention {
            model: model.to_owned(),
            source,
            target: Vec::new(),
            shown: Vec::new(),
            attention: seen.into_iter().map(|(selector, matrix)| Matrix::new(selector, &matrix)).collect(),
            vectors: None,
            hidden: None,
        }
    }

    /// The same, with the vectors of a head.
    pub fn with_vectors(self, selector: AttentionSelector, vectors: HeadVectors) -> Attention {
        Attention { vectors: Some(Vectors::new(selector, vectors)), ..self }
    }

    /// The same, with the hidden states of a step.
    pub fn with_hidden(self, hidden: Hidden) -> Attention {
        Attention { hidden: Some(hidden), ..self }
    }

    /// The same, with weights that come from one part of the scores.
    pub fn with_part(
        mut self,
        part: Part,
        seen: impl IntoIterator<Item = (AttentionSelector, AttentionMatrix)>,
    ) -> Attention {
        let matrix = |(selector, matrix)| Matrix { part: Some(part), ..Matrix::new(selector, &matrix) };
        self.attention.extend(seen.into_iter().map(matrix));
        self
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
    /// The vectors of the head that `selector` names.
    pub fn new(selector: AttentionSelector, vectors: HeadVectors) -> Vectors {
        let HeadVectors { queries, keys, values, scale, causal, terms } = vectors;
        let (kind, layer, head) = (selector.kind.into(), selector.layer, selector.head.unwrap_or(0));
        let terms = terms.into_iter().map(|(term, numbers)| Term { term: term.into(), numbers }).collect();
        Vectors { kind, layer, head, scale, causal, terms, queries, keys, values }
    }

    /// How many numbers they have together.
    pub fn numbers(&self) -> usize {
        let terms = self.terms.iter().map(|term| &term.numbers);
        [&self.queries, &self.keys, &self.values].into_iter().chain(terms).flatten().map(Vec::len).sum()
    }

    /// The same with enough digits for a page, and half the bytes.
    pub fn rounded(mut self) -> Vectors {
        let terms = self.terms.iter_mut().map(|term| &mut term.numbers);
        let all = [&mut self.queries, &mut self.keys, &mut self.values].into_iter().chain(terms);
        all.flatten().flatten().for_each(|number| *number = (*number * 1e4).round() / 1e4);
        self
    }
}

impl Matrix {
    fn new(selector: AttentionSelector, matrix: &AttentionMatrix) -> Matrix {
        let rows = matrix.weights.len() / matrix.keys.max(1);
        let row = |row| matrix.row(row).iter().map(|weight| rounded(*weight)).collect();
        Matrix {
            kind: selector.kind.into(),
            layer: selector.layer,
            head: selector.head,
            rows,
            columns: matrix.keys,
            causal: matches!(selector.kind, AttentionKind::Decoder | AttentionKind::Causal),
            biased: matrix.biased,
            part: None,
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

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
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

impl From<Part> for ScorePart {
    fn from(part: Part) -> ScorePart {
        match part {
            Part::Content => ScorePart::Content,
            Part::Bias => ScorePart::Bias,
        }
    }
}

impl From<BiasTerm> for TermName {
    fn from(term: BiasTerm) -> TermName {
        match term {
            BiasTerm::Distance => TermName::Distance,
            BiasTerm::ContentToPosition => TermName::ContentToPosition,
            BiasTerm::PositionToContent => TermName::PositionToContent,
            BiasTerm::Pairs => TermName::Pairs,
        }
    }
}
