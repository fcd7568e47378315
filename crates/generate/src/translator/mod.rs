//! Text to text, line by line.
//!
//! A line is encoded, decoded and written out again. One that is longer than the model can read is cut behind its
//! sentences into parts that are translated each for itself; a sentence that is too long is cut off. Lines come back in the
//! order in which they went in.

mod codec;
mod folder;
mod split;
mod unknown;

pub use codec::{Codec, Part, WrittenPart};
pub use folder::ModelFolder;
pub use unknown::UnknownWord;

use crate::alignment::Link;
use crate::attention::{AttentionMatrix, Look};
use crate::error::Error;
use crate::generator::{AHEAD, Generator, TOGETHER};
use crate::hypothesis::{Hypothesis, best_first};
use crate::options::Options;
use crate::request::Request;
use crate::seq2seq::Seq2Seq;
use attentive_text::tokenizer::Tokenizer;
use std::collections::VecDeque;
use std::sync::Arc;

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Translation {
    /// The translations, best first: as many as were asked for, if there are so many.
    pub best: Vec<Translated>,
    /// The tokens of the source.
    pub source_tokens: usize,
    /// How many of them were cut off because a sentence was too long.
    pub cut: usize,
}

/// One translation of a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Translated {
    /// The text.
    pub text: String,
    /// How sure the model is of all of it, the prefix included; see [`Hypothesis::with_prefix_counted`]. Of a line in several
    /// parts, the sum.
    pub score: f32,
    /// The tokens, end tokens included.
    pub tokens: Vec<u32>,
    /// The log of the probability of each token.
    pub token_scores: Vec<f32>,
    /// Which word comes from which, if that was asked for.
    pub alignment: Vec<Link>,
    /// The characters of the source that the model cannot read, and that could not be copied.
    pub lost: String,
}

/// Translates lines, as many at once as [`Options::batch`] says.
pub struct Translator {
    generator: Generator<Box<dyn Seq2Seq>>,
    codec: Codec,
    prefix: Vec<u32>,
    /// What alignments are made from, if they are wanted.
    look: Option<Look>,
    /// The parts of all lines, in order, from the next line on that is to be handed out.
    parts: VecDeque<OpenPart>,
}

/// A part of a line that is translated for itself: mostly the whole line.
#[derive(Default)]
struct OpenPart {
    part: Part,
    /// Whether the next part belongs to another line.
    ends_line: bool,
    /// None until they are there.
    hypotheses: Option<Vec<Hypothesis>>,
    /// Of each hypothesis, if they are wanted.
    alignments: Vec<Vec<Link>>,
}

impl Translator {
    /// A translator with nothing to do; see [`Generator::with_copies`].
    pub fn new(
        copies: Vec<Box<dyn Seq2Seq>>,
        tokenizer: Arc<Tokenizer>,
        options: Options,
    ) -> Result<Translator, Error> {
        let generator = Generator::with_copies(copies, options)?;
        let codec = Codec::new(tokenizer, generator.model().spec())?;
        Ok(Translator { generator, codec, prefix: Vec::new(), look: None, parts: VecDeque::new() })
    }

    /// Begins every translation with this text.
    pub fn with_prefix(mut self, text: &str) -> Result<Translator, Error> {
        self.prefix = self.codec.prefix(text)?;
        Ok(self)
    }

    /// Says which word comes from which.
    pub fn with_alignments(mut self) -> Translator {
        self.look = Some(Look::for_alignment(&self.generator.model().spec()));
        self
    }

    /// The options.
    pub fn options(&self) -> &Options {
        self.generator.options()
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.codec.tokenizer()
    }

