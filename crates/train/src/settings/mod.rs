//! All settings of a run, as `train.toml` has them: one flat table, a key for each.
//!
//! [`Settings`] are complete: what code does not set has its default (`defaults`). A [`Draft`] is what a person said in a file and on the
//! command line; the settings that it leaves open are chosen from the corpus and the time before the first step (`choose`). A run writes
//! its settings into its folder, and goes on only with the same ones, but for those that say nothing about the steps that were made
//! ([`Settings::refuse_changes`]).

mod check;
mod choose;
mod defaults;
mod draft;
mod file;
mod kinds;
mod pictures;
mod sizes;

pub use choose::{Choice, Facts, Pace};
pub use draft::Draft;
pub(crate) use file::values;
pub use file::{load, read, write};
pub use kinds::{Measure, Norm, PrecisionChoice, TaskKind, TokenizerKind};

use crate::corpus::{Batching, CorpusFiles, FieldNames, Limits, is_called};
use crate::schedule::{LearningRate, Schedule, along_cosine};
use attentive_tensor::{AdamRule, Backend, Cpu, CpuBackend, Isa, Precision, Threads};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What is learned.
    pub task: TaskKind,
    /// The folder of a model to go on learning from; without one the weights are random.
    pub from: Option<PathBuf>,

    /// Files with the sources to learn from, a sentence a line; or files with both sides, `.tsv` or `.jsonl`. Of other tasks than
    /// translation, files with texts, with labels and texts, or with words and tags.
    pub source: Vec<PathBuf>,
    /// Files with their translations, line by line; none where the sources have both sides.
    pub target: Vec<PathBuf>,
    /// Files with the sources to validate on.
    pub valid_source: Vec<PathBuf>,
    /// Files with their translations.
    pub valid_target: Vec<PathBuf>,
    /// Pairs of the corpus that are held out to validate on, where there are no files for it.
    pub hold_out: usize,
    /// The field of the source in the objects of `.jsonl` files.
    pub source_field: String,
    /// The field of the target.
    pub target_field: String,
    /// What stands before each source, such as `summarize: `.
    pub prefix: String,
    /// The language of the sources, of a model of several languages.
    pub source_language: Option<String>,
    /// The language of the targets.
    pub target_language: Option<String>,
    /// The most tokens of a sentence; longer pairs are left out, longer texts of other tasks are cut.
    pub longest: usize,
    /// How many times as long one side may be as the other.
    pub ratio: f64,

    /// A tokenizer to use; without one it is trained.
    pub tokenizer: Option<PathBuf>,
    /// What to train.
    pub tokenizer_kind: TokenizerKind,
    /// How many tokens to train, the special ones included.
    pub vocab_size: usize,
    /// The share of the text whose characters get pieces.
    pub character_coverage: f64,
    /// The probability that a merge of a BPE tokenizer is skipped while the model learns, so that it sees words
    /// cut in many ways. Zero is none.
    pub bpe_dropout: f64,

    /// The sizes of the model: `tiny`, `small`, `base` or `big`; of a language model those of GPT-3, too, such as `gpt3-125m`.
    pub preset: String,
    /// The width of the model, if not the preset's.
    pub d_model: Option<usize>,
    /// Heads of an attention, if not the preset's.
    pub heads: Option<usize>,
    /// The width of the feed-forward network, if not the preset's.
    pub d_ff: Option<usize>,
    /// Layers of the encoder, if not the preset's.
    pub encoder_layers: Option<usize>,
    /// Layers of the decoder, if not the preset's.
    pub decoder_layers: Option<usize>,
    /// Dropout of embeddings and sublayers, if not the preset's.
    pub dropout: Option<f64>,
    /// Dropout of attention weights; if not given that of the model to go on from, or none of a translator and 0.1 of a BERT.
    pub attention_dropout: Option<f64>,
    /// Where norms stand.
    pub norm: Norm,
    /// Height and width of the pictures that a new model reads, if not those of the corpus.
    pub image_size: Option<usize>,
    /// Height and width of a patch of a new model.
    pub patch_size: Option<usize>,

    /// The least and the greatest share of a picture's area that is seen of it in an epoch; 1 and 1 is the whole picture.
    pub scale: [f64; 2],
    /// How likely a picture is seen in a mirror.
    pub hflip: f64,
    /// How much brightness, contrast and saturation vary: one number for all, or one for each, and perhaps one for the hue.
    pub color_jitter: Vec<f64>,
    /// How likely they do.
    pub color_jitter_prob: f64,
    /// How likely a picture loses its colours.
    pub grayscale_prob: f64,
    /// How likely it is blurred.
    pub gaussian_blur_prob: f64,
    /// How likely its bright levels are inverted.
    pub solarize_prob: f64,
    /// How likely a part of it is erased.
    pub reprob: f64,
    /// α of mixup; zero is none.
    pub mixup: f64,

    /// The least and the greatest share of a picture's area that a global view of DINO has.
    pub global_crops_scale: [f64; 2],
    /// The same for a local view.
    pub local_crops_scale: [f64; 2],
    /// How many local views there are beside the two global ones.
    pub local_crops_number: usize,
    /// Height and width of a local view; if not given, 96 of 224 parts of a global one.
    pub local_crops_size: Option<usize>,
    /// Logits of DINO's head.
    pub out_dim: usize,
    /// Width of the layers in its head.
    pub hidden_dim: usize,
    /// Width of what its last layer reads.
    pub bottleneck_dim: usize,
    /// How much of the teacher stays at the first step; it rises to 1 along half a cosine.
    pub momentum_teacher: f64,
    /// The temperature of the teacher at the first step.
    pub warmup_teacher_temp: f64,
    /// The temperature of the teacher after its warm-up.
    pub teacher_temp: f64,
    /// Steps over which the temperature of the teacher changes.
    pub warmup_teacher_temp_steps: u64,
    /// Steps in which the last layer of DINO's head stays as it is.
    pub freeze_last_layer: u64,

    /// Tokens of a batch, sources and targets together.
    pub batch_tokens: usize,
    /// The most examples of a batch, if there is a limit beside that of tokens.
    pub batch_size: Option<usize>,
    /// Batches of a step.
    pub accumulate: usize,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// The step at which a cosine or a line reaches its end, if not the last one of `steps`. The run ends there.
    pub schedule_steps: Option<u64>,
    /// The share of a text's tokens that a masked language model has to guess.
    pub mask_share: f64,
    /// The factor of the paper's schedule (1 if not given), the peak of the others (0.0005 if not given).
    pub learning_rate: Option<f64>,
    /// The learning rate at the end of a cosine or a line.
    pub last_learning_rate: f64,
    /// Steps over which the learning rate rises.
    pub warmup: u64,
    /// β₁ of Adam.
    pub beta1: f64,
    /// β₂ of Adam.
    pub beta2: f64,
    /// ε of Adam.
    pub epsilon: f64,
    /// The decay of weights, as AdamW has it; zero is plain Adam. Biases and norms do not decay.
    pub weight_decay: f64,
    /// The decay of weights at the last step, to which it goes along half a cosine, if it is to change.
    pub weight_decay_end: Option<f64>,
    /// The greatest norm of a step's gradient; longer ones are scaled down. Zero is no limit.
    pub clip: f64,
    /// ε of label smoothing.
    pub label_smoothing: f64,
    /// How much of an exponential moving average of the weights stays from step to step; it is what is
    /// validated and saved. Zero is no average.
    pub ema: f64,
    /// How many of the last checkpoints are averaged at the end. Zero is none.
    pub average: usize,

    /// Stop after so many steps.
    pub steps: Option<u64>,
    /// Stop when the corpus was gone through so often.
    pub epochs: Option<f64>,
    /// Stop after so many minutes of training.
    pub minutes: Option<f64>,
    /// Stop after so many validations without a better one.
    pub patience: Option<u64>,
    /// What is better: lower loss, or a higher score.
    pub early_stopping: Measure,
    /// Steps between two validations.
    pub validate_every: u64,
    /// How many validation pairs are translated for BLEU and chrF, or how many questions are answered, from the first on.
    pub validate_lines: usize,
    /// Hypotheses that validation keeps while it translates; one is greedy.
    pub validate_beam: usize,
    /// Steps between two checkpoints, if not those between two validations. There is one at every validation.
    pub save_every: Option<u64>,
    /// How many checkpoints are kept beside the best.
    pub keep: usize,
    /// Steps between two lines of `metrics.jsonl`.
    pub log_every: u64,

    /// Where weights, order and dropout come from.
    pub seed: u64,
    /// What matrix products are computed in.
    pub precision: PrecisionChoice,
    /// How many threads compute; all cores if not given.
    pub threads: Option<usize>,
}

