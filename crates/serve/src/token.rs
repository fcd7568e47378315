//! Tokens as answers have them.

use attentive_text::tokenizer::{Encoding, Side, Source, Tokenizer};
use serde::Serialize;

/// One token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Token {
    /// Its number in the vocabulary.
    pub id: u32,
    /// The piece of text, as the tokenizer writes it; where that writes letters for bytes, as people read it.
    pub piece: String,
    /// Which word it belongs to, counted from 0; none for what is no text.
    pub word: Option<usize>,
    /// The log of its probability, where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f32>,
}

/// Tokens of a source or a target.
pub(crate) fn tokens(tokenizer: &Tokenizer, ids: &[u32], side: Side, scores: Option<&[f32]>) -> Vec<Token> {
    let words = tokenizer.words(ids, side);
    let token = |(place, &id): (usize, &u32)| Token {
        id,
        piece: tokenizer.readable(id, side).unwrap_or_default(),
        word: words[place],
        logprob: scores.map(|scores| finite(scores[place])),
    };
    ids.iter().enumerate().map(token).collect()
}

/// Tokens of a text as an encoder reads it.
pub(crate) fn tokens_of(tokenizer: &Tokenizer, encoding: &Encoding) -> Vec<Token> {
    let token = |(&id, source): (&u32, &Option<Source>)| Token {
        id,
        piece: tokenizer.readable(id, Side::Source).unwrap_or_default(),
        word: source.map(|source| source.word),
        logprob: None,
    };
    encoding.ids.iter().zip(&encoding.sources).map(token).collect()
}

/// A score in an answer that is put together by hand: with the digits that `f32` needs, and no more.
pub(crate) fn number(score: f32) -> f64 {
    finite(score).to_string().parse().unwrap_or(f64::from(score))
}

/// JSON has no infinities: the log of 0 is a very small number.
pub(crate) fn finite(score: f32) -> f32 {
    if score.is_finite() { score } else { f32::MIN }
}
