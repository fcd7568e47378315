//! Text to what a model reads, and back: what all who translate text share.

use super::cut::{Cut, Part, Words};
use super::instruction::Instruction;
use super::languages::{TargetLanguages, split_language};
use super::spoken::SpokenLanguages;
use super::unknown::{self, Copied, UnknownWord};
use super::{Reading, Split, Translated};
use crate::error::Error;
use crate::tokenizer::text_of;
use attentive_generate::{self as generate, AttentionMatrix, Hypothesis, Link, Options, Spec, align};
use attentive_text::sentences;
use attentive_text::tokenizer::{Side, Tokenizer};
use std::path::Path;
use std::sync::Arc;

/// A tokenizer with what it must know of its model.
#[derive(Debug, Clone)]
pub struct Codec {
    tokenizer: Arc<Tokenizer>,
    spec: Spec,
    reading: Reading,
    /// The tokens that end a target.
    ends: Vec<u32>,
    /// The token of a source that stands for what has no piece.
    unk: Option<u32>,
    /// The languages that have tokens, and the one that sources are in.
    spoken: SpokenLanguages,
    source_language: Option<u32>,
    /// The tokens that ask for a translation in words, before the text.
    instructions: Vec<Vec<u32>>,
}

/// What was written for a part of a text.
#[derive(Debug, Clone, Copy, Default)]
pub struct WrittenPart<'a> {
    /// The translations, best first.
    pub hypotheses: &'a [Hypothesis],
    /// The alignment of each; none if nothing needs it.
    pub links: &'a [Vec<Link>],
}

impl Codec {
    /// The tokenizer of a model's folder, if it belongs to the model.
    pub fn new(tokenizer: Arc<Tokenizer>, spec: Spec, folder: &Path) -> Result<Codec, Error> {
        for (side, vocabulary) in [(Side::Source, spec.source_vocabulary), (Side::Target, spec.vocabulary)] {
            let tokens = tokenizer.vocabulary_size(side);
            if tokens > vocabulary {
                let path = folder.to_owned();
                return Err(Error::Vocabulary { path, tokenizer: tokens, model: vocabulary });
            }
        }
        let unk = tokenizer.special(Side::Source).unk;
        let spoken = SpokenLanguages::of(&tokenizer);
        let (reading, ends) = (Reading::default(), vec![spec.eos]);
        let (source_language, instructions) = (None, Vec::new());
        Ok(Codec { tokenizer, spec, reading, ends, unk, spoken, source_language, instructions })
    }

    /// The same for a model that is used to read this.
    pub fn with_reading(self, reading: Reading) -> Codec {
        Codec { reading, ..self }
    }

    /// The languages that have tokens.
    pub fn spoken(&self) -> &SpokenLanguages {
        &self.spoken
    }

    /// The same for sources in the language of this token.
    pub fn with_source_language(self, language: u32) -> Codec {
        Codec { source_language: Some(language), ..self }
    }

    /// The same for a model that is asked in one of these ways. Their words are no words of a text.
    pub fn with_instructions(self, instructions: &[Instruction]) -> Result<Codec, Error> {
        let tokens = |one: &Instruction| self.tokenizer.encode_plain(one.words.trim_end(), Side::Source);
        let instructions = instructions.iter().map(tokens).collect::<Result<_, _>>()?;
        Ok(Codec { instructions, ..self })
    }

    /// The same for a model whose targets end as these options say.
    pub fn with_ends_of(self, options: &Options) -> Codec {
        if options.ends.is_empty() { self } else { Codec { ends: options.ends.clone(), ..self } }
    }

    /// Whether a target ends with this token.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
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

    /// A line that the model can read at once; others are refused.
    pub fn whole(&self, line: &str) -> Result<Part, Error> {
        let line = line.trim();
        let (source, most) = (self.encode(line)?, self.spec.max_source);
        if source.len() > most {
            return Err(generate::Error::LongSource { tokens: source.len(), most }.into());
        }
        Ok(self.part(split_language(line).1, source))
    }

