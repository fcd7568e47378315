//! A model that reads texts, with its tokenizer: what all tasks of encoders have in common.

use crate::batches::batches;
use crate::error::Error;
use attentive_generate::{Inspection, Sizes};
use attentive_model::families::bert::{Batch, Bert, Relative, Task};
use attentive_tensor::{Backend, Form, Tape, Var};
use attentive_text::tokenizer::{Encoding, Input, Side, Tokenizer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What becomes of texts that are longer than a model can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TooLong {
    /// They are cut.
    #[default]
    Cut,
    /// They are refused.
    Refuse,
}

/// Texts that a tokenizer has read.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// The tokens of each.
    pub encodings: Vec<Encoding>,
}

impl Texts {
    /// How many texts were cut.
    pub fn cut(&self) -> usize {
        self.encodings.iter().filter(|encoding| encoding.cut != [0, 0]).count()
    }

    /// The tokens of all texts together.
    pub fn tokens(&self) -> usize {
        self.encodings.iter().map(Encoding::len).sum()
    }
}

/// Tokens of a batch, unless it is told otherwise: enough for products to be fast, few enough for their results to stay in cache.
const BATCH_TOKENS: usize = 2048;

/// A model and its tokenizer. A copy shares both.
#[derive(Debug, Clone)]
pub struct Encoder {
    backend: Arc<dyn Backend>,
    model: Bert,
    tokenizer: Arc<Tokenizer>,
    folder: PathBuf,
    limit: usize,
    too_long: TooLong,
    batch_tokens: usize,
}

