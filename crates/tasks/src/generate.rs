//! Prompts to texts: a language model's folder, and what it writes.
//!
//! What a model with an encoder writes for a prompt is an answer to it, and no continuation; all else is the same.
//!
//! Several prompts are continued at once, each as if it were alone, and come back in the order in which they went in. The text of a
//! continuation ends before the first stop string in it.

use crate::error::Error;
use crate::model::{self, WRITING};
use crate::tokenizer::{text_of, tokenizer_of};
use attentive_generate::{Context, Generator, Hypothesis, MaxLength, Options, Seq2Seq, Spec, Stop, Written};
use attentive_tensor::Backend;
use attentive_text::tokenizer::{Side, Tokenizer};
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

    /// The length that lets so many tokens be written for each prompt.
    pub fn length_of_new(&self, tokens: usize) -> MaxLength {
        match self.copies[0].spec().continues {
            true => MaxLength::SourceAnd(tokens),
            false => MaxLength::Tokens(tokens),
        }
    }
}

/// What became of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Continuation {
    /// What follows the prompt.
    pub text: String,
    /// Its tokens, the end token and those of a stop string included.
    pub tokens: Vec<u32>,
    /// The log of the probability of each token.
    pub token_scores: Vec<f32>,
    /// How sure the model is of all of it; see [`Hypothesis::score`].
    pub score: f32,
    /// Why it ends.
    pub finish: Finish,
}

/// Why a continuation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model has written the end token, or there was nothing that it was allowed to write.
    End,
    /// It has written a stop string.
    Stop,
    /// It has written as many tokens as were asked for.
    Length,
    /// The model has no positions left.
    Context,
}

/// Continues prompts, as many at once as [`Options::batch`] says.
pub struct Writer {
    generator: Generator,
    spec: Spec,
    stops: Arc<StopStrings>,
    /// How many tokens each prompt in here has, in order.
    prompts: VecDeque<usize>,
    /// The number of the first of them.
    first: u64,
}

impl Writer {
    /// A writer with nothing to do, which ends texts at any of these strings; empty ones end nothing.
    pub fn new(model: LanguageModel, stops: &[String]) -> Result<Writer, Error> {
        let LanguageModel { copies, tokenizer, options } = model;
        let spec = copies[0].spec();
        let strings: Vec<String> = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        let stops = Arc::new(StopStrings { tokenizer, strings });
        let mut generator = Generator::with_copies(copies, options)?;
        if !stops.strings.is_empty() {
            generator = generator.with_stop(Arc::clone(&stops));
        }
        Ok(Writer { generator, spec, stops, prompts: VecDeque::new(), first: 0 })
    }

    /// The options.
    pub fn options(&self) -> &Options {
        self.generator.options()
    }

    /// Adds a prompt behind those that are there. An empty one begins with the token that texts begin with. One that leaves no room
    /// for a token is refused.
    pub fn push(&mut self, prompt: &str) -> Result<(), Error> {
        let mut tokens = self.stops.tokenizer.encode(prompt, Side::Source)?;
        if !self.spec.continues {
            if tokens.last() != Some(&self.spec.eos) {
                tokens.push(self.spec.eos);
            }
        } else if tokens.is_empty() && (self.spec.start as usize) < self.spec.vocabulary {
            tokens.push(self.spec.start);
        }
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
        self.generator.steps(Generator::TOGETHER);
    }

    /// Writes one token of every prompt that is being continued. `told` gets what is certain of the continuation of the first
    /// prompt: more and more of the text that [`Writer::pop`] gives.
    pub fn step_with(&mut self, told: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
        let (stops, first) = (Arc::clone(&self.stops), self.first);
        let mut result = Ok(());
        self.generator.step_with(&mut |written: &Written| {
            if written.sentence != first || written.draw != 0 {
                return;
            }
            match text_of(&stops.tokenizer, &written.tokens[..written.settled()]) {
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
        found.into_iter().map(|found| self.continuation(prompt, found)).collect::<Result<_, _>>().map(Some)
    }

    fn continuation(&self, prompt: usize, found: Hypothesis) -> Result<Continuation, Error> {
        let text = text_of(&self.stops.tokenizer, found.content())?;
        let cut = self.stops.cut(&text).map(str::to_owned);
        let most = self.options().max_length.of(prompt);
        let length = if self.spec.continues { prompt + found.tokens.len() } else { found.tokens.len() };
        let finish = match () {
            () if cut.is_some() => Finish::Stop,
            () if found.ended => Finish::End,
            () if length >= most => Finish::Length,
            () if length >= self.spec.max_target => Finish::Context,
            () => Finish::End,
        };
        let Hypothesis { tokens, token_scores, score, .. } = found;
        Ok(Continuation { text: cut.unwrap_or(text), tokens, token_scores, score, finish })
    }
}

/// Ends a text in which one of some strings stands.
struct StopStrings {
    tokenizer: Arc<Tokenizer>,
    strings: Vec<String>,
}

impl StopStrings {
    /// What stands before the first of them, if the text has one.
    fn cut<'a>(&self, text: &'a str) -> Option<&'a str> {
        let first = self.strings.iter().filter_map(|stop| text.find(stop.as_str())).min();
        first.map(|at| &text[..at])
    }

    /// The text before the first of them, and without what may be the beginning of one at its end.
    fn certain<'a>(&self, text: &'a str) -> &'a str {
        let text = self.cut(text).unwrap_or(text);
        let begins = |at: &usize| self.strings.iter().any(|stop| stop.starts_with(&text[*at..]));
        let end = text.char_indices().map(|(at, _)| at).find(begins);
        &text[..end.unwrap_or(text.len())]
    }
}

impl Stop for StopStrings {
    fn stop(&self, context: &Context) -> bool {
        let text = text_of(&self.tokenizer, &context.tokens[context.prompt..]);
        text.is_ok_and(|text| self.cut(&text).is_some())
    }
}