    /// Translates lines, all of them, in order.
    pub fn translate<S: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = S>,
    ) -> Result<Vec<Translation>, Error> {
        let translations = self.translate_all(lines);
        if translations.is_err() {
            // What was begun belongs to nobody now.
            self.parts.clear();
            self.generator.clear();
        }
        translations
    }

    fn translate_all<S: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = S>,
    ) -> Result<Vec<Translation>, Error> {
        let (mut lines, mut translations) = (lines.into_iter(), Vec::new());
        loop {
            while self.has_room() {
                let Some(line) = lines.next() else {
                    self.expect_no_more();
                    break;
                };
                self.push(line.as_ref())?;
            }
            if self.is_empty() {
                return Ok(translations);
            }
            self.step()?;
            while let Some(translation) = self.pop()? {
                translations.push(translation);
            }
        }
    }

    /// The `count` most probable ways in which the translation of a line can go on behind the prefix, best first. A line that is too long for the model is refused. What was pushed before is forgotten.
    pub fn alternatives(&mut self, line: &str, count: usize) -> Result<Vec<Translated>, Error> {
        self.parts.clear();
        let source = self.codec.whole(line.trim())?;
        let unknown = self.codec.unknown(line, &source);
        let request = Request { source, prefix: self.prefix.clone() };
        let found = self.generator.alternatives(request, count)?;
        let whole = |hypothesis| {
            let mut whole = Translated::default();
            self.codec.append(
                &mut whole,
                "",
                WrittenPart { hypothesis, links: &[], words_before: 0, unknown: &unknown },
            )?;
            Ok(whole)
        };
        found.iter().map(whole).collect()
    }

    /// Adds a line behind those that are there.
    pub fn push(&mut self, line: &str) -> Result<(), Error> {
        let line = line.trim();
        if line.is_empty() {
            let hypotheses = Some(Vec::new());
            self.parts.push_back(OpenPart { ends_line: true, hypotheses, ..OpenPart::default() });
            return Ok(());
        }
        let parts = self.codec.parts(line)?;
        // Only the first can fail, with the prefix, so that all of a line's parts are pushed or none.
        let mut prefix = self.prefix.clone();
        for part in &parts {
            let request = Request { source: part.source.clone(), prefix: std::mem::take(&mut prefix) };
            self.generator.push(request)?;
        }
        self.parts.extend(parts.into_iter().map(|part| OpenPart { part, ..OpenPart::default() }));
        if let Some(last) = self.parts.back_mut() {
            last.ends_line = true;
        }
        Ok(())
    }

    /// Whether there is too little to do for decoding as many lines at once as could be.
    pub fn has_room(&self) -> bool {
        self.parts.len() < AHEAD * self.options().batch
    }

    /// Says that no further line is to be expected; see [`Generator::expect_no_more`].
    pub fn expect_no_more(&mut self) {
        self.generator.expect_no_more();
    }

    /// Whether there is no line in here.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Writes some tokens, thirty-two at least and twice as many at most if there is so much to do, of every part of a
    /// line that is being translated.
    pub fn step(&mut self) -> Result<(), Error> {
        self.generator.steps(TOGETHER);
        let first = self.parts.iter().take_while(|part| part.hypotheses.is_some()).count();
        let mut filled = Vec::new();
        for place in first..self.parts.len() {
            if self.parts[place].hypotheses.is_none() {
                let Some(hypotheses) = self.generator.pop() else { break };
                let hypotheses = self.with_prefix_counted(hypotheses);
                self.parts[place].hypotheses = Some(hypotheses);
                filled.push(place);
            }
        }
        if self.look.is_none() {
            filled.retain(|&place| self.parts[place].part.wants_alignment());
        }
        if filled.is_empty() {
            return Ok(());
        }
        let look = self.look.unwrap_or_else(|| Look::for_alignment(&self.generator.model().spec()));
        self.align(look, &filled)
    }

    /// Scores as if the model had found the prefix, best first.
    fn with_prefix_counted(&self, mut found: Vec<Hypothesis>) -> Vec<Hypothesis> {
        if !self.prefix.is_empty() {
            let penalty = self.options().penalty;
            found = found.into_iter().map(|one| one.with_prefix_counted(penalty)).collect();
            best_first(&mut found);
        }
        found
    }

    /// The translation of the next line in order, if it is there.
    pub fn pop(&mut self) -> Result<Option<Translation>, Error> {
        let Some(last) = self.parts.iter().position(|part| part.ends_line) else { return Ok(None) };
        if self.parts.range(..=last).any(|part| part.hypotheses.is_none()) {
            return Ok(None);
        }
        let parts: Vec<OpenPart> = self.parts.drain(..=last).collect();
        let most = parts.iter().map(|part| part.hypotheses().len()).max().unwrap_or(0);
        // Of a line in several parts, the second best has the second best of each, as far as there are any.
        let best = (0..most).map(|rank| self.join(&parts, rank));
        let mut best = best.collect::<Result<Vec<_>, _>>()?;
        if best.is_empty() {
            best.push(Translated::default());
        }
        let cut = parts.iter().map(|part| part.part.cut).sum();
        let source_tokens = parts.iter().map(|part| part.part.source.len()).sum::<usize>() + cut;
        Ok(Some(Translation { best, source_tokens, cut }))
    }

    /// Puts the translations of a line's parts together: of each the one of this rank, or else the last.
    fn join(&self, parts: &[OpenPart], rank: usize) -> Result<Translated, Error> {
        let mut whole = Translated::default();
        let mut words_before = 0;
        for part in parts {
            if let Some(last) = part.hypotheses().len().checked_sub(1) {
                let rank = rank.min(last);
                let links = part.alignments.get(rank).map(Vec::as_slice).unwrap_or_default();
                let hypothesis = &part.hypotheses()[rank];
                let unknown = &part.part.unknown[..];
                let written = WrittenPart { hypothesis, links, words_before, unknown };
                let gap = if whole.text.is_empty() { "" } else { " " };
                self.codec.append(&mut whole, gap, written)?;
            }
            words_before += part.part.words;
        }
        if self.look.is_none() {
            // What unknown words were placed by is not for the caller.
            whole.alignment.clear();
        }
        Ok(whole)
    }

    /// Aligns the hypotheses of some parts.
    fn align(&mut self, look: Look, places: &[usize]) -> Result<(), Error> {
        let parts = places.iter().map(|&place| &self.parts[place]);
        let pairs: Vec<(&[u32], &[u32])> = parts
            .flat_map(|part| part.hypotheses().iter().map(|found| (&part.part.source[..], &found.tokens[..])))
            .collect();
        let matrices = self.generator.model().attention(&pairs, look)?;
        let align = |((source, target), matrix): (&(&[u32], &[u32]), &AttentionMatrix)| {
            self.codec.align(matrix, source, target)
        };
        let links = pairs.iter().zip(&matrices).map(align);
        let mut links = links.collect::<Vec<_>>().into_iter();
        for &place in places {
            let count = self.parts[place].hypotheses().len();
            self.parts[place].alignments = links.by_ref().take(count).collect();
        }
        Ok(())
    }
}

impl OpenPart {
    fn hypotheses(&self) -> &[Hypothesis] {
        self.hypotheses.as_deref().unwrap_or_default()
    }
}
