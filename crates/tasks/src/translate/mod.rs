//! Text to text, line by line.
//!
//! A line is cut into parts that are translated each for itself: sentences, as [`Split`] says, or the whole line. Parts are
//! encoded, decoded and joined again with the white space that was between them; a sentence that is too long for the model is
//! read in pieces. Lines come back in the order in which they went in.

mod codec;
mod cut;
mod folder;
mod html;
mod instruction;
mod languages;
mod reading;
mod split;
mod spoken;
mod unknown;

pub use codec::{Codec, WrittenPart};
pub use cut::{Cut, Part};
pub use folder::ModelFolder;
pub use html::TranslatedHtml;
pub use instruction::Instruction;
pub use languages::{TargetLanguages, named_language};
pub use reading::{Reading, languages_of_name, source_language, tokenizer_languages};
pub use split::Split;
pub use spoken::SpokenLanguages;
pub use unknown::UnknownWord;

use crate::error::Error;
use attentive_generate::{
    AttentionMatrix, AttentionSelector, Generator, Hypothesis, LengthPenalty, Link, Options, Request,
    Seq2Seq, best_first,
};
use attentive_text::tokenizer::Tokenizer;
use std::collections::VecDeque;

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Translation {
    /// The translations, best first: as many as were asked for, if there are so many.
    pub best: Vec<Translated>,
    /// The tokens of the source.
    pub source_tokens: usize,
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
    generator: Generator,
    codec: Codec,
    prefix: Vec<u32>,
    split: Split,
    /// What alignments are made from, if the caller wants them.
    selector: Option<AttentionSelector>,
    /// All lines, in order, from the next one on that is to be handed out.
    lines: VecDeque<OpenLine>,
    /// How many parts all lines have, where a line without parts counts as one.
    parts: usize,
}

/// A line that is being translated.
struct OpenLine {
    cut: Cut,
    /// What was found for its first parts.
    found: Vec<Found>,
}

/// What was found for a part.
struct Found {
    hypotheses: Vec<Hypothesis>,
    /// The alignment of each hypothesis, if something needs them.
    links: Vec<Vec<Link>>,
}

impl Translator {
    /// A translator with nothing to do; see [`Generator::with_copies`].
    pub fn new(copies: Vec<Box<dyn Seq2Seq>>, codec: Codec, options: Options) -> Result<Translator, Error> {
        let generator = Generator::with_copies(copies, options)?;
        Ok(Translator {
            generator,
            codec,
            prefix: Vec::new(),
            split: Split::default(),
            selector: None,
            lines: VecDeque::new(),
            parts: 0,
        })
    }

    /// Says what of a line is translated for itself.
    pub fn with_split(mut self, split: Split) -> Translator {
        self.split = split;
        self
    }

    /// Begins the translation of every line with this text.
    pub fn with_prefix(mut self, text: &str) -> Result<Translator, Error> {
        self.prefix = self.codec.prefix(text)?;
        Ok(self)
    }

    /// Says which word comes from which.
    pub fn with_alignments(mut self) -> Translator {
        self.selector = Some(AttentionSelector::for_alignment(&self.generator.model().spec()));
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
        Ok(self.translate_while(lines, |_| true)?.unwrap_or_default())
    }