/// The side of pictures whose size nothing tells.
pub(crate) const USUAL_SIDE: usize = 224;

/// Pictures of a window, which are in memory together with those of the next.
const PICTURES_AHEAD: usize = 1024;

/// Early stopping where nothing else says when to stop.
const PATIENCE: u64 = 10;

impl Settings {
    /// The files to learn from.
    pub fn corpus(&self) -> CorpusFiles {
        self.files(&self.source, &self.target)
    }

    /// The files to validate on, if there are any.
    pub fn validation(&self) -> Option<CorpusFiles> {
        let (sources, targets) = (&self.valid_source, &self.valid_target);
        (!sources.is_empty() || !targets.is_empty()).then(|| self.files(sources, targets))
    }

    /// Whether there is something to validate on.
    pub fn validates(&self) -> bool {
        self.validation().is_some() || self.hold_out > 0
    }

    /// The step at which the schedule is complete and the run ends, if it has such a step.
    pub fn schedule_end(&self) -> Option<u64> {
        self.schedule_steps.filter(|_| self.schedule.needs_steps())
    }

    /// Two files for each part of a corpus, or files with both sides, which their names tell.
    fn files(&self, sources: &[PathBuf], targets: &[PathBuf]) -> CorpusFiles {
        let all = |ending: &str| targets.is_empty() && sources.iter().all(|path| is_called(path, ending));
        let (source, target) = (self.source_field.clone(), self.target_field.clone());
        match sources {
            [_, ..] if all(".tsv") => CorpusFiles::Tsv(sources.to_vec()),
            [_, ..] if all(".jsonl") => {
                CorpusFiles::Jsonl { files: sources.to_vec(), fields: FieldNames { source, target } }
            }
            _ => CorpusFiles::Pairs { sources: sources.to_vec(), targets: targets.to_vec() },
        }
    }

