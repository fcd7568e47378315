//! Text to what a model reads, and back: what all who translate text share.

use super::cut::{Cut, Words};
use super::{Reading, Split, Translated};
use crate::alignment::{Link, align};
use crate::attention::AttentionMatrix;
use crate::error::Error;
use crate::hypothesis::Hypothesis;
use crate::seq2seq::Spec;
use attentive_text::sentences;
use attentive_text::tokenizer::{Side, Tokenizer};
use std::sync::Arc;

/// A tokenizer with what it must know of its model.
#[derive(Debug, Clone)]
pub struct Codec {
    tokenizer: Arc<Tokenizer>,
    spec: Spec,
    reading: Reading,
}

/// What was written for a part of a text.
#[derive(Debug, Clone, Copy, Default)]
pub struct WrittenPart<'a> {
    /// The translations, best first.
    pub hypotheses: &'a [Hypothesis],
    /// The alignment of each; none if alignments are not wanted.
    pub links: &'a [Vec<Link>],
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
        Ok(Codec { tokenizer, spec, reading: Reading::default() })
    }

    /// The same for a model that is used to read this.
    pub fn with_reading(self, reading: Reading) -> Codec {
        Codec { reading, ..self }
    }

    /// What the model is used to read.
    pub fn reading(&self) -> &Reading {
        &self.reading
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

    /// A text of any length, line breaks included, as the model reads it. A line that names no target language itself is
    /// translated into `language`: a token such as `>>de<<` with a space behind it, or nothing. The language that a line
    /// begins with holds for all sentences of the line.
    pub fn cut(&self, text: &str, language: &str, split: Split) -> Result<Cut, Error> {
        let mut cut = Cut::new();
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                cut.push_space("\n");
            }
            let (before, line) = line.split_at(line.len() - line.trim_start().len());
            cut.push_space(before);
            let (named, line) = split_language(line);
            self.cut_line(&mut cut, if named.is_empty() { language } else { named }, line, split)?;
        }
        Ok(cut)
    }

    /// Adds the parts of a line that begins with no white space.
    fn cut_line(&self, cut: &mut Cut, language: &str, line: &str, split: Split) -> Result<(), Error> {
        let whole = line.trim_end();
        let by_sentence = match split {
            Split::Auto => !self.reading.paragraphs,
            Split::Sentences => true,
            Split::Lines => false,
        };
        if !by_sentence && !whole.is_empty() {
            let source = self.encode(&format!("{language}{whole}"))?;
            if source.len() <= self.spec.max_source {
                cut.push_part(whole, source, 0);
                cut.push_space(&line[whole.len()..]);
                return Ok(());
            }
        }
        let mut end = 0;
        for sentence in sentences::split(line, self.reading.language.as_deref()) {
            cut.push_space(&line[end..sentence.start]);
            end = sentence.end;
            self.cut_sentence(cut, language, &line[sentence])?;
        }
        cut.push_space(&line[end..]);
        Ok(())
    }

    /// Adds a sentence, in pieces behind its stops if it is too long. What is too long even then is cut off.
    fn cut_sentence(&self, cut: &mut Cut, language: &str, sentence: &str) -> Result<(), Error> {
        let whole = self.encode(&format!("{language}{sentence}"))?;
        if whole.len() <= self.spec.max_source {
            cut.push_part(sentence, whole, 0);
            return Ok(());
        }
        let mut end = 0;
        for piece in sentences::split_at_stops(sentence) {
            cut.push_space(&sentence[end..piece.start]);
            end = piece.end;
            let piece = &sentence[piece];
            let mut source = self.encode(&format!("{language}{piece}"))?;
            let surplus = source.len().saturating_sub(self.spec.max_source);
            // The end stays.
            source.drain(source.len() - 1 - surplus..source.len() - 1);
            cut.push_part(piece, source, surplus);
        }
        Ok(())
    }

    /// The translations of a text, best first and one at least, of what was written for each of its parts. The second best has
    /// the second best of each part; a part that has fewer repeats its last. Words are counted over the whole text.
    pub fn join(&self, cut: &Cut, written: &[WrittenPart]) -> Result<Vec<Translated>, Error> {
        let count = written.iter().map(|part| part.hypotheses.len()).max().unwrap_or(0);
        (0..count.max(1)).map(|rank| self.join_rank(cut, written, rank)).collect()
    }

    fn join_rank(&self, cut: &Cut, written: &[WrittenPart], rank: usize) -> Result<Translated, Error> {
        let mut whole = Translated::default();
        let mut words = Words::default();
        let mut push = |whole: &mut Translated, text: &str| {
            let before = words.before(text);
            words.push(text);
            whole.text.push_str(text);
            before
        };
        for (place, (part, written)) in cut.parts.iter().zip(written).enumerate() {
            let rank = rank.min(written.hypotheses.len().saturating_sub(1));
            let hypothesis = written.hypotheses.get(rank);
            let text = self.text(hypothesis.map_or(&[], Hypothesis::content))?;
            let gap = cut.gap(place, &whole.text, &text);
            push(&mut whole, gap);
            let words_before = push(&mut whole, &text);
            let links = written.links.get(rank).map_or(&[][..], Vec::as_slice);
            let link = |(source, target): &Link| (part.words_before + source, words_before + target);
            whole.alignment.extend(links.iter().map(link));
            if let Some(hypothesis) = hypothesis {
                whole.score += hypothesis.score;
                whole.tokens.extend(&hypothesis.tokens);
                whole.token_scores.extend(&hypothesis.token_scores);
            }
        }
        push(&mut whole, cut.end());
        Ok(whole)
    }

    /// One translation of what a model reads at once.
    pub fn translated(&self, hypothesis: Hypothesis) -> Result<Translated, Error> {
        Ok(Translated {
            text: self.text(hypothesis.content())?,
            score: hypothesis.score,
            tokens: hypothesis.tokens,
            token_scores: hypothesis.token_scores,
            alignment: Vec::new(),
        })
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

    /// Which word comes from which, by the cross attention of a source and what was written for it.
    pub fn align(&self, attention: &AttentionMatrix, source: &[u32], target: &[u32]) -> Vec<Link> {
        let words = |tokens, side| self.tokenizer.words(tokens, side);
        align(attention, &words(source, Side::Source), &words(target, Side::Target))
    }

    /// The languages that a model for several of them can be asked for: `de` of the token `>>de<<`.
    pub fn target_languages(&self) -> Vec<String> {
        let ids = 0..self.tokenizer.vocabulary_size(Side::Source) as u32;
        let code = |id| {
            let piece = self.tokenizer.piece(id, Side::Source)?;
            let (token, rest) = split_language(&piece);
            (!token.is_empty() && rest.is_empty()).then(|| token[2..token.len() - 2].to_owned())
        };
        ids.filter_map(code).collect()
    }
}

/// The language token that a line for a model of several languages begins with, with the white space behind it, and the rest.
fn split_language(line: &str) -> (&str, &str) {
    let token = line.strip_prefix(">>").and_then(|rest| rest.find("<<")).map_or(0, |end| end + 4);
    let space = line[token..].len() - line[token..].trim_start().len();
    line.split_at(if token > 0 { token + space } else { 0 })
}
