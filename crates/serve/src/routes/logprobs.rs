//! The log-probabilities of the tokens of an answer, and of those that were most probable in their places.

use crate::detokenizer::{Detokenizer, Spell};
use attentive_tasks::{Codec, Cut, Translated};
use attentive_tensor::Best;

/// A token of an answer.
#[derive(Debug)]
pub(super) struct Scored {
    /// What it adds to the text; of the tokens of one character the last adds it.
    pub text: String,
    /// The log of its probability; none before which there is nothing.
    pub score: Option<f32>,
    /// The most probable tokens in its place, best first, if they were asked for.
    pub top: Vec<(String, f32)>,
}

/// Tokens one after the other, as they become text.
#[derive(Debug)]
pub(super) struct Speller<'a, S> {
    codec: &'a S,
    so_far: Detokenizer,
}

impl<'a, S: Spell> Speller<'a, S> {
    /// The beginning of a text.
    pub fn new(codec: &'a S) -> Speller<'a, S> {
        Speller { codec, so_far: Detokenizer::default() }
    }

    /// The next token, behind `gap`, which is no text of a token, with the most probable ones in its place.
    pub fn next(&mut self, gap: &str, token: u32, score: Option<f32>, top: &[Best]) -> Scored {
        let top = top.iter().map(|other| (self.name(gap, other.token), other.score)).collect();
        let before = self.so_far.text().len();
        let text = self.so_far.push(self.codec, token).ok().and_then(|()| self.so_far.text().get(before..));
        Scored { text: gap.to_owned() + text.unwrap_or_default(), score, top }
    }

    /// What a token would add.
    fn would_add(&self, token: u32) -> String {
        self.so_far.would_add(self.codec, token).unwrap_or_default()
    }

    /// What a token would add, or its piece where it adds nothing that can be seen, such as the end token.
    fn name(&self, gap: &str, token: u32) -> String {
        match self.would_add(token) {
            text if text.is_empty() => self.codec.piece(token).unwrap_or_default(),
            text => format!("{gap}{text}"),
        }
    }
}

/// The tokens of a translation without end tokens. What stands before a part of the text belongs to the first token of the part. `top`
/// has the most probable tokens in the place of each; it is empty if they were not asked for.
pub(super) fn scored(codec: &Codec, cut: &Cut, best: &Translated, top: &[Vec<Best>]) -> Vec<Scored> {
    let (mut part, mut gap) = (0, String::new());
    let mut speller = Speller::new(codec);
    let mut begins_part = true;
    let mut tokens: Vec<Scored> = Vec::new();
    for (place, (&token, &score)) in best.tokens.iter().zip(&best.token_scores).enumerate() {
        if begins_part && part < cut.parts.len() {
            let before = tokens.last().map_or("", |token| &token.text);
            gap.push_str(cut.gap(part, before, &speller.would_add(token)));
        }
        begins_part = codec.is_end(token);
        if begins_part {
            part += 1;
            speller = Speller::new(codec);
            continue;
        }
        let top = top.get(place).map_or(&[][..], Vec::as_slice);
        tokens.push(speller.next(&std::mem::take(&mut gap), token, Some(score), top));
    }
    tokens
}

/// How many of the first tokens a text of so many bytes has something of.
pub(super) fn room(tokens: &[Scored], bytes: usize) -> usize {
    let begins = tokens.iter().scan(0, |end, token| {
        let begin = *end;
        *end += token.text.len();
        Some(begin)
    });
    begins.take_while(|begin| *begin < bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_which_the_text_has_a_part_is_counted_and_one_behind_it_is_not() {
        let tokens = ["zwei", "und", "", "zwanzig"].map(|text| Scored {
            text: text.to_owned(),
            score: None,
            top: Vec::new(),
        });
        assert_eq!([0, 1, 4, 5, 7, 8, 99].map(|bytes| room(&tokens, bytes)), [0, 1, 1, 2, 2, 4, 4]);
    }
}
