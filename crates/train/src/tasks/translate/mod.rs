//! Translation: pairs of sentences in, the original Transformer out.

mod translations;
mod validation;
mod vocabulary;

pub use vocabulary::Vocabulary;

use super::{Judgement, Material, Start, Task};
use crate::corpus::{Corpus, EncodedPairs, ExampleBatch, Examples};
use crate::learner::seed_of_weights;
use crate::settings::{Draft, Facts, Settings};
use crate::{Error, publish};
use attentive_generate::{MaxLength, Options};
use attentive_model::Builder;
use attentive_model::checkpoint::{Checkpoint, Staged};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Batch, Transformer, TransformerConfig};
use attentive_tasks::source_language;
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Var};
use attentive_text::tokenizer::Side;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use validation::Validation;

/// A Transformer that learns to translate.
#[derive(Debug)]
pub struct Translate {
    model: Transformer,
    validation: Option<Validation>,
}

impl Translate {
    /// A model that has learned nothing yet, and that nothing judges.
    pub fn new(
        backend: &Arc<dyn Backend>,
        config: &TransformerConfig,
        settings: &Settings,
    ) -> Result<Translate, Error> {
        let builder = Builder::random(backend, seed_of_weights(settings));
        Ok(Translate { model: Transformer::new(&builder, config)?, validation: None })
    }
}

impl Task for Translate {
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
        let batch = Batch::new(&**tape.backend(), &batch.pairs(), self.model.config().start as i32);
        Ok(self.model.partial_loss(tape, &batch, smoothing, of))
    }

    fn held(&self) -> usize {
        self.validation.as_ref().map_or(0, Validation::pairs)
    }

    fn judge(&self, backend: &Arc<dyn Backend>) -> Result<Option<Judgement>, Error> {
        let Some(validation) = &self.validation else { return Ok(None) };
        let loss = validation.held.loss(backend, self)?;
        let judgement = Judgement { loss, ..Judgement::default() };
        validation.translations.judge(backend, &self.model, judgement).map(Some)
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        let file = Checkpoint::open(path)?;
        let read = |parameter: &Parameter| file.tensor(backend, parameter.name(), parameter.value().shape());
        Ok(self.parameters().iter().map(read).collect::<Result<Vec<_>, _>>()?)
    }
}

/// Pairs on the disk, and their tokens.
pub(super) struct Pairs {
    corpus: Arc<Corpus>,
    validation: Option<Corpus>,
    vocabulary: Option<Vocabulary>,
    /// The width of the model to go on from, if there is one.
    d_model: Option<usize>,
}

impl Pairs {
    /// The pairs to learn from, and those to validate on if there are files for it.
    pub(super) fn read(settings: &Settings, cache: &Path) -> Result<Pairs, Error> {
        let corpus = Arc::new(Corpus::open(&settings.corpus(), cache)?);
        let validation = settings.validation().map(|files| Corpus::open(&files, cache)).transpose()?;
        let from = settings.from.as_deref().map(TransformerConfig::load).transpose();
        // Where the folder is gone, the run that goes on does not need it.
        let d_model = from.unwrap_or_default().map(|config| config.d_model);
        Ok(Pairs { corpus, validation, vocabulary: None, d_model })
    }

    fn tokens(&self) -> &Vocabulary {
        self.vocabulary.as_ref().expect("tokens are made or loaded first")
    }
}

impl Material for Pairs {
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
        self.vocabulary = Some(Vocabulary::make(settings, &self.corpus)?);
        Ok(())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        Ok(self.tokens().tokenizer().save(folder)?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.vocabulary = Some(Vocabulary::load(folder)?);
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
        let mut task = match &settings.from {
            Some(from) => {
                // What is added to logits is no weight of a state: a run that goes on has it in its folder.
                let from = match start {
                    Start::Again(folder) if publish::is_model(folder)? => folder,
                    _ => from,
                };
                let [dropout, attention] =
                    [settings.dropout, settings.attention_dropout].map(|dropout| dropout.map(|p| p as f32));
                let model = Transformer::load_to_learn(backend, from, dropout, attention)?;
                self.tokens().check_fits(model.config(), from)?;
                let most = model.config().max_positions;
                if settings.longest > most {
                    let problem = format!("the model reads at most {most} tokens: set {most} or less");
                    return Err(Error::setting("longest", problem));
                }
                Translate { model, validation: None }
            }
            None => {
                let config = self.tokens().apply(settings.model(self.tokens().size())?);
                Translate::new(backend, &config, settings)?
            }
        };
        let config = task.model.config();
        if let Start::First(folder) | Start::Again(folder) = start {
            let share = self.corpus.multi_sentence_share(source_language(folder).as_deref())?;
            write_configs(folder, config, share)?;
            let validation = self.validation.as_ref();
            let validation = validation
                .map(|corpus| Validation::new(corpus, self.tokens(), settings, config.max_positions));
            task.validation = validation.transpose()?;
        }
        Ok(Box::new(task))
    }
}

/// Writes what says how to load the model and how to generate with it: as [`Options::default`] does. transformers knows no length
/// that follows from the source and would write 20 tokens without `max_length`, so it gets all positions.
/// `multi_sentence_share` is the share of training lines that have several sentences.
fn write_configs(folder: &Path, config: &TransformerConfig, multi_sentence_share: f64) -> Result<(), Error> {
    let usual = Options::default();
    let beyond_source = match usual.max_length {
        MaxLength::SourceAnd(more) => Some(more),
        MaxLength::Tokens(_) => None,
    };
    let generation = json!({
        "attentive_max_tokens_beyond_source": beyond_source,
        "bad_words_ids": config.pad.map(|pad| [[pad]]),
        "decoder_start_token_id": config.start,
        "eos_token_id": config.eos,
        "forced_eos_token_id": config.eos,
        "max_length": config.max_positions,
        "num_beams": usual.beam,
        "pad_token_id": config.pad,
    });
    let text = format!("{generation:#}\n");
    Staged::new(&folder.join("generation_config.json"), text.as_bytes())?.commit()?;
    Ok(config.stage_with_share(folder, multi_sentence_share)?.commit()?)
}
