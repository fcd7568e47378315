//! The text of tokens that come one by one: a new token is decoded with the few before it, not with all.
//!
//! What a token adds depends on its neighbours. The first token of a text loses its space; a space at the end may appear only
//! with the next word; several tokens may be the bytes of one character. So there are marks, at which the text is certain
//! whatever follows, and between any two of which something can be seen. Tokens behind the last mark are decoded together with
//! those between the last two: what both have in common is known, and the rest is new.

use attentive_tasks::{Codec, Error, PromptCodec};
use attentive_text::tokenizer::{Side, Tokenizer};

/// What a tokenizer writes for the bytes of half a character.
const INCOMPLETE: char = char::REPLACEMENT_CHARACTER;

/// What makes text of tokens.
pub(crate) trait Spell {
    /// The text of tokens.
    fn spell(&self, tokens: &[u32]) -> Result<String, Error>;

    /// What the tokens are of.
    fn tokenizer(&self) -> &Tokenizer;

    /// The piece that a token stands for.
    fn piece(&self, token: u32) -> Option<String> {
        self.tokenizer().piece(token, Side::Target)
    }
}

impl Spell for Codec {
    fn spell(&self, tokens: &[u32]) -> Result<String, Error> {
        self.text(tokens)
    }

    fn tokenizer(&self) -> &Tokenizer {
        Codec::tokenizer(self)
    }
}

impl Spell for PromptCodec {
    fn spell(&self, tokens: &[u32]) -> Result<String, Error> {
        self.text(tokens)
    }

    fn tokenizer(&self) -> &Tokenizer {
        PromptCodec::tokenizer(self)
    }
}

/// Tokens and their text.
#[derive(Debug, Default)]
pub(crate) struct Detokenizer {
    tokens: Vec<u32>,
    text: String,
    /// In order; the beginning is a mark without a word.
    marks: Vec<Mark>,
}

/// A place that the text is certain up to.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    tokens: usize,
    bytes: usize,
}

impl Detokenizer {
    /// Goes on with other tokens. Only those behind the common beginning of both are decoded.
    pub fn set(&mut self, codec: &impl Spell, tokens: &[u32]) -> Result<(), Error> {
        let common = self.tokens.iter().zip(tokens).take_while(|(old, new)| old == new).count();
        self.marks.truncate(self.marks.partition_point(|mark| mark.tokens <= common));
        let last = self.marks.last().copied().unwrap_or_default();
        self.tokens.truncate(last.tokens);
        self.text.truncate(last.bytes);
        tokens[last.tokens..].iter().try_for_each(|&token| self.push(codec, token))
    }

    /// Adds a token.
    pub fn push(&mut self, codec: &impl Spell, token: u32) -> Result<(), Error> {
        self.tokens.push(token);
        let last = self.marks.last().copied().unwrap_or_default();
        let begin = self.window();
        let known = codec.spell(&self.tokens[begin..last.tokens])?;
        let whole = codec.spell(&self.tokens[begin..])?;
        match whole.strip_prefix(&*known) {
            Some(new) => self.text.replace_range(last.bytes.., new),
            None => {
                // A tokenizer that takes back what it has written has no marks before this place.
                self.text = codec.spell(&self.tokens)?;
                self.marks.clear();
            }
        }
        let last = self.marks.last().copied().unwrap_or_default();
        let new = &self.text[last.bytes..];
        if !new.trim().is_empty() && !new.ends_with(INCOMPLETE) && !is_byte(codec, token) {
            self.marks.push(Mark { tokens: self.tokens.len(), bytes: self.text.len() });
        }
        Ok(())
    }

    /// What the text would get from one more token, which it does not get.
    pub fn would_add(&self, codec: &impl Spell, token: u32) -> Result<String, Error> {
        let window = &self.tokens[self.window()..];
        let known = codec.spell(window)?;
        let whole = codec.spell(&[window, &[token]].concat())?;
        let new = whole.strip_prefix(known.trim_end_matches(INCOMPLETE)).unwrap_or_default();
        Ok(new.trim_end_matches(INCOMPLETE).to_owned())
    }

