//! Prompts to texts: a language model's folder, and what it writes.
//!
//! What a model with an encoder writes for a prompt is an answer to it, and no continuation; all else is the same.
//!
//! Several prompts are continued at once, each as if it were alone, and come back in the order in which they went in. The text of a
//! continuation ends before the first stop string in it.

use crate::error::Error;
use crate::model::{self, WRITING};
use crate::prompt::{Continuation, PromptCodec};
use crate::stop::StopStrings;
use crate::tokenizer::tokenizer_of;
use attentive_generate::{Generator, MaxLength, Options, Seq2Seq, Written};
use attentive_model::families::Family;
use attentive_tensor::Backend;
use attentive_text::tokenizer::{Side, Tokenizer};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// What a tokenizer writes for the bytes of half a character.
const INCOMPLETE: char = char::REPLACEMENT_CHARACTER;

/// What is in the folder of a language model.
pub struct LanguageModel {
    /// The model: a copy for each backend, all with the same weights.
    pub copies: Vec<Box<dyn Seq2Seq>>,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The options that it asks for, or else [`Options::continuing`]; the default ones of a model with an encoder.
    pub options: Options,
}

impl LanguageModel {
    /// Whether a folder has a language model.
    pub fn is_in(folder: &Path) -> Result<bool, Error> {
        Ok(Family::of(folder)? == Family::Gpt2)
    }

    /// Whether a folder has a model that answers prompts: one from text to text that is no translator, a T5 or a BART.
    pub fn answers_in(folder: &Path) -> Result<bool, Error> {
        Ok(match Family::of(folder)? {
            Family::T5 => true,
            Family::Transformer => model_type(folder).as_deref() == Some("bart"),
            _ => false,
        })
    }

    /// Reads a folder once, to be decoded with on several backends side by side, whose memory, instruction set and precision are
    /// the same; with weights in int8 if that is asked for.
    ///
    /// # Panics
    /// If there is no backend.
    pub fn open_on(backends: &[Arc<dyn Backend>], int8: bool, folder: &Path) -> Result<LanguageModel, Error> {
        let (copies, _) = model::open(backends, Some(int8), folder, WRITING)?;
        let tokenizer = tokenizer_of(folder)?;
        let spec = copies[0].spec();
        for (side, known) in [(Side::Source, spec.source_vocabulary), (Side::Target, spec.vocabulary)] {
            let tokens = tokenizer.vocabulary_size(side);
            if tokens > known {
                let path = folder.to_owned();
                return Err(Error::Vocabulary { path, tokenizer: tokens, model: known });
            }
        }
        let options = Options::load(folder, &spec)?;
        Ok(LanguageModel { copies, tokenizer: Arc::new(tokenizer), options })
    }

    /// Lets texts be longer than the model has positions: see [`Seq2Seq::slide`]. Returns whether the model can.
    pub fn slide(&mut self) -> bool {
        self.copies.iter_mut().all(|copy| copy.slide())
    }

    /// The length that lets so many tokens be written for each prompt.
    pub fn length_of_new(&self, tokens: usize) -> MaxLength {
        match self.copies[0].spec().continues {
            true => MaxLength::SourceAnd(tokens),
            false => MaxLength::Tokens(tokens),
        }
    }
}

/// The word for the family in a folder's `config.json`.
fn model_type(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("config.json")).ok()?;
    let config: Value = serde_json::from_str(&text).ok()?;
    config["model_type"].as_str().map(str::to_owned)
}

/// Continues prompts, as many at once as [`Options::batch`] says.
pub struct Writer {
    generator: Generator,
    codec: PromptCodec,
    stops: StopStrings,
    /// How many tokens each prompt in here has, in order.
    prompts: VecDeque<usize>,
    /// The number of the first of them.
    first: u64,
}

impl Writer {
    /// A writer with nothing to do, which ends texts at any of these strings; empty ones end nothing.
    pub fn new(model: LanguageModel, stops: &[String]) -> Result<Writer, Error> {
        let LanguageModel { copies, tokenizer, options } = model;
        let codec = PromptCodec::new(tokenizer, copies[0].spec());
        let stops = StopStrings::new(stops);
        let generator = Generator::with_copies(copies, options)?;
        let rules = stops.rules(codec.tokenizer()).into_iter();
        let generator = rules.fold(generator, Generator::with_stop);
        Ok(Writer { generator, codec, stops, prompts: VecDeque::new(), first: 0 })
    }

    /// The options.
    pub fn options(&self) -> &Options {
        self.generator.options()
    }

    /// Adds a prompt behind those that are there. An empty one begins with the token that texts begin with. One that leaves no room
    /// for a token is refused.
    pub fn push(&mut self, prompt: &str) -> Result<(), Error> {
        let tokens = self.codec.encode(prompt)?;
        let length = tokens.len();
        self.generator.push(tokens)?;
        self.prompts.push_back(length);
        Ok(())
    }

    /// How many prompts are in here.
    pub fn len(&self) -> usize {
        self.prompts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// Writes some tokens of every prompt that is being continued.
    pub fn step(&mut self) {
        self.generator.steps(Generator::STEPS_AT_ONCE);
    }

    /// Writes one token of every prompt that is being continued. `told` gets what is certain of the continuation of the first
    /// prompt: more and more of the text that [`Writer::pop`] gives.
    pub fn step_with(&mut self, told: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
        let (codec, stops, first) = (&self.codec, &self.stops, self.first);
        let mut result = Ok(());
        self.generator.step_with(&mut |written: &Written| {
            if written.sentence != first || written.draw != 0 {
                return;
            }
            match codec.text(&written.tokens[..written.settled()]) {
                Ok(text) => told(stops.certain(text.trim_end_matches(INCOMPLETE))),
                Err(error) => result = Err(error),
            }
        });
        result
    }

    /// The continuations of the next prompt in order, best first, if they are there.
    pub fn pop(&mut self) -> Result<Option<Vec<Continuation>>, Error> {
        let Some(found) = self.generator.pop() else { return Ok(None) };
        let prompt = self.prompts.pop_front().unwrap_or_default();
        self.first += 1;
        let (codec, stops, most) = (&self.codec, &self.stops, self.options().max_length);
        let found = found.into_iter().map(|found| codec.continuation(prompt, most, stops, found));
        found.collect::<Result<_, _>>().map(Some)
    }
}
