//! The log-probabilities of the tokens of an answer, and of those that were most probable in their places.

use crate::detokenizer::Detokenizer;
use attentive_generate::{Codec, Translated};
use attentive_tensor::Best;
use attentive_text::tokenizer::Side;

/// A token of an answer.
#[derive(Debug)]
pub(super) struct Scored {
    /// What it adds to the text; of the tokens of one character the last adds it.
    pub text: String,
    pub score: f32,
    /// The most probable tokens in its place, best first, if they were asked for.
    pub top: Vec<(String, f32)>,
}

/// The tokens of an answer without end tokens. `top` has the most probable tokens in the place of each; it is empty if they were not
/// asked for.
pub(super) fn scored(codec: &Codec, best: &Translated, top: &[Vec<Best>]) -> Vec<Scored> {
    let mut so_far = Detokenizer::default();
    let mut tokens = Vec::new();
    for (place, (&token, &score)) in best.tokens.iter().zip(&best.token_scores).enumerate() {
        if token == codec.spec().eos {
            continue;
        }
        let top = top.get(place).map_or(&[][..], Vec::as_slice);
        let top = top.iter().map(|other| (name(codec, &so_far, other.token), other.score)).collect();
        let before = so_far.text().len();
        let text = so_far.push(codec, token).ok().and_then(|()| so_far.text().get(before..));
        tokens.push(Scored { text: text.unwrap_or_default().to_owned(), score, top });
    }
    tokens
}

/// What a token would add to a text, or its piece where it adds nothing that can be seen, such as the end token.
fn name(codec: &Codec, so_far: &Detokenizer, token: u32) -> String {
    let text = so_far.would_add(codec, token).unwrap_or_default();
    if text.is_empty() { codec.tokenizer().piece(token, Side::Target).unwrap_or_default() } else { text }
}