    /// Translates lines as long as `goes_on`, which gets the number of those that are done, says so; none if it says no.
    fn translate_while<S: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = S>,
        goes_on: impl FnMut(usize) -> bool,
    ) -> Result<Option<Vec<Translation>>, Error> {
        let translations = self.translate_all(lines, goes_on);
        if !matches!(translations, Ok(Some(_))) {
            // Sentences that have begun are dropped.
            self.forget();
            self.generator.clear();
        }
        translations
    }

    fn translate_all<S: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = S>,
        mut goes_on: impl FnMut(usize) -> bool,
    ) -> Result<Option<Vec<Translation>>, Error> {
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
                return Ok(Some(translations));
            }
            if !goes_on(translations.len()) {
                return Ok(None);
            }
            self.step()?;
            while let Some(translation) = self.pop()? {
                translations.push(translation);
            }
        }
    }

    /// The `count` most probable ways in which the translation of a line can go on behind the prefix, best first. A line that
    /// is too long for the model is refused. What was pushed before is forgotten.
    pub fn alternatives(&mut self, line: &str, count: usize) -> Result<Vec<Translated>, Error> {
        self.forget();
        let part = self.codec.whole(line)?;
        let request = Request { source: part.source.clone(), prefix: self.prefix.clone() };
        let found = self.generator.alternatives(request, count)?;
        found.into_iter().map(|hypothesis| self.codec.translated(&part, hypothesis)).collect()
    }

    fn forget(&mut self) {
        self.lines.clear();
        self.parts = 0;
    }

    /// Adds a line behind those that are there.
    pub fn push(&mut self, line: &str) -> Result<(), Error> {
        let cut = self.codec.cut(line, "", self.split)?;
        // Only the first can fail, with the prefix, so that all of a line's parts are pushed or none.
        let mut prefix = self.prefix.clone();
        for part in &cut.parts {
            let request = Request { source: part.source.clone(), prefix: std::mem::take(&mut prefix) };
            self.generator.push(request)?;
        }
        self.parts += cut.parts.len().max(1);
        self.lines.push_back(OpenLine { cut, found: Vec::new() });
        Ok(())
    }

    /// Whether there is too little to do for decoding as many lines at once as could be.
    pub fn has_room(&self) -> bool {
        self.parts < Generator::QUEUED_BATCHES * self.options().batch
    }

    /// Says that no further line is to be expected; see [`Generator::expect_no_more`].
    pub fn expect_no_more(&mut self) {
        self.generator.expect_no_more();
    }

    /// Whether there is no line in here.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Writes some tokens, thirty-two at least and twice as many at most if there is so much to do, of every part of a
    /// line that is being translated.
    pub fn step(&mut self) -> Result<(), Error> {
        self.generator.steps(Generator::STEPS_AT_ONCE);
        let penalty = self.options().penalty;
        let mut filled = Vec::new();
        'all: for (number, line) in self.lines.iter_mut().enumerate() {
            while !line.is_done() {
                let Some(mut hypotheses) = self.generator.pop() else { break 'all };
                let place = line.found.len();
                if place == 0 && !self.prefix.is_empty() {
                    hypotheses = with_prefix_counted(hypotheses, penalty);
                }
                if self.selector.is_some() || line.cut.parts[place].wants_alignment() {
                    filled.push((number, place));
                }
                line.found.push(Found { hypotheses, links: Vec::new() });
            }
        }
        if filled.is_empty() {
            return Ok(());
        }
        let selector =
            self.selector.unwrap_or_else(|| AttentionSelector::for_alignment(&self.generator.model().spec()));
        self.align(selector, &filled)
    }

    /// The translation of the next line in order, if it is there.
    pub fn pop(&mut self) -> Result<Option<Translation>, Error> {
        let Some(OpenLine { cut, found }) = self.lines.pop_front_if(|line| line.is_done()) else {
            return Ok(None);
        };
        self.parts -= cut.parts.len().max(1);
        let written: Vec<WrittenPart> = found.iter().map(Found::written).collect();
        let mut best = self.codec.join(&cut, &written)?;
        if self.selector.is_none() {
            // What unknown words were placed by is not for the caller.
            best.iter_mut().for_each(|translated| translated.alignment.clear());
        }
        Ok(Some(Translation { best, source_tokens: cut.source_tokens() }))
    }

    /// Aligns the hypotheses of some parts, given by their lines and their places in them.
    fn align(&mut self, selector: AttentionSelector, places: &[(usize, usize)]) -> Result<(), Error> {
        let part = |&(line, place): &(usize, usize)| {
            let line = &self.lines[line];
            let source = &line.cut.parts[place].source[..];
            line.found[place].hypotheses.iter().map(move |found| (source, &found.tokens[..]))
        };
        let pairs: Vec<(&[u32], &[u32])> = places.iter().flat_map(part).collect();
        let matrices = self.generator.model().attention(&pairs, selector)?;
        let align = |((source, target), matrix): (&(&[u32], &[u32]), &AttentionMatrix)| {
            self.codec.align(matrix, source, target)
        };
        let links = pairs.iter().zip(&matrices).map(align);
        let mut links = links.collect::<Vec<_>>().into_iter();
        for &(line, place) in places {
            let found = &mut self.lines[line].found[place];
            found.links = links.by_ref().take(found.hypotheses.len()).collect();
        }
        Ok(())
    }
}

/// Scores as if the model had found the prefix, best first.
fn with_prefix_counted(found: Vec<Hypothesis>, penalty: LengthPenalty) -> Vec<Hypothesis> {
    let mut found: Vec<_> = found.into_iter().map(|one| one.with_prefix_counted(penalty)).collect();
    best_first(&mut found);
    found
}

impl OpenLine {
    /// Whether something was found for all parts.
    fn is_done(&self) -> bool {
        self.found.len() == self.cut.parts.len()
    }
}

impl Found {
    fn written(&self) -> WrittenPart<'_> {
        WrittenPart { hypotheses: &self.hypotheses, links: &self.links }
    }
}
