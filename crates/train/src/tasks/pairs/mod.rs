//! What is learned from pairs of texts: the pairs on the disk, their tokens, and a model with an encoder and a decoder.

mod translations;
mod validation;
mod vocabulary;

pub(super) use vocabulary::Reading;
pub use vocabulary::Vocabulary;

use super::{Judgement, Material, Ranks, Start, Task};
use crate::Error;
use crate::corpus::{Corpus, EncodedPairs, ExampleBatch, Examples};
use crate::settings::{Draft, Facts, Settings};
use attentive_generate::Options;
use attentive_model::checkpoint::{Checkpoint, Staged};
use attentive_model::families::encoder_decoder::{Batch, EncoderDecoder};
use attentive_model::families::t5::T5;
use attentive_model::families::transformer::Transformer;
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Var};
use attentive_text::tokenizer::Side;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use validation::Validation;

/// A model with an encoder and a decoder, and the file that its weights are in.
pub trait Learned: EncoderDecoder + Debug {
    /// Writes the weights to a file as a model folder has them, beside the old one.
    fn stage(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, attentive_model::Error>;

    /// The weights in such a file, in the order of the parameters.
    fn read(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, attentive_model::Error>;
}

impl Learned for Transformer {
    fn stage(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, attentive_model::Error> {
        self.stage_weights(backend, path)
    }

    fn read(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, attentive_model::Error> {
        let file = Checkpoint::open(path)?;
        let read = |parameter: &Parameter| file.tensor(backend, parameter.name(), parameter.value().shape());
        self.parameters().iter().map(read).collect()
    }
}

impl Learned for T5 {
    fn stage(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, attentive_model::Error> {
        self.stage_weights(backend, path)
    }

    fn read(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, attentive_model::Error> {
        self.read_weights(backend, path)
    }
}

/// A model that learns to write a target for each source.
#[derive(Debug)]
pub struct LearningPairs<M> {
    model: M,
    validation: Option<Validation>,
}

impl<M: Learned> LearningPairs<M> {
    /// A model that nothing judges.
    pub fn of(model: M) -> LearningPairs<M> {
        LearningPairs { model, validation: None }
    }

    /// The model.
    pub(super) fn model(&self) -> &M {
        &self.model
    }

    /// The same, judged by the pairs that are held out.
    pub(super) fn judged_by<K>(
        self,
        pairs: &Pairs<K>,
        settings: &Settings,
        options: Options,
    ) -> Result<LearningPairs<M>, Error> {
        let longest = self.model.outline().max_positions.min(pairs.reading.longest.unwrap_or(usize::MAX));
        let validation = pairs.validation.as_ref();
        let validation = validation
            .map(|corpus| Validation::new(corpus, pairs.tokens(), settings, longest, options))
            .transpose()?;
        Ok(LearningPairs { validation, ..self })
    }
}

impl<M: Learned> Task for LearningPairs<M> {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn d_model(&self) -> usize {
        self.model.outline().d_model
    }

    fn partial_loss(
        &self,
        tape: &Tape,
        batch: &ExampleBatch,
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error> {
        let start = self.model.outline().start as i32;
        let batch = Batch::new(&**tape.backend(), &batch.pairs(), start);
        Ok(self.model.partial_loss(tape, &batch, smoothing, of))
    }

    fn held(&self) -> usize {
        self.validation.as_ref().map_or(0, Validation::pairs)
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        let Some(validation) = &self.validation else { return Ok(None) };
        let loss = validation.held.loss(backend, self, ranks)?;
        let judgement = Judgement { loss, ..Judgement::default() };
        validation.translations.judge(backend, &self.model, ranks, judgement).map(Some)
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.model.read(backend, path)?)
    }
}

/// What tells a task that learns from pairs from another one.
pub(super) trait Kind: Sized + 'static {
    /// The width of the model in a folder.
    fn d_model(folder: &Path) -> Result<usize, Error>;

    /// How the texts of the pairs are read.
    fn reading(settings: &Settings) -> Reading;

    /// The model that is to learn from pairs.
    fn task(
        pairs: &Pairs<Self>,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error>;
}

/// Pairs on the disk, and their tokens.
pub(super) struct Pairs<K> {
    pub(super) corpus: Arc<Corpus>,
    validation: Option<Corpus>,
    reading: Reading,
    vocabulary: Option<Vocabulary>,
    /// The width of the model to go on from, if there is one.
    d_model: Option<usize>,
    kind: PhantomData<K>,
}

impl<K: Kind> Pairs<K> {
    /// The pairs to learn from, and those to validate on if there are files for it.
    pub(super) fn read(settings: &Settings, goes_on: bool, cache: &Path) -> Result<Pairs<K>, Error> {
        let corpus = Arc::new(Corpus::open(&settings.corpus(), cache)?);
        let validation = settings.validation().map(|files| Corpus::open(&files, cache)).transpose()?;
        // A run that goes on chooses nothing by it, and its first model may be gone.
        let from = settings.from.as_deref().filter(|_| !goes_on);
        let d_model = from.map(K::d_model).transpose()?;
        let reading = K::reading(settings);
        Ok(Pairs { corpus, validation, reading, vocabulary: None, d_model, kind: PhantomData })
    }
}

impl<K> Pairs<K> {
    /// The tokens of the pairs.
    pub(super) fn tokens(&self) -> &Vocabulary {
        self.vocabulary.as_ref().expect("tokens are made or loaded first")
    }
}

impl<K: Kind> Material for Pairs<K> {
    fn facts(&self, draft: &Draft) -> Result<Facts, Error> {
        Ok(Facts {
            examples: self.corpus.len(),
            bytes: self.corpus.size().bytes,
            characters: if draft.chooses_vocabulary() { vocabulary::characters(&self.corpus)? } else { 0 },
            validation: self.validation.as_ref().map_or(0, Corpus::len),
            d_model: self.d_model,
        })
    }

    fn hold_out(&mut self, settings: &Settings) -> Result<(), Error> {
        if settings.hold_out > 0 {
            settings.check_hold_out(self.corpus.len(), "pairs")?;
            let (corpus, held) = self.corpus.hold_out(settings.hold_out, settings.seed);
            (self.corpus, self.validation) = (Arc::new(corpus), Some(held));
        }
        Ok(())
    }

    fn make_tokens(&mut self, settings: &Settings) -> Result<(), Error> {
        self.vocabulary = Some(Vocabulary::make(settings, &self.corpus, &self.reading)?);
        Ok(())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        Ok(self.tokens().tokenizer().save(folder)?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.vocabulary = Some(Vocabulary::load(folder, &self.reading)?);
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        self.tokens().size()
    }

    fn examples(&self, settings: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error> {
        if settings.bpe_dropout > 0.0 && !self.tokens().merges() {
            let problem = "the tokenizer has no merges: set it to 0, or use a SentencePiece BPE tokenizer";
            return Err(Error::setting("bpe_dropout", problem));
        }
        if settings.bpe_dropout > 0.0 && self.tokens().speaks() {
            let problem = "the texts of this model begin with a language: set it to 0";
            return Err(Error::setting("bpe_dropout", problem));
        }
        let encoder = |side| self.tokens().encoder(side, settings.bpe_dropout);
        let pairs = EncodedPairs::new(&self.corpus, encoder(Side::Source), encoder(Side::Target));
        Ok((Arc::new(pairs), Vec::new()))
    }

    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        K::task(self, backend, settings, start)
    }
}
