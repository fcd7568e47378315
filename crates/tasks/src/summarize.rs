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
use attentive_text::tokenizer::Tokenizer;
use serde_json::Value;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// What `config.json` calls the task, and how a T5 is asked for it that says nothing of it.
const TASK: &str = "summarization";
const USUAL_PREFIX: &str = "summarize: ";

/// What is in the folder of a model that can summarize.
pub struct SummaryModel {
    copies: Vec<Box<dyn attentive_generate::Seq2Seq>>,
    tokenizer: Arc<Tokenizer>,
    /// How the model wants to summarize, or else the default options.
    pub options: Options,
    /// What stands before each text.
    pub prefix: String,
    /// The most tokens that the model reads at once.
    pub most: usize,
}

impl SummaryModel {
    /// Reads a folder once, to be decoded with on several backends side by side; with weights in int8 if that is asked for. What its
    /// `config.json` says of the task counts, as for the pipelines of transformers.
    ///
    /// # Panics
    /// If there is no backend.
    pub fn open_on(backends: &[Arc<dyn Backend>], int8: bool, folder: &Path) -> Result<SummaryModel, Error> {
        let family = Family::among(folder, TEXT_TO_TEXT)?;
        let (copies, _) = model::open(backends, Some(int8), folder, TEXT_TO_TEXT)?;
        let spec = copies[0].spec();
        let tokenizer = Arc::new(tokenizer_of(folder)?);
        let options = Options::load_for(folder, &spec, Some(TASK))?;
        let usual = if family == Family::T5 { USUAL_PREFIX } else { "" };
        let prefix = prefix_of(folder).unwrap_or_else(|| usual.to_owned());
        // A T5 has no last position, but it has learned from texts of this length.
        let most = match family {
            Family::T5 => T5Config::load(folder)?.trained_length,
            _ => spec.max_source,
        };
        Ok(SummaryModel { copies, tokenizer, options, prefix, most })
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
    codec: PromptCodec,
    prefix: String,
    most: usize,
}

impl Summarizer {
    /// A summarizer with the options of the model, or others.
    pub fn new(model: SummaryModel) -> Result<Summarizer, Error> {
        let SummaryModel { copies, tokenizer, options, prefix, most } = model;
        let codec = PromptCodec::new(tokenizer, copies[0].spec());
        Ok(Summarizer { generator: Generator::with_copies(copies, options)?, codec, prefix, most })
    }

    /// The most tokens that the model reads at once.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The summary of a text of any length.
    pub fn summarize(&mut self, text: &str) -> Result<Summary, Error> {
        let sources = self.parts(text)?;
        let read = sources.iter().map(Vec::len).sum();
        let parts = sources.len();
        let (mut texts, mut written) = (Vec::with_capacity(parts), 0);
        for found in self.generator.generate(sources) {
            let found = found?;
            let best = found.first();
            written += best.map_or(0, |best| best.tokens.len());
            texts.push(self.codec.text(best.map_or(&[], Hypothesis::content))?);
        }
        let text = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect::<Vec<_>>();
        Ok(Summary { text: text.join(" "), parts, tokens: [read, written] })
    }

    /// The tokens of each part of a text: as many sentences as the model reads at once.
    fn parts(&self, text: &str) -> Result<Vec<Vec<u32>>, Error> {
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
