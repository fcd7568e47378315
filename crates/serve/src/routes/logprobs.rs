//! The log-probabilities of the tokens of an answer, and of those that were most probable in their places.

use crate::detokenizer::Detokenizer;
use attentive_tasks::{Codec, Cut, Translated};
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

/// The tokens of an answer without end tokens. What stands before a part of the text belongs to the first token of the part. `top` has
/// the most probable tokens in the place of each; it is empty if they were not asked for.
pub(super) fn scored(codec: &Codec, cut: &Cut, best: &Translated, top: &[Vec<Best>]) -> Vec<Scored> {
    let (mut part, mut gap) = (0, String::new());
    let mut so_far = Detokenizer::default();
    let mut begins_part = true;
    let mut tokens: Vec<Scored> = Vec::new();
    for (place, (&token, &score)) in best.tokens.iter().zip(&best.token_scores).enumerate() {
        if begins_part && part < cut.parts.len() {
            let before = tokens.last().map_or("", |token| &token.text);
            gap.push_str(cut.gap(part, before, &so_far.would_add(codec, token).unwrap_or_default()));
        }
        begins_part = codec.is_end(token);
        if begins_part {
            part += 1;
            so_far = Detokenizer::default();
            continue;
        }
        let top = top.get(place).map_or(&[][..], Vec::as_slice);
        let top = top.iter().map(|other| (name(codec, &gap, &so_far, other.token), other.score)).collect();
        let before = so_far.text().len();
        let text = so_far.push(codec, token).ok().and_then(|()| so_far.text().get(before..));
        let text = std::mem::take(&mut gap) + text.unwrap_or_default();
        tokens.push(Scored { text, score, top });
    }
    tokens
}

/// What a token would add to a text, or its piece where it adds nothing that can be seen, such as the end token.
fn name(codec: &Codec, gap: &str, so_far: &Detokenizer, token: u32) -> String {
    match so_far.would_add(codec, token).unwrap_or_default() {
        text if text.is_empty() => codec.tokenizer().piece(token, Side::Target).unwrap_or_default(),
        text => format!("{gap}{text}"),
    }
}
