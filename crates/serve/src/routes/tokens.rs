//! Tokens as answers have them.

use crate::model::Model;
use attentive_text::tokenizer::Side;
use serde::Serialize;

/// One token.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Token {
    id: u32,
    /// The piece of text, as the tokenizer writes it.
    piece: String,
    /// Which word it belongs to, counted from 0; none for what is no text.
    word: Option<usize>,
    /// The log of its probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    logprob: Option<f32>,
}

/// Tokens of a source or a target.
pub(super) fn tokens(model: &Model, ids: &[u32], side: Side, scores: Option<&[f32]>) -> Vec<Token> {
    let words = model.codec.tokenizer().words(ids, side);
    let token = |(place, &id): (usize, &u32)| Token {
        id,
        piece: model.codec.tokenizer().piece(id, side).unwrap_or_default(),
        word: words[place],
        logprob: scores.map(|scores| finite(scores[place])),
    };
    ids.iter().enumerate().map(token).collect()
}

/// JSON has no infinities: the log of 0 is a very small number.
pub(super) fn finite(score: f32) -> f32 {
    if score.is_finite() { score } else { f32::MIN }
}
