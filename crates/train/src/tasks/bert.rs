//! What all tasks of BERT have in common: where the model comes from, its loss, and its files.

use super::held::Held;
use super::{Judgement, Ranks, Start, Task, dropout};
use crate::Error;
use crate::corpus::ExampleBatch;
use crate::learner::seed_of_weights;
use crate::settings::Settings;
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::bert::{self, Batch, Bert, BertConfig};
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Var};
use attentive_text::tokenizer::train::{Kind, Trainer};
use attentive_text::tokenizer::{Encoding, Input, Side, Tokenizer};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// A BERT that learns, whatever its head.
#[derive(Debug)]
pub struct LearningBert {
    model: Bert,
    held: Option<(Held, Box<dyn Judge>)>,
}

/// Scores answers to the examples that were held out.
pub(super) trait Judge: Debug {
    /// Collective: adds its scores to a judgement.
    fn judge(&self, ranks: &Ranks, judgement: Judgement) -> Result<Judgement, Error>;
}

impl LearningBert {
    /// A model that nothing judges.
    pub fn new(model: Bert) -> LearningBert {
        LearningBert { model, held: None }
    }

    /// The same with examples that are held out, and with the judge of the answers to them.
    pub(super) fn judged_by(self, held: Option<(Held, Box<dyn Judge>)>) -> LearningBert {
        LearningBert { held, ..self }
    }
}

impl Task for LearningBert {
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
        let texts = Batch::with_types(&**tape.backend(), &batch.texts());
        Ok(self.model.partial_loss(tape, &texts, &batch.labels(), smoothing, of)?)
    }

    fn held(&self) -> usize {
        self.held.as_ref().map_or(0, |(held, _)| held.examples())
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        let Some((held, judge)) = &self.held else { return Ok(None) };
        let loss = held.loss(backend, self, ranks)?;
        judge.judge(ranks, Judgement { loss, ..Judgement::default() }).map(Some)
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.model.read_weights(backend, path)?)
    }
}

/// The model of a run, with the head of a task and with these labels. A run that begins gets its `config.json`.
pub(super) fn model(
    backend: &Arc<dyn Backend>,
    settings: &Settings,
    (head, labels): (bert::Task, &[String]),
    tokenizer: &Tokenizer,
    start: Start<'_>,
) -> Result<Bert, Error> {
    let seed = seed_of_weights(settings);
    if let Start::Again(folder) = start {
        return Ok(Bert::new(&Builder::random(backend, seed), &BertConfig::load(folder)?, head)?);
    }
    let model = match &settings.from {
        Some(from) => {
            let config = with_labels(changed(BertConfig::load(from)?, settings), head, labels);
            Bert::load_to_learn(backend, from, &config, head, seed)?
        }
        None => {
            let config = with_labels(settings.bert(vocabulary(tokenizer))?, head, labels);
            let pad = tokenizer.special(Side::Source).pad.map(|pad| pad as usize);
            Bert::new(&Builder::random(backend, seed), &BertConfig { pad, ..config }, head)?
        }
    };
    let (tokens, known) = (vocabulary(tokenizer), model.config().vocab_size);
    if tokens > known {
        let problem =
            format!("the tokenizer has {tokens} tokens and the model {known}: it belongs to another model");
        return Err(Error::setting("from", problem));
    }
    if let Start::First(folder) = start {
        model.config().stage(folder, head)?.commit()?;
    }
    Ok(model)
}

/// Dropout as the settings say, if they do.
fn changed(config: BertConfig, settings: &Settings) -> BertConfig {
    BertConfig {
        dropout: dropout(settings.dropout, config.dropout),
        attention_dropout: dropout(settings.attention_dropout, config.attention_dropout),
        ..config
    }
}

fn with_labels(config: BertConfig, head: bert::Task, labels: &[String]) -> BertConfig {
    if !head.has_labels() {
        return config;
    }
    BertConfig { labels: labels.to_vec(), problem: None, ..config }
}

/// How many tokens there are.
pub(super) fn vocabulary(tokenizer: &Tokenizer) -> usize {
    tokenizer.vocabulary_size(Side::Source)
}

/// The most tokens of a text: what the settings say, if the model that learning begins with reads so many.
pub(super) fn limit(settings: &Settings, origin: Option<&BertConfig>) -> usize {
    settings.longest.min(origin.map_or(usize::MAX, |config| config.max_positions))
}

/// Refuses a text with types of tokens that a model does not tell apart.
pub(super) fn check_types(encoding: &Encoding, origin: Option<&BertConfig>) -> Result<(), Error> {
    let types = origin.map_or(2, |config| config.token_types);
    if types == 0 || encoding.types.iter().all(|&kind| (kind as usize) < types) {
        return Ok(());
    }
    let problem = format!("the model tells {types} type of tokens apart, and pairs of texts have two");
    Err(Error::setting("from", problem))
}

/// The tokenizer that the settings name, or a WordPiece tokenizer that is trained on texts.
pub(super) fn make_tokenizer(
    settings: &Settings,
    texts: impl FnOnce(&mut Trainer) -> Result<(), Error>,
) -> Result<Tokenizer, Error> {
    let tokenizer = match settings.tokenizer.as_ref().or(settings.from.as_ref()) {
        Some(path) => Tokenizer::load(path)?,
        None => {
            let trainer = Trainer::new(Kind::WordPiece, settings.vocab_size);
            let mut trainer = trainer.character_coverage(settings.character_coverage);
            texts(&mut trainer)?;
            trainer.joint()?
        }
    };
    let template = tokenizer.encode_input(Input::Text(""), None);
    let around = template.as_ref().map_or(0, Encoding::len);
    if around == 0 {
        let problem = format!(
            "{} has no template for the texts of this task: use one of a BERT",
            tokenizer.description()
        );
        let name = if settings.from.is_some() { "from" } else { "tokenizer" };
        return Err(Error::setting(name, problem));
    }
    if settings.longest <= around {
        let problem =
            format!("must be above {around}, the tokens around each text, not {}", settings.longest);
        return Err(Error::setting("longest", problem));
    }
    Ok(tokenizer)
}

/// The tokenizer of a folder. A `[SEP]` that is written in a text is text.
pub(super) fn load_tokenizer(folder: &Path) -> Result<Tokenizer, Error> {
    let tokenizer = Tokenizer::load(folder)?;
    Ok(match tokenizer.mask() {
        Some(_) => tokenizer.special_tokens_but_mask_as_text()?,
        None => tokenizer.special_tokens_as_text(),
    })
}
