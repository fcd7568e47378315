//! Language modelling: each token of a text is predicted from those before it, by GPT-2.
//!
//! All texts are one row of tokens, which is cut into windows of the model's context, at other places in each epoch. The lines of a
//! file are one text; each line of a `.jsonl` file is a text of its own, with the end token behind it.

use super::held::Held;
use super::masked_lm::each_chunk;
use super::{Judgement, Ranks, Start, Task, dropout};
use crate::Error;
use crate::corpus::{
    Corpus, CorpusFiles, CorpusSize, Example, ExampleBatch, Examples, MovingWindows, held_out, is_json,
};
use crate::learner::seed_of_weights;
use crate::settings::{Draft, Facts, Settings, TokenizerKind};
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::gpt2::{Batch, Gpt2, Gpt2Config};
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Var};
use attentive_text::tokenizer::train::{Kind, Trainer};
use attentive_text::tokenizer::{Side, Tokenizer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines that are encoded at once.
const CHUNK: usize = 10_000;
/// About how many bytes a token has, before there are tokens, unless each is a character.
const BYTES: usize = 4;

/// A GPT-2 that learns.
#[derive(Debug)]
pub struct LearningGpt2 {
    model: Gpt2,
    held: Option<Held>,
}

impl LearningGpt2 {
    /// A model that nothing judges.
    pub fn new(model: Gpt2) -> LearningGpt2 {
        LearningGpt2 { model, held: None }
    }
}

impl Task for LearningGpt2 {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn d_model(&self) -> usize {
        self.model.config().d_model
    }

    fn partial_loss(
        &self,
        tape: &Tape,
        batch: &ExampleBatch,
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error> {
        let texts: Vec<(&[i32], &[i32])> =
            batch.examples.iter().map(|example| (&example.source[..], &example.labels[..])).collect();
        Ok(self.model.partial_loss(tape, &Batch::with_targets(&**tape.backend(), &texts), smoothing, of))
    }

    fn held(&self) -> usize {
        self.held.as_ref().map_or(0, Held::examples)
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        let Some(held) = &self.held else { return Ok(None) };
        Ok(Some(Judgement { loss: held.loss(backend, self, ranks)?, ..Judgement::default() }))
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.model.read_weights(backend, path)?)
    }
}

/// Texts on the disk, and their tokens.
pub(super) struct Texts {
    corpus: Corpus,
    held: Option<Corpus>,
    /// The model that learning begins with.
    origin: Option<Gpt2Config>,
    tokens: Option<Tokens>,
}

/// A tokenizer, and the texts as it encodes them.
struct Tokens {
    tokenizer: Tokenizer,
    train: Vec<i32>,
    held: Option<Vec<i32>>,
}

impl Texts {
    pub(super) fn read(settings: &Settings, origin: Option<&Path>, cache: &Path) -> Result<Texts, Error> {
        let open = |files: &[PathBuf]| Corpus::open(&CorpusFiles::Texts(files.to_vec()), cache);
        let held = match &settings.valid_source[..] {
            [] => None,
            files => Some(open(files)?),
        };
        Ok(Texts {
            corpus: open(&settings.source)?,
            held,
            origin: origin.map(Gpt2Config::load).transpose()?,
            tokens: None,
        })
    }

    fn tokens(&self) -> &Tokens {
        self.tokens.as_ref().expect("tokens are made or loaded first")
    }

    fn set_tokenizer(&mut self, tokenizer: Tokenizer) -> Result<(), Error> {
        let train = encode(&tokenizer, &self.corpus)?;
        let held = self.held.as_ref().map(|corpus| encode(&tokenizer, corpus)).transpose()?;
        self.tokens = Some(Tokens { tokenizer, train, held });
        Ok(())
    }

    /// The tokens of a window.
    fn context(&self, settings: &Settings) -> usize {
        settings.longest.min(self.origin.as_ref().map_or(usize::MAX, |config| config.max_positions))
    }

    /// How many slots for windows the texts have, and the numbers of those that are held out.
    fn slots(&self, settings: &Settings) -> Result<(usize, Vec<u32>), Error> {
        let all = self.tokens().train.len().saturating_sub(1).div_ceil(self.context(settings));
        if all == 0 {
            return Err(Error::setting("source", "the texts have fewer than two tokens"));
        }
        if self.held.is_some() || settings.hold_out == 0 {
            return Ok((all, Vec::new()));
        }
        settings.check_hold_out(all, "windows")?;
        Ok((all, held_out(all, settings.hold_out, settings.seed)))
    }

    /// The windows that are held out, which stay where they are.
    fn held_windows(&self, settings: &Settings) -> Result<Vec<Example>, Error> {
        let context = self.context(settings);
        let Some(held) = &self.tokens().held else {
            let (_, held) = self.slots(settings)?;
            let windows = windows(&self.tokens().train, context).zip(0u32..);
            return Ok(windows
                .filter(|(_, slot)| held.binary_search(slot).is_ok())
                .map(|(one, _)| one)
                .collect());
        };
        Ok(windows(held, context).collect())
    }

    fn model(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Gpt2, Error> {
        let builder = Builder::random(backend, seed_of_weights(settings));
        if let Start::Again(folder) = start {
            return Ok(Gpt2::new(&builder, &Gpt2Config::load(folder)?)?);
        }
        let tokenizer = &self.tokens().tokenizer;
        let tokens = tokenizer.vocabulary_size(Side::Source);
        let model = match (&settings.from, &self.origin) {
            (Some(from), Some(origin)) => {
                let config = Gpt2Config {
                    dropout: dropout(settings.dropout, origin.dropout),
                    embedding_dropout: dropout(settings.dropout, origin.embedding_dropout),
                    attention_dropout: dropout(settings.attention_dropout, origin.attention_dropout),
                    ..origin.clone()
                };
                Gpt2::load_to_learn(backend, from, &config)?
            }
            _ => {
                let end = tokenizer.special(Side::Source).eos.map(|eos| eos as usize);
                let config = Gpt2Config { bos: end, eos: end, ..settings.gpt2(tokens)? };
                Gpt2::new(&builder, &config)?
            }
        };
        let known = model.config().vocab_size;
        if tokens > known {
            let problem = format!(
                "the tokenizer has {tokens} tokens and the model {known}: it belongs to another model"
            );
            return Err(Error::setting("from", problem));
        }
        Ok(model)
    }
}

impl super::Material for Texts {
    fn facts(&self, draft: &Draft) -> Result<Facts, Error> {
        let bytes = self.corpus.size().bytes;
        let context = self.context(draft.settings());
        let is_character = draft.settings().tokenizer_kind == TokenizerKind::Characters;
        let token = if is_character { 1 } else { BYTES };
        let windows = |bytes: u64| (bytes as usize / (token * context)).max(1);
        Ok(Facts {
            examples: windows(bytes),
            bytes,
            characters: 0,
            validation: self.held.as_ref().map_or(0, |held| windows(held.size().bytes)),
            d_model: self.origin.as_ref().map(|config| config.d_model),
        })
    }

    fn hold_out(&mut self, _: &Settings) -> Result<(), Error> {
        // Windows are held out, once there are any.
        Ok(())
    }

    fn make_tokens(&mut self, settings: &Settings) -> Result<(), Error> {
        let tokenizer = match settings.tokenizer.as_ref().or(settings.from.as_ref()) {
            Some(path) => Tokenizer::load(path)?,
            None => {
                let kind = match settings.tokenizer_kind {
                    TokenizerKind::Characters => Kind::Characters,
                    _ => Kind::ByteBpe,
                };
                let mut trainer =
                    Trainer::new(kind, settings.vocab_size).character_coverage(settings.character_coverage);
                each_chunk(&self.corpus, |text| trainer.text(text, Side::Source))?;
                trainer.joint()?
            }
        };
        self.set_tokenizer(tokenizer.special_tokens_as_text())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        Ok(self.tokens().tokenizer.save(folder)?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.set_tokenizer(Tokenizer::load(folder)?.special_tokens_as_text())
    }

    fn vocabulary(&self) -> usize {
        self.tokens().tokenizer.vocabulary_size(Side::Source)
    }

    fn examples(&self, settings: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error> {
        let (train, context) = (&self.tokens().train, self.context(settings));
        let (all, held) = self.slots(settings)?;
        let size = CorpusSize { pairs: (all - held.len()) as u64, ..self.corpus.size() };
        Ok((Arc::new(MovingWindows::new(train.clone(), context, &held, size)), Vec::new()))
    }

    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        let model = self.model(backend, settings, start)?;
        if let Start::First(folder) = start {
            model.config().stage(folder)?.commit()?;
        }
        let held = self.held_windows(settings)?;
        let held = (!held.is_empty() && !matches!(start, Start::Trial))
            .then(|| Held::new(held, settings.batch_tokens));
        Ok(Box::new(LearningGpt2 { model, held }))
    }
}

/// The tokens of all lines, one behind the other.
fn encode(tokenizer: &Tokenizer, corpus: &Corpus) -> Result<Vec<i32>, Error> {
    let end = tokenizer.special(Side::Source).eos;
    let (mut tokens, mut text) = (Vec::new(), String::new());
    let flush = |text: &mut String, tokens: &mut Vec<i32>| -> Result<(), Error> {
        let ids = tokenizer.encode_plain(text, Side::Source)?;
        tokens.extend(ids.into_iter().map(|id| id as i32));
        text.clear();
        Ok(())
    };
    let numbers: Vec<u32> = (0..corpus.len() as u32).collect();
    for numbers in numbers.chunks(CHUNK) {
        let mut failed = None;
        corpus.read(numbers, |place, line, _| {
            text.push_str(line);
            if !is_json(corpus.place_of_line(numbers[place]).0) {
                text.push('\n');
                return true;
            }
            failed = flush(&mut text, &mut tokens).err();
            tokens.extend(end.map(|end| end as i32));
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        flush(&mut text, &mut tokens)?;
    }
    Ok(tokens)
}

/// Windows of at most `context` tokens, each with the token that follows.
fn windows(tokens: &[i32], context: usize) -> impl Iterator<Item = Example> + '_ {
    let ends = tokens.len().saturating_sub(1);
    let window = move |begin: usize| {
        let end = ends.min(begin + context);
        Example {
            source: tokens[begin..end].to_vec(),
            labels: tokens[begin + 1..end + 1].to_vec(),
            ..Example::default()
        }
    };
    (0..ends).step_by(context.max(1)).map(window)
}