impl Encoder {
    /// Reads the model of a folder for a task, to be computed with and not to be learned; `form` says what its weights become.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, task: Task, form: Form) -> Result<Encoder, Error> {
        let load = match form {
            Form::Precise => Bert::load_packed,
            Form::Int8 => Bert::load_in_int8,
        };
        // Either takes about as long as the other.
        let (model, tokenizer) = std::thread::scope(|scope| {
            let tokenizer = scope.spawn(|| Tokenizer::load(folder));
            (load(backend, folder, task), tokenizer.join())
        });
        let model = model?;
        let tokenizer = tokenizer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Encoder::new(backend, model, tokenizer, folder)
    }

    /// A model that is there already, with its tokenizer; `folder` is where both come from.
    pub fn new(
        backend: &Arc<dyn Backend>,
        model: Bert,
        tokenizer: Tokenizer,
        folder: &Path,
    ) -> Result<Encoder, Error> {
        let tokenizer = match tokenizer.mask() {
            Some(_) => tokenizer.special_tokens_but_mask_as_text()?,
            None => tokenizer.special_tokens_as_text(),
        };
        let (tokens, known) = (tokenizer.vocabulary_size(Side::Source), model.config().vocab_size);
        if tokens > known {
            return Err(Error::Vocabulary { path: folder.to_owned(), tokenizer: tokens, model: known });
        }
        Ok(Encoder {
            backend: Arc::clone(backend),
            limit: model.config().max_positions,
            model,
            tokenizer: Arc::new(tokenizer),
            folder: folder.to_owned(),
            too_long: TooLong::Cut,
            batch_tokens: BATCH_TOKENS,
        })
    }

    /// The same with texts of at most `limit` tokens, if the model can read so many.
    pub fn with_limit(self, limit: usize) -> Encoder {
        Encoder { limit: limit.min(self.limit), ..self }
    }

    /// The same with another rule for texts that are too long.
    pub fn with_too_long(self, too_long: TooLong) -> Encoder {
        Encoder { too_long, ..self }
    }

    /// The same with batches of about so many tokens.
    pub fn with_batch_tokens(self, batch_tokens: usize) -> Encoder {
        Encoder { batch_tokens: batch_tokens.max(1), ..self }
    }

    /// The model.
    pub fn model(&self) -> &Bert {
        &self.model
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The folder that both come from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The most tokens that a text may have.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// About how many tokens a batch has.
    pub fn batch_tokens(&self) -> usize {
        self.batch_tokens
    }

    /// Reads texts, on all cores if there are many.
    pub fn read(&self, inputs: &[Input]) -> Result<Texts, Error> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let piece = inputs.len().div_ceil(threads).max(64);
        let read = |first: usize, inputs: &[Input]| {
            let numbered = inputs.iter().enumerate();
            numbered.map(|(i, input)| self.read_one(first + i, *input)).collect::<Result<Vec<_>, Error>>()
        };
        if inputs.len() <= piece {
            return Ok(Texts { encodings: read(0, inputs)? });
        }
        let pieces = std::thread::scope(|scope| {
            let start = |(i, inputs)| scope.spawn(move || read(i * piece, inputs));
            let started: Vec<_> = inputs.chunks(piece).enumerate().map(start).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Vec<Encoding>, Error>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(Texts { encodings: pieces.into_iter().flatten().collect() })
    }

    /// A text that is tokens already, those of the template included, as `[CLS]` and `[SEP]` are. All are tokens of a first text.
    pub fn read_ids(&self, number: usize, ids: &[u32]) -> Result<Encoding, Error> {
        let (text, tokens, known) = (number + 1, ids.len(), self.model.config().vocab_size);
        if tokens == 0 {
            return Err(Error::NoTokens { text });
        }
        if tokens > self.limit {
            return Err(Error::TooLong { text, tokens, limit: self.limit });
        }
        if let Some(&token) = ids.iter().find(|&&token| token as usize >= known) {
            return Err(Error::Token { text, token, known });
        }
        let (types, sources) = (vec![0; tokens], vec![None; tokens]);
        Ok(Encoding { ids: ids.to_vec(), types, sources, cut: [0, 0] })
    }

    /// Reads an input of any length. No model reads more than [`Encoder::limit`] tokens at once.
    pub(crate) fn read_whole(&self, input: Input) -> Result<Encoding, Error> {
        self.with_known_types(self.tokenizer.encode_input(input, None)?)
    }

    fn read_one(&self, number: usize, input: Input) -> Result<Encoding, Error> {
        let encoding = self.tokenizer.encode_input(input, Some(self.limit))?;
        if self.too_long == TooLong::Refuse && encoding.cut != [0, 0] {
            let tokens = encoding.len() + encoding.cut[0] + encoding.cut[1];
            return Err(Error::TooLong { text: number + 1, tokens, limit: self.limit });
        }
        if encoding.is_empty() {
            return Err(Error::NoTokens { text: number + 1 });
        }
        self.with_known_types(encoding)
    }

    fn with_known_types(&self, encoding: Encoding) -> Result<Encoding, Error> {
        let types = self.model.config().token_types;
        // A model without types reads pairs all the same.
        if types > 0 && encoding.types.iter().any(|&kind| kind as usize >= types) {
            return Err(Error::TokenTypes { path: self.folder.clone(), types });
        }
        Ok(encoding)
    }

    /// Computes the hidden states of texts, batch by batch, and lets `answer` make something of each text: it is given the numbers
    /// of the texts, and gives an answer for each. Answers come back in the order of the texts.
    pub(crate) fn answer<T>(
        &self,
        texts: &Texts,
        mut answer: impl FnMut(&Tape, &[usize], &Batch, &Var) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut answers: Vec<Option<T>> = texts.encodings.iter().map(|_| None).collect();
        for numbers in batches(&texts.encodings, self.batch_tokens) {
            let tape = Tape::inference(&self.backend);
            let batch = self.batch(texts, &numbers);
            let hidden = self.model.encode(&tape, &batch);
            for (&number, answer) in numbers.iter().zip(answer(&tape, &numbers, &batch, &hidden)?) {
                answers[number] = Some(answer);
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// How large the model is. It has no decoder.
    pub fn sizes(&self) -> Sizes {
        let config = self.model.config();
        Sizes {
            d_model: config.d_model,
            h: config.h,
            decoder_h: config.h,
            d_ff: config.d_ff,
            encoder_layers: config.layers,
            decoder_layers: 0,
            parameters: self.model.parameter_count(),
        }
    }

    /// All attentions of a text and the hidden states of each step, to be looked into.
    pub fn inspect(&self, encoding: &Encoding) -> Inspection {
        let tape = Inspection::tape(&self.backend);
        let texts = Texts { encodings: vec![encoding.clone()] };
        self.model.encode(&tape, &self.batch(&texts, &[0]));
        Inspection::new(&self.backend, &tape, self.model.config().layers)
    }

    fn batch(&self, texts: &Texts, numbers: &[usize]) -> Batch {
        let signed = |numbers: &[u32]| numbers.iter().map(|&number| number as i32).collect::<Vec<_>>();
        let text = |&number: &usize| {
            let encoding = &texts.encodings[number];
            (signed(&encoding.ids), signed(&encoding.types))
        };
        Batch::with_types(&*self.backend, &numbers.iter().map(text).collect::<Vec<_>>())
    }

    pub(crate) fn download(&self, x: &Var) -> Vec<f32> {
        self.backend.download_f32(x.value())
    }

    /// Refuses a folder whose model was trained for something else.
    pub(crate) fn must_be(folder: &Path, name: &'static str, task: Task) -> Result<(), Error> {
        let found = Task::of(folder)?;
        if found != task {
            let relative = Relative::of(folder)?;
            let (needed, found) = (relative.architecture(task), relative.architecture(found));
            return Err(Error::NoHead { path: folder.to_owned(), task: name, needed, found });
        }
        Ok(())
    }
}