    /// A text of any length, line breaks included, as the model reads it. A line that names no target language itself is
    /// translated into `language`: a token such as `>>de<<` or an [`Instruction`], with a space behind it, or nothing. The language that a line
    /// begins with holds for all sentences of the line.
    pub fn cut(&self, text: &str, language: &str, split: Split) -> Result<Cut, Error> {
        let mut cut = Cut::new();
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                cut.push_gap("\n");
            }
            let (before, line) = line.split_at(line.len() - line.trim_start().len());
            cut.push_gap(before);
            let (named, line) = split_language(line);
            self.cut_line(&mut cut, if named.is_empty() { language } else { named }, line, split)?;
        }
        Ok(cut)
    }

    /// Adds the parts of a line that begins with no white space.
    fn cut_line(&self, cut: &mut Cut, language: &str, line: &str, split: Split) -> Result<(), Error> {
        let reads_sentences = match split {
            Split::Auto | Split::Whole => !self.reading.paragraphs,
            Split::Sentences => true,
            Split::Lines => false,
        };
        let marker =
            if reads_sentences { sentences::marker(line, self.reading.language.as_deref()) } else { "" };
        cut.push_gap(marker);
        let line = &line[marker.len()..];
        let whole = line.trim_end();
        let by_sentence = reads_sentences && split != Split::Whole;
        if !by_sentence && !whole.is_empty() {
            let source = self.encode(&format!("{language}{whole}"))?;
            if source.len() <= self.spec.max_source {
                cut.push_part(whole, self.part(whole, source));
                cut.push_gap(&line[whole.len()..]);
                return Ok(());
            }
        }
        let mut end = 0;
        for sentence in sentences::split(line, self.reading.language.as_deref()) {
            cut.push_gap(&line[end..sentence.start]);
            end = sentence.end;
            let sentence = &line[sentence];
            // A model would invent something for a row of signs, such as a horizontal rule.
            if sentence.contains(char::is_alphanumeric) {
                self.cut_sentence(cut, language, sentence)?;
            } else {
                cut.push_gap(sentence);
            }
        }
        cut.push_gap(&line[end..]);
        Ok(())
    }

    /// Adds a sentence, in pieces behind its stops if it is too long.
    fn cut_sentence(&self, cut: &mut Cut, language: &str, sentence: &str) -> Result<(), Error> {
        let whole = self.encode(&format!("{language}{sentence}"))?;
        if whole.len() <= self.spec.max_source {
            cut.push_part(sentence, self.part(sentence, whole));
            return Ok(());
        }
        let mut end = 0;
        for piece in sentences::split_at_stops(sentence) {
            cut.push_gap(&sentence[end..piece.start]);
            end = piece.end;
            self.cut_piece(cut, language, &sentence[piece])?;
        }
        Ok(())
    }

    /// Adds a piece of a sentence, in halves if it is too long, and these in halves again: between words, or inside of one that
    /// has no end.
    fn cut_piece(&self, cut: &mut Cut, language: &str, piece: &str) -> Result<(), Error> {
        let source = self.encode(&format!("{language}{piece}"))?;
        if source.len() <= self.spec.max_source {
            cut.push_part(piece, self.part(piece, source));
            return Ok(());
        }
        let Some(middle) = sentences::middle(piece) else {
            let most = self.spec.max_source;
            return Err(generate::Error::LongSource { tokens: source.len(), most }.into());
        };
        let (before, after) = piece.split_at(middle);
        let (whole, rest) = (before.trim_end(), after.trim_start());
        self.cut_piece(cut, language, whole)?;
        let space = &piece[whole.len()..piece.len() - rest.len()];
        cut.push_gap(space);
        // In scripts without spaces the cut is between words.
        if space.is_empty() && sentences::need_space(whole, rest) {
            cut.join_next_without_space();
        }
        self.cut_piece(cut, language, rest)
    }

    /// A part of this text without its language token, of these tokens.
    fn part(&self, text: &str, source: Vec<u32>) -> Part {
        Part { unknown: self.unknown(text, &source), source, words_before: 0 }
    }

    /// The words of a text that have an unknown token among their tokens.
    fn unknown(&self, text: &str, tokens: &[u32]) -> Vec<UnknownWord> {
        match self.unk.filter(|unk| tokens.contains(unk)) {
            Some(unk) => unknown::find(&self.tokenizer, text, self.behind_language(tokens), unk),
            None => Vec::new(),
        }
    }

    /// The translations of a text, best first and one at least, of what was written for each of its parts. The second best has
    /// the second best of each part; a part that has fewer repeats its last. Words are counted over the whole text. Only the
    /// first parts may have been written.
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
            let links = written.links.get(rank).map_or(&[][..], Vec::as_slice);
            let Copied { text, links, lost } = self.copied(part, hypothesis, links)?;
            let gap = cut.gap(place, &whole.text, &text);
            let marks_before = push(&mut whole, gap);
            let words_before = push(&mut whole, &text);
            let link = |(source, target): &Link| (part.words_before + source, words_before + target);
            if !links.is_empty() {
                // The mark of a list stays what it is.
                let marks = gap.split_whitespace().count();
                let first = part.words_before - marks;
                whole.alignment.extend((0..marks).map(|mark| (first + mark, marks_before + mark)));
            }
            whole.alignment.extend(links.iter().map(link));
            whole.lost.push_str(&lost);
            if let Some(hypothesis) = hypothesis {
                whole.score += hypothesis.score;
                whole.tokens.extend(&hypothesis.tokens);
                whole.token_scores.extend(&hypothesis.token_scores);
            }
        }
        // Of a translation that was cut short, the text ends with what there is.
        if written.len() == cut.parts.len() {
            push(&mut whole, cut.end());
        }
        Ok(whole)
    }

    /// What was written for a part, with the unknown words that can be copied into it.
    fn copied(&self, part: &Part, hypothesis: Option<&Hypothesis>, links: &[Link]) -> Result<Copied, Error> {
        let text = self.text(hypothesis.map_or(&[], Hypothesis::content))?;
        Ok(unknown::copy(text, links, &part.unknown))
    }

    /// One translation of a part that is a text of its own, without an alignment.
    pub fn translated(&self, part: &Part, hypothesis: Hypothesis) -> Result<Translated, Error> {
        let Copied { text, lost, .. } = self.copied(part, Some(&hypothesis), &[])?;
        Ok(Translated {
            text,
            score: hypothesis.score,
            tokens: hypothesis.tokens,
            token_scores: hypothesis.token_scores,
            alignment: Vec::new(),
            lost,
        })
    }

    /// The tokens of a text, with the end token.
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let mut source = match self.source_language {
            Some(language) => {
                let text = self.tokenizer.encode_plain(text, Side::Source)?;
                [language].into_iter().chain(text).collect()
            }
            None => self.tokenizer.encode(text, Side::Source)?,
        };
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
        Ok(text_of(&self.tokenizer, tokens)?.replace(['\n', '\r'], " "))
    }

    /// Which word comes from which, by the cross attention of a source and what was written for it.
    pub fn align(&self, attention: &AttentionMatrix, source: &[u32], target: &[u32]) -> Vec<Link> {
        let words = |tokens, side| {
            let text = self.behind_language(tokens);
            let language = std::iter::repeat_n(None, tokens.len() - text.len());
            language.chain(self.tokenizer.words(text, side)).collect::<Vec<_>>()
        };
        align(attention, &words(source, Side::Source), &words(target, Side::Target))
    }

    /// Tokens without the language or the instruction that they begin with.
    fn behind_language<'a>(&self, tokens: &'a [u32]) -> &'a [u32] {
        match tokens {
            [first, text @ ..] if self.spoken.has(*first) => text,
            _ => self.instructions.iter().find_map(|words| tokens.strip_prefix(&words[..])).unwrap_or(tokens),
        }
    }

    /// The languages that a model for several of them can be asked for: `de` of the token `>>de<<`.
    pub fn target_languages(&self) -> Vec<String> {
        TargetLanguages::of(&self.tokenizer).codes().to_vec()
    }
}
