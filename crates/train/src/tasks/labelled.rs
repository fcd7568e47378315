//! Texts with labels, sentences with tags, and questions with answers: read whole, encoded once.

use super::bert::{self, Judge, LearningBert};
use super::held::Held;
use super::{Start, Task};
use crate::Error;
use crate::corpus::labelled::{Labelled, Labels, Reading};
use crate::corpus::{self, CorpusSize, Example, Examples, InMemory, held_out};
use crate::settings::{Draft, Facts, Settings};
use attentive_model::families::bert::{self as family, BertConfig};
use attentive_tasks::Encoder;
use attentive_tensor::Backend;
use attentive_text::tokenizer::{Encoding, Side, Tokenizer};
use std::collections::HashSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A kind of labelled examples.
pub(super) trait Kind {
    /// One of them.
    type Example: Debug + Clone + 'static;
    /// The head that a model needs to learn them.
    const HEAD: family::Task;
    /// What people call them.
    const NAME: &'static str;

    /// Reads files.
    fn read(
        files: &[PathBuf],
        reading: Reading<'_>,
        cache: &Path,
    ) -> Result<Labelled<Self::Example>, corpus::Error>;

    /// Shows all texts of an example.
    fn texts(example: &Self::Example, show: &mut dyn FnMut(&str));

    /// The tokens of an example, and the answers that belong to them; several times those of one that is read in windows.
    fn encode(
        example: &Self::Example,
        tokenizer: &Tokenizer,
        labels: &Labels,
        limit: usize,
    ) -> Result<Vec<(Encoding, Vec<i32>)>, attentive_text::tokenizer::Error>;

    /// The judge that scores the answers of a model.
    fn judge(encoder: Encoder, held: Vec<Self::Example>, settings: &Settings) -> Box<dyn Judge>;
}

/// What is learned from.
pub(super) struct Material<K: Kind> {
    train: Labelled<K::Example>,
    held: Option<Vec<K::Example>>,
    /// The model that learning begins with.
    origin: Option<BertConfig>,
    tokenizer: Option<Tokenizer>,
}

impl<K: Kind> Material<K> {
    /// Reads the files of the settings. A model that has labels already keeps them, if those of the files are among them.
    pub(super) fn read(
        settings: &Settings,
        origin: Option<&Path>,
        cache: &Path,
    ) -> Result<Material<K>, Error> {
        let read = |files: &[PathBuf], labels: Option<&Labels>| {
            K::read(files, Reading { labels, columns: None }, cache)
        };
        let mut train = read(&settings.source, None)?;
        if K::HEAD.has_labels() && train.labels.len() < 2 {
            let problem = format!("all {} have the same label: there is nothing to learn", K::NAME);
            return Err(Error::setting("source", problem));
        }
        let config = origin.map(BertConfig::load).transpose()?;
        if let (Some(origin), Some(config)) = (origin, &config)
            && family::Task::of(origin)? == K::HEAD
        {
            let known = Labels::in_order(config.labels.clone());
            if train.labels.names().iter().all(|name| known.number(name).is_some()) {
                train.labels = known;
            }
        }
        let held = match &settings.valid_source[..] {
            [] => None,
            files => Some(read(files, Some(&train.labels))?.examples),
        };
        Ok(Material { train, held, origin: config, tokenizer: None })
    }

    /// The most tokens of a text.
    fn limit(&self, settings: &Settings) -> usize {
        bert::limit(settings, self.origin.as_ref())
    }

    fn tokens(&self) -> &Tokenizer {
        self.tokenizer.as_ref().expect("tokens are made or loaded first")
    }