    /// The first token that a new one is decoded with.
    fn window(&self) -> usize {
        self.marks.iter().rev().nth(1).map_or(0, |mark| mark.tokens)
    }

    /// The text, without half a character at its end.
    pub fn text(&self) -> &str {
        self.text.trim_end_matches(INCOMPLETE)
    }

    /// How many bytes of the text come from the first `tokens` tokens, whatever follows them.
    pub fn certain(&self, tokens: usize) -> usize {
        let marks = self.marks.partition_point(|mark| mark.tokens <= tokens);
        self.marks[..marks].last().map_or(0, |mark| mark.bytes)
    }
}

/// Whether a token is one byte of a character, as `<0xE4>` is. Some tokenizers decode a row of them anew with each that comes.
fn is_byte(codec: &impl Spell, token: u32) -> bool {
    let piece = codec.piece(token);
    piece.is_some_and(|piece| piece.len() == 6 && piece.starts_with("<0x") && piece.ends_with('>'))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use attentive_generate::{Random, Spec};
    use attentive_text::tokenizer::Tokenizer;
    use std::path::Path;
    use std::sync::Arc;

    const MODELS: [&str; 7] =
        ["marian", "unigram.model", "bpe_bytes.model", "bpe_symbols.model", "gpt2", "bert", "json"];

    /// The codec of a golden tokenizer.
    pub(crate) fn codec(model: &str) -> Codec {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/text").join(model);
        let tokenizer = Tokenizer::load(folder).unwrap_or_else(|error| panic!("{error}"));
        let spec = Spec {
            source_vocabulary: tokenizer.vocabulary_size(Side::Source),
            vocabulary: tokenizer.vocabulary_size(Side::Target),
            start: 0,
            eos: 0,
            never: None,
            max_source: 512,
            max_target: 512,
            decoder_layers: 1,
            continues: false,
        };
        Codec::new(Arc::new(tokenizer), spec, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn encode(codec: &Codec, text: &str) -> Vec<u32> {
        codec.tokenizer().encode_plain(text, Side::Target).unwrap()
    }

    /// The text of tokens, decoded all at once.
    fn whole(codec: &Codec, tokens: &[u32]) -> String {
        codec.text(tokens).unwrap().trim_end_matches(INCOMPLETE).to_owned()
    }

    #[test]
    fn a_text_is_the_same_however_its_tokens_come() {
        let text = "A running dog, schläft:  世界 🙂🙂 don't.\tÉtude n° 7 -- ";
        for model in MODELS {
            let codec = codec(model);
            let random = Random::new(7);
            let any = |at| random.bits(at) % codec.spec().vocabulary as u32;
            for tokens in [encode(&codec, text), (0..300).map(any).collect()] {
                let mut text = Detokenizer::default();
                for (end, &token) in tokens.iter().enumerate() {
                    let expected = text.text().to_owned() + &text.would_add(&codec, token).unwrap();
                    text.push(&codec, token).unwrap();
                    assert_eq!(text.text(), whole(&codec, &tokens[..=end]), "{model} {end}");
                    assert_eq!(text.text(), expected, "{model} {end}");
                    let certain = &text.text()[..text.certain(end + 1)];
                    assert!(whole(&codec, &tokens).starts_with(certain), "{model} {end}: {certain}");
                }
            }
        }
    }

    #[test]
    fn tokens_that_change_change_the_text_behind_them_only() {
        for model in MODELS {
            let codec = codec(model);
            let [first, second] = ["A dog runs 世界.", "A dog sleeps 世x"].map(|text| encode(&codec, text));
            let mut text = Detokenizer::default();
            for tokens in [&first[..], &second, &second[..2], &first, &[], &second] {
                text.set(&codec, tokens).unwrap();
                assert_eq!(text.text(), whole(&codec, tokens), "{model}");
            }
        }
    }

    #[test]
    fn a_token_is_decoded_with_few_others() {
        for model in MODELS {
            let codec = codec(model);
            let mut text = Detokenizer::default();
            for token in encode(&codec, &"A dog runs. ".repeat(50)) {
                text.push(&codec, token).unwrap();
                assert!(text.tokens.len() - text.window() <= 4, "{model}: {text:?}");
            }
        }
    }
}
