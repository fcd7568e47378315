//! What can be learned: a file for each task.
//!
//! | task | learns from | model | is judged by |
//! |---|---|---|---|
//! | `translate` | pairs of sentences | the original Transformer | loss, BLEU, chrF |
//! | `seq2seq` | pairs of texts | T5, BART | loss, BLEU, chrF, ROUGE |
//! | `classify` | texts, or pairs of texts, with a label | BERT | loss, accuracy, F1 |
//! | `tag` | sentences with a tag for each word | BERT | loss, accuracy, F1 of spans |
//! | `answer` | questions with a text and answers in it | BERT | loss, exact match, F1 |
//! | `mlm` | texts | BERT | loss |
//! | `lm` | texts | GPT-2 | loss |
//! | `classify-images` | pictures with a label | ViT | loss, accuracy, F1 |
//! | `dino` | pictures | ViT | loss and accuracy of nearest neighbours |
//! | `detect` | pictures with boxes | DETR | loss, average precision |
//!
//! A task has two parts. A `Material` reads the examples and their tokenizer from disk. A [`Task`] is the model that learns from them, with
//! its loss and its validation. Everything else of a run (steps, checkpoints, limits, logs) is the same for all tasks.

mod answer;
mod bert;
mod classify;
mod detect;
mod held;
mod labelled;
mod lm;
mod masked_lm;
mod pairs;
mod pictures;
mod seq2seq;
mod tag;
mod translate;

pub use bert::LearningBert;
pub use lm::LearningGpt2;
pub use pairs::{Learned, LearningPairs, Vocabulary};
pub use pictures::{LearningDino, LearningVit};
pub use translate::Translate;

pub use crate::ranks::Ranks;

use crate::corpus::{ExampleBatch, Examples};
use crate::settings::{Draft, Facts, Settings, TaskKind};
use crate::{Error, Sample};
use attentive_model::checkpoint::Staged;
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Var};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// A model that learns, with its loss and its validation.
pub trait Task: Debug {
    /// The parameters that are learned.
    fn parameters(&self) -> &[Parameter];

    /// The width of the model. The learning rate of the paper's schedule depends on it.
    fn d_model(&self) -> usize;

    /// The contribution of a batch to the mean loss over the `of` answers of all batches of a step. `smoothing` is ε of label smoothing.
    fn partial_loss(
        &self,
        tape: &Tape,
        batch: &ExampleBatch,
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error>;

    /// The parameters of a teacher: a second model of the same sizes, which the learner keeps as the moving average of this one.
    fn teacher(&self) -> Option<&[Parameter]> {
        None
    }

    /// State that steps change without gradients, such as running means. Checkpoints contain it.
    fn buffers(&self) -> &[Parameter] {
        &[]
    }

    /// For how many steps at the beginning of a run a parameter is frozen.
    fn waits(&self, _parameter: &Parameter) -> u64 {
        0
    }

    /// Called before each step with its number, counted from 1.
    fn before_step(&self, _step: u64) {}

    /// Called after each step, to update the buffers.
    fn after_step(&self, _backend: &dyn Backend) {}

    /// The number of validation examples.
    fn held(&self) -> usize;

    /// Validates the model as it is now; none if there are no validation examples. A collective call: all ranks share the work, and the
    /// result has the bits of one rank alone.
    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error>;

    /// Writes the weights to a file as a model folder has them, beside the old one.
    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error>;

    /// The weights in such a file, in the order of the parameters.
    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error>;
}

/// How good a model is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// The mean loss of an answer, without label smoothing.
    pub loss: f64,
    /// BLEU of its translations, as sacreBLEU has it, if they were scored.
    pub bleu: Option<f64>,
    /// chrF of its translations.
    pub chrf: Option<f64>,
    /// The F1 of ROUGE-L of what it writes, in per cent.
    pub rouge: Option<f64>,
    /// The share of labels that are right, in per cent.
    pub accuracy: Option<f64>,
    /// The share of answers that are exactly a known one, in per cent, as SQuAD counts it.
    pub exact: Option<f64>,
    /// F1 in per cent: of spans as seqeval counts it, of answers as SQuAD does, or the mean over the classes of texts.
    pub f1: Option<f64>,
    /// COCO's average precision of boxes in per cent, over all of its thresholds.
    pub ap: Option<f64>,
    /// That at the threshold 0.5.
    pub ap50: Option<f64>,
    /// Some translations.
    pub samples: Vec<Sample>,
}

/// The dropout of a model that is trained further: that of the settings, or else the model's own.
fn dropout(said: Option<f64>, own: f32) -> f32 {
    said.map_or(own, |dropout| dropout as f32)
}

/// The data of a task: examples and their tokenizer.
pub(crate) trait Material {
    /// The size of the data.
    fn facts(&self, draft: &Draft) -> Result<Facts, Error>;

    /// Holds out examples for validation, if the settings say so.
    fn hold_out(&mut self, settings: &Settings) -> Result<(), Error>;

    /// Reads or trains the tokenizer that the settings ask for.
    fn make_tokens(&mut self, settings: &Settings) -> Result<(), Error>;

    /// Writes the tokenizer into a folder.
    fn save_tokens(&self, folder: &Path) -> Result<(), Error>;

    /// Reads the tokenizer of the run in a folder.
    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error>;

    /// The size of the vocabulary that the model needs.
    fn vocabulary(&self) -> usize;

    /// The examples, and messages about them for the user.
    fn examples(&self, settings: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error>;

    /// The model that is to learn.
    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error>;
}

/// Where a model comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'a> {
    /// A trial model: its steps are timed, then it is dropped.
    Trial,
    /// A run begins in a folder, which gets the files that describe the model.
    First(&'a Path),
    /// The run in a folder goes on: its weights will be read from a checkpoint.
    Again(&'a Path),
}

/// Reads what the task of the settings learns from, for a run that begins in a folder or goes on. Compressed files are unpacked into
/// the folder.
pub(crate) fn read(settings: &Settings, folder: &Path, goes_on: bool) -> Result<Box<dyn Material>, Error> {
    let cache = folder.join("corpus");
    // A run that goes on has all that it needs of the model that it began with.
    let origin = if goes_on { Some(folder) } else { settings.from.as_deref() };
    Ok(match settings.task {
        TaskKind::Translate => {
            Box::new(pairs::Pairs::<translate::Sentences>::read(settings, goes_on, &cache)?)
        }
        TaskKind::Seq2Seq => Box::new(pairs::Pairs::<seq2seq::Texts>::read(settings, goes_on, &cache)?),
        TaskKind::Classify => {
            Box::new(labelled::Material::<classify::Texts>::read(settings, origin, &cache)?)
        }
        TaskKind::Tag => Box::new(labelled::Material::<tag::Sentences>::read(settings, origin, &cache)?),
        TaskKind::ClassifyImages | TaskKind::Dino => Box::new(pictures::Pictures::read(settings, origin)?),
        TaskKind::Answer => {
            Box::new(labelled::Material::<answer::Questions>::read(settings, origin, &cache)?)
        }
        TaskKind::Detect => Box::new(detect::Pictures::read(settings, origin)?),
        TaskKind::Lm => Box::new(lm::Texts::read(settings, origin, &cache)?),
        TaskKind::Mlm => Box::new(masked_lm::Lines::read(settings, origin, &cache)?),
    })
}