    /// Examples as tokens, and how many were cut.
    fn encode(&self, examples: &[K::Example], limit: usize) -> Result<(Vec<Example>, usize), Error> {
        let mut cut = 0;
        let mut encoded = Vec::with_capacity(examples.len());
        for example in examples {
            for (encoding, labels) in K::encode(example, self.tokens(), &self.train.labels, limit)? {
                bert::check_types(&encoding, self.origin.as_ref())?;
                cut += usize::from(encoding.cut != [0, 0]);
                let signed = |ids: Vec<u32>| ids.into_iter().map(|id| id as i32).collect();
                let (source, types) = (signed(encoding.ids), signed(encoding.types));
                encoded.push(Example { source, types, labels, ..Example::default() });
            }
        }
        Ok((encoded, cut))
    }
}

impl<K: Kind> super::Material for Material<K> {
    fn facts(&self, draft: &Draft) -> Result<Facts, Error> {
        let mut characters = HashSet::new();
        if draft.chooses_vocabulary() {
            let examples = self.train.examples.iter();
            examples.for_each(|example| K::texts(example, &mut |text| characters.extend(text.chars())));
        }
        Ok(Facts {
            examples: self.train.examples.len(),
            bytes: self.train.bytes,
            characters: characters.len(),
            validation: self.held.as_ref().map_or(0, Vec::len),
            d_model: self.origin.as_ref().map(|config| config.d_model),
        })
    }

    fn hold_out(&mut self, settings: &Settings) -> Result<(), Error> {
        if settings.hold_out > 0 {
            let all = std::mem::take(&mut self.train.examples);
            settings.check_hold_out(all.len(), K::NAME)?;
            let numbers = held_out(all.len(), settings.hold_out, settings.seed);
            let (held, kept): (Vec<_>, Vec<_>) =
                all.into_iter().zip(0..).partition(|(_, number)| numbers.binary_search(number).is_ok());
            let examples =
                |numbered: Vec<(K::Example, u32)>| numbered.into_iter().map(|(one, _)| one).collect();
            (self.train.examples, self.held) = (examples(kept), Some(examples(held)));
        }
        Ok(())
    }

    fn make_tokens(&mut self, settings: &Settings) -> Result<(), Error> {
        self.tokenizer = Some(bert::make_tokenizer(settings, |trainer| {
            let examples = self.train.examples.iter();
            examples.for_each(|example| K::texts(example, &mut |text| trainer.line(text, Side::Source)));
            Ok(())
        })?);
        Ok(())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        Ok(self.tokens().save(folder)?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.tokenizer = Some(bert::load_tokenizer(folder)?);
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        bert::vocabulary(self.tokens())
    }

    fn examples(&self, settings: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error> {
        let limit = self.limit(settings);
        let (examples, cut) = self.encode(&self.train.examples, limit)?;
        let (bytes, checksum) = (self.train.bytes, Some(self.train.checksum));
        let size = CorpusSize { pairs: examples.len() as u64, bytes, checksum };
        let notice = format!("{cut} of {} {} are cut to {limit} tokens", examples.len(), K::NAME);
        let notices = if cut > 0 { vec![notice] } else { Vec::new() };
        Ok((Arc::new(InMemory { examples, size }), notices))
    }

    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        let labels = self.train.labels.names();
        let model = bert::model(backend, settings, (K::HEAD, labels), self.tokens(), start)?;
        let held = match (&self.held, start) {
            (Some(held), Start::First(folder) | Start::Again(folder)) => {
                let limit = self.limit(settings);
                let (mut examples, _) = self.encode(held, limit)?;
                examples.retain(|example| example.answers() > 0);
                if examples.is_empty() {
                    let problem =
                        format!("none of the {} to validate on has a token with an answer", K::NAME);
                    return Err(Error::setting("valid_source", problem));
                }
                // The judge reads texts as the command of the task does, with a tokenizer of its own.
                let encoder = Encoder::new(backend, model.clone(), Tokenizer::load(folder)?, folder)?;
                let judge = K::judge(encoder.with_limit(limit), held.clone(), settings);
                Some((Held::new(examples, settings.batch_tokens), judge))
            }
            _ => None,
        };
        Ok(Box::new(LearningBert::new(model).judged_by(held)))
    }
}
