//! Text to what a model reads, and back: what all who translate text share.

use super::Translated;
use super::split::sentences;
use super::unknown::{self, Copied, UnknownWord};
use crate::alignment::{Link, align};
use crate::attention::AttentionMatrix;
use crate::error::Error;
use crate::hypothesis::Hypothesis;
use crate::languages::{TargetLanguages, split as language};
use crate::seq2seq::Spec;
use attentive_text::tokenizer::{Side, Tokenizer};
use std::sync::Arc;

/// A tokenizer with what it must know of its model.
#[derive(Debug, Clone)]
pub struct Codec {
    tokenizer: Arc<Tokenizer>,
    spec: Spec,
    /// The token of a source that stands for what has no piece.
    unk: Option<u32>,
}

/// What a model reads at once: a line, or as many of its sentences as fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The tokens, with the end token.
    pub source: Vec<u32>,
    /// How many words they are, without the language token.
    pub words: usize,
    /// How many tokens were cut off because a sentence was too long.
    pub cut: usize,
    /// The words with characters that the vocabulary has no piece for: mostly none.
    pub unknown: Vec<UnknownWord>,
}

impl Part {
    /// Whether an alignment would let unknown words be copied.
    pub fn wants_alignment(&self) -> bool {
        unknown::can_copy(&self.unknown)
    }
}

/// What was written for a part, with what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct WrittenPart<'a> {
    /// The translation.
    pub hypothesis: &'a Hypothesis,
    /// Its alignment, if it is wanted.
    pub links: &'a [Link],
    /// How many words the parts before it have.
    pub words_before: usize,
    /// The unknown words of its source.
    pub unknown: &'a [UnknownWord],
}

impl Codec {
    /// A tokenizer for a model, if it belongs to it.
    pub fn new(tokenizer: Arc<Tokenizer>, spec: Spec) -> Result<Codec, Error> {
        for (side, vocabulary) in [(Side::Source, spec.source_vocabulary), (Side::Target, spec.vocabulary)] {
            let tokens = tokenizer.vocabulary_size(side);
            if tokens > vocabulary {
                return Err(Error::Vocabulary { tokenizer: tokens, model: vocabulary });
            }
        }
        let unk = tokenizer.special(Side::Source).unk;
        Ok(Codec { tokenizer, spec, unk })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// What search knows of the model.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The tokens of a line that the model can read at once; others are refused.
    pub fn whole(&self, line: &str) -> Result<Vec<u32>, Error> {
        let (source, most) = (self.encode(line)?, self.spec.max_source);
        if source.len() > most { Err(Error::LongSource { tokens: source.len(), most }) } else { Ok(source) }
    }

    /// A line that is not empty as a model reads it: whole, or sentence by sentence if it is too long for that.
    pub fn parts(&self, line: &str) -> Result<Vec<Part>, Error> {
        let most = self.spec.max_source;
        let whole = self.encode(line)?;
        if whole.len() <= most {
            let text = language(line).1;
            let unknown = self.unknown(text, &whole);
            return Ok(vec![Part { source: whole, words: words_of(text), cut: 0, unknown }]);
        }
        // Every part is in the same language.
        let (language, text) = language(line);
        let with_language = |part: &str| format!("{language}{part}");
        let part = |text: &str| {
            let mut source = self.encode(&with_language(text))?;
            let cut = source.len().saturating_sub(most);
            // The end stays.
            source.drain(source.len() - 1 - cut..source.len() - 1);
            let unknown = self.unknown(text, &source);
            Ok(Part { source, words: words_of(text), cut, unknown })
        };
        // Models of sentences lose what is behind the first ones if they read many at once, though they could.
        sentences(text).into_iter().map(|sentence| part(sentence.trim())).collect()
    }

    /// The words of a text, with or without its language token, that have an unknown token among their tokens.
    pub(super) fn unknown(&self, text: &str, tokens: &[u32]) -> Vec<UnknownWord> {
        match self.unk.filter(|unk| tokens.contains(unk)) {
            Some(unk) => unknown::find(&self.tokenizer, language(text).1, tokens, unk),
            None => Vec::new(),
        }
    }

    /// The tokens of a text, with the end token.
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let mut source = self.tokenizer.encode(text, Side::Source)?;
        if source.last() != Some(&self.spec.eos) {
            source.push(self.spec.eos);
        }
        Ok(source)
    }

    /// The tokens of the beginning of a translation.
    pub fn prefix(&self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.tokenizer.encode_plain(text, Side::Target)?)
    }

    /// The text of what was written, in one line.
    pub fn text(&self, tokens: &[u32]) -> Result<String, Error> {
        Ok(self.tokenizer.decode(tokens)?.replace(['\n', '\r'], " "))
    }

    /// Adds the translation of a part to what there is already, with `gap` between them.
    pub fn append(&self, whole: &mut Translated, gap: &str, part: WrittenPart) -> Result<(), Error> {
        let WrittenPart { hypothesis, links, words_before, unknown } = part;
        let target_words = words_of(&whole.text);
        let Copied { text, links, lost } = unknown::copy(self.text(hypothesis.content())?, links, unknown);
        let link = |(source, target): &Link| (words_before + source, target_words + target);
        whole.alignment.extend(links.iter().map(link));
        whole.text.push_str(gap);
        whole.text.push_str(&text);
        whole.lost.push_str(&lost);
        whole.score += hypothesis.score;
        whole.tokens.extend(&hypothesis.tokens);
        whole.token_scores.extend(&hypothesis.token_scores);
        Ok(())
    }

    /// Which word comes from which, by the cross attention of a source and what was written for it.
    pub fn align(&self, attention: &AttentionMatrix, source: &[u32], target: &[u32]) -> Vec<Link> {
        let words = |tokens, side| self.tokenizer.words(tokens, side);
        align(attention, &words(source, Side::Source), &words(target, Side::Target))
    }

    /// The languages that a model for several of them can be asked for: `de` of the token `>>de<<`.
    pub fn target_languages(&self) -> Vec<String> {
        TargetLanguages::of(&self.tokenizer).codes().to_vec()
    }
}

fn words_of(text: &str) -> usize {
    text.split_whitespace().count()
}
