//! Long texts to short ones.
//!
//! A text that is longer than the model reads is cut at the ends of sentences, into as few parts as can be. Each part is summarized
//! for itself, and the summaries are joined.

use crate::error::Error;
use crate::model::{self, TEXT_TO_TEXT};
use crate::prompt::PromptCodec;
use crate::tokenizer::tokenizer_of;
use attentive_generate::{Generator, Hypothesis, Options};
use attentive_model::families::Family;
use attentive_model::families::t5::T5Config;
use attentive_tensor::Backend;
use attentive_text::sentences;
use serde_json::Value;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// What `config.json` calls the task, and how a T5 is asked for it that says nothing of it.
const TASK: &str = "summarization";
const USUAL_PREFIX: &str = "summarize: ";

/// Texts to what a model summarizes at once, and back: what all who summarize share.
#[derive(Debug, Clone)]
pub struct SummaryCodec {
    codec: PromptCodec,
    /// What stands before each text.
    pub prefix: String,
    most: usize,
}

/// What is in the folder of a model that can summarize.
pub struct SummaryModel {
    copies: Vec<Box<dyn attentive_generate::Seq2Seq>>,
    /// What it reads and writes.
    pub codec: SummaryCodec,
    /// How the model wants to summarize, or else the default options.
    pub options: Options,
}

impl SummaryModel {
    /// Reads a folder once, to be decoded with on several backends side by side; with weights in int8 if that is asked for. What its
    /// `config.json` says of the task counts, as for the pipelines of transformers.
    ///
    /// # Panics
    /// If there is no backend.
    pub fn open_on(backends: &[Arc<dyn Backend>], int8: bool, folder: &Path) -> Result<SummaryModel, Error> {
        let (copies, _) = model::open(backends, Some(int8), folder, TEXT_TO_TEXT)?;
        let codec = PromptCodec::new(Arc::new(tokenizer_of(folder)?), copies[0].spec());
        let (codec, options) = SummaryCodec::of(folder, codec)?;
        Ok(SummaryModel { copies, codec, options })
    }
}

/// What a folder's `config.json` puts before a text that is to be summarized.
fn prefix_of(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("config.json")).ok()?;
    let config: Value = serde_json::from_str(&text).ok()?;
    config["task_specific_params"][TASK]["prefix"].as_str().map(str::to_owned)
}

/// A summary of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The summaries of all parts, with spaces between them.
    pub text: String,
    /// Into how many parts the text was cut: mostly one, and none if it has no words.
    pub parts: usize,
    /// The tokens that the model has read, and those that it has written.
    pub tokens: [usize; 2],
}

/// Summarizes texts one by one, the parts of a text together.
pub struct Summarizer {
    generator: Generator,
    codec: SummaryCodec,
}

impl Summarizer {
    /// A summarizer with the options of the model, or others.
    pub fn new(model: SummaryModel) -> Result<Summarizer, Error> {
        let SummaryModel { copies, codec, options } = model;
        Ok(Summarizer { generator: Generator::with_copies(copies, options)?, codec })
    }

    /// The most tokens that the model reads at once.
    pub fn most(&self) -> usize {
        self.codec.most
    }

    /// The summary of a text of any length.
    pub fn summarize(&mut self, text: &str) -> Result<Summary, Error> {
        let sources = self.codec.parts(text)?;
        let (read, parts) = (sources.iter().map(Vec::len).sum(), sources.len());
        let mut best = Vec::with_capacity(parts);
        for found in self.generator.generate(sources) {
            best.extend(found?.into_iter().next());
        }
        let written = best.iter().map(|best| best.tokens.len()).sum();
        Ok(Summary { text: self.codec.join(&best)?, parts, tokens: [read, written] })
    }
}

impl SummaryCodec {
    /// What the model of a folder reads and writes, and how it wants to summarize.
    pub fn of(folder: &Path, codec: PromptCodec) -> Result<(SummaryCodec, Options), Error> {
        let (family, spec) = (Family::among(folder, TEXT_TO_TEXT)?, codec.spec());
        let options = Options::load_for(folder, spec, Some(TASK))?;
        let usual = if family == Family::T5 { USUAL_PREFIX } else { "" };
        let prefix = prefix_of(folder).unwrap_or_else(|| usual.to_owned());
        // A T5 has no last position, but it has learned from texts of this length.
        let most = match family {
            Family::T5 => T5Config::load(folder)?.trained_length,
            _ => spec.max_source,
        };
        Ok((SummaryCodec { codec, prefix, most }, options))
    }

    /// The summary of a text: what was written for its parts.
    pub fn join(&self, parts: &[Hypothesis]) -> Result<String, Error> {
        let texts = parts.iter().map(|part| self.codec.text(part.content()));
        let texts = texts.collect::<Result<Vec<String>, Error>>()?;
        let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        Ok(texts.collect::<Vec<_>>().join(" "))
    }

    /// The tokens of each part of a text: as many sentences as the model reads at once.
    pub fn parts(&self, text: &str) -> Result<Vec<Vec<u32>>, Error> {
        let mut pieces = Vec::new();
        for sentence in sentences::split(text, None) {
            self.push_pieces(text, sentence, &mut pieces)?;
        }
        let mut parts: Vec<(Range<usize>, Vec<u32>)> = Vec::new();
        for piece in pieces {
            if let Some((whole, source)) = parts.last_mut() {
                let longer = self.encode(&text[whole.start..piece.end])?;
                if longer.len() <= self.most {
                    (*whole, *source) = (whole.start..piece.end, longer);
                    continue;
                }
            }
            let source = self.encode(&text[piece.clone()])?;
            parts.push((piece, source));
        }
        Ok(parts.into_iter().map(|(_, source)| source).collect())
    }

    /// Adds a sentence; in halves if it is too long by itself, and these in halves again.
    fn push_pieces(
        &self,
        text: &str,
        piece: Range<usize>,
        pieces: &mut Vec<Range<usize>>,
    ) -> Result<(), Error> {
        let own = &text[piece.clone()];
        let tokens = self.encode(own)?.len();
        let middle = if tokens > self.most { sentences::middle(own) } else { None };
        match middle {
            None if tokens > self.most => {
                Err(attentive_generate::Error::LongSource { tokens, most: self.most }.into())
            }
            None => {
                pieces.push(piece);
                Ok(())
            }
            Some(middle) => {
                let (before, after) = own.split_at(middle);
                let (before, after) = (before.trim_end().len(), own.len() - after.trim_start().len());
                self.push_pieces(text, piece.start..piece.start + before, pieces)?;
                self.push_pieces(text, piece.start + after..piece.end, pieces)
            }
        }
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.codec.encode(&format!("{}{text}", self.prefix))
    }
}