    /// How batches are made.
    pub fn batching(&self) -> Batching {
        // A summary may be as much shorter than its text as it likes.
        let ratio = if self.task == TaskKind::Seq2Seq { f64::MAX } else { self.ratio };
        let limits = Limits { longest: self.longest, ratio };
        let (tokens, examples) = (self.batch_tokens, self.batch_size);
        let usual = Batching::default();
        // Pixels take more room than tokens do.
        let window = match self.task {
            TaskKind::ClassifyImages => PICTURES_AHEAD,
            // Each has many views.
            TaskKind::Dino => PICTURES_AHEAD / 4,
            _ => usual.window,
        };
        Batching { seed: self.seed, tokens, examples, limits, window }
    }

    /// The learning rate of a model of this width.
    pub fn learning_rate(&self, d_model: usize) -> LearningRate {
        let usual = if self.schedule == Schedule::Paper { 1.0 } else { 5e-4 };
        LearningRate {
            schedule: self.schedule,
            rate: self.learning_rate.unwrap_or(usual),
            last: self.last_learning_rate,
            warmup: self.warmup,
            steps: self.last_step(),
            d_model,
        }
    }

    /// The last step, if it is known.
    fn last_step(&self) -> Option<u64> {
        self.schedule_steps.or(self.steps)
    }

    /// Whether there is a moving average of the weights; that of DINO is its teacher.
    pub(crate) fn averages(&self) -> bool {
        self.ema > 0.0 || self.task == TaskKind::Dino
    }

    /// How much of the moving average stays at a step, counted from 1.
    ///
    /// A mean of weights that change much follows closely at first: that is the usual warm-up of such means.
    pub(crate) fn decay(&self, step: u64) -> f64 {
        if self.task == TaskKind::Dino {
            let first = self.momentum_teacher;
            return self.last_step().map_or(first, |last| along_cosine([first, 1.0], step, last));
        }
        self.ema.min((1.0 + step as f64) / (10.0 + step as f64))
    }

    /// What Adam is told at a step whose learning rate is `rate`.
    pub fn adam(&self, rate: f64, step: u64) -> AdamRule {
        let ends = self.weight_decay_end.zip(self.last_step());
        let weight_decay =
            ends.map_or(self.weight_decay, |(end, last)| along_cosine([self.weight_decay, end], step, last));
        AdamRule {
            rate: rate as f32,
            beta1: self.beta1 as f32,
            beta2: self.beta2 as f32,
            epsilon: self.epsilon as f32,
            weight_decay: weight_decay as f32,
        }
    }

    /// The validations without a better one after which a run stops: a run that nothing else would stop has a
    /// limit, too.
    pub fn patience(&self) -> Option<u64> {
        self.patience.or((!self.is_limited()).then_some(PATIENCE))
    }

    /// Whether something else than early stopping ends the run.
    pub fn is_limited(&self) -> bool {
        self.steps.is_some() || self.epochs.is_some() || self.minutes.is_some()
    }

    /// Steps between two checkpoints.
    pub fn save_every(&self) -> u64 {
        self.save_every.unwrap_or(self.validate_every)
    }

    /// The device that the settings and `ATTENTIVE_ISA` want.
    pub fn backend(&self) -> Result<Arc<dyn Backend>, attentive_tensor::Error> {
        let isa = Isa::from_env()?;
        let precision = match self.precision {
            PrecisionChoice::F32 => Precision::F32,
            PrecisionChoice::Bf16 => Precision::Bf16,
            PrecisionChoice::Auto => Precision::fastest(isa),
        };
        Ok(CpuBackend::new(Cpu { isa, threads: self.pool() }).with_precision(precision).shared())
    }

    /// A pool of as many threads as the settings want.
    pub(crate) fn pool(&self) -> Threads {
        Threads::new(self.threads.unwrap_or_else(attentive_ranks::threads_each))
    }

    /// The same settings with paths that hold wherever they are read.
    pub fn absolute(mut self) -> Settings {
        let absolute = |path: &mut PathBuf| {
            if let Ok(whole) = std::path::absolute(&path) {
                *path = whole;
            }
        };
        let lists = [&mut self.source, &mut self.target, &mut self.valid_source, &mut self.valid_target];
        let single = self.tokenizer.iter_mut().chain(&mut self.from);
        lists.into_iter().flatten().chain(single).for_each(absolute);
        self
    }
}

/// The name of the file in a run's folder.
pub const FILE_NAME: &str = "train.toml";

/// Where a run's settings are.
pub fn path(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}
