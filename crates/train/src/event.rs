//! The events of a run, for an observer. The library itself prints nothing.

use crate::metrics::{StepMetric, ValidationMetric};
use crate::settings::{Choice, TaskKind};
use std::fmt;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Something takes a while before training begins.
    Preparing(&'static str),
    /// A setting was chosen that was left open.
    Chosen(Choice),
    /// Training begins, or goes on.
    Begin(Begin),
    /// A step was made.
    Progress(Progress),
    /// How the last steps went; it is in `metrics.jsonl`, too.
    Step(StepMetric),
    /// How good the model is; it is in `metrics.jsonl`, too.
    Validation(ValidationMetric, Vec<Sample>),
    /// Something that a person should know; it is in `metrics.jsonl`, too.
    Notice(String),
}

/// What training begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct Begin {
    /// Steps that were made before.
    pub step: u64,
    /// What is learned.
    pub task: TaskKind,
    /// Numbers to learn.
    pub parameters: usize,
    /// Tokens of the vocabulary; none if pictures are learned from.
    pub vocabulary: usize,
    /// Pairs, or other examples, to learn from.
    pub examples: usize,
    /// Examples to validate on.
    pub held: usize,
    /// What computes.
    pub device: String,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps made so far.
    pub step: u64,
    /// How often the corpus was gone through.
    pub epoch: f64,
    /// Seconds of training so far, over all sessions.
    pub seconds: f64,
    /// How much of the run is done, from 0 to 1, by the limit that comes first; none where only early
    /// stopping ends it.
    pub share: Option<f64>,
}

/// A translation beside what it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What was translated.
    pub source: String,
    /// What it should become.
    pub reference: String,
    /// What it became.
    pub translation: String,
}

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// All steps were made.
    Steps,
    /// The learning rate is down to zero.
    Schedule,
    /// The corpus was gone through often enough.
    Epochs,
    /// The time is over.
    Minutes,
    /// It did not get better any more.
    Patience,
    /// Somebody asked it to.
    Interrupted,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Reason::Steps => "the maximum number of steps is reached",
            Reason::Schedule => "the schedule is complete",
            Reason::Epochs => "the maximum number of epochs is reached",
            Reason::Minutes => "the time limit is reached",
            Reason::Patience => "the validation score has stopped improving",
            Reason::Interrupted => "interrupted",
        })
    }
}

/// Why a model would be better after more training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undertrained {
    /// The learning rate was still rising.
    WarmUp {
        /// Steps of the warm-up.
        warmup: u64,
    },
    /// The learning rate had not come down to zero yet.
    Schedule {
        /// The step at which it would have.
        end: u64,
    },
    /// The validation loss was still falling.
    Improving,
}

impl fmt::Display for Undertrained {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Undertrained::WarmUp { warmup } => {
                write!(f, "the run ended during the warm-up of {warmup} steps: the model is hardly trained")
            }
            Undertrained::Schedule { end } => {
                write!(f, "the run ended before the end of its schedule at step {end}")
            }
            Undertrained::Improving => f.write_str("the validation loss was still falling"),
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Why it stopped.
    pub reason: Reason,
    /// Steps made.
    pub step: u64,
    /// How often the corpus was gone through.
    pub epoch: f64,
    /// Seconds of training, over all sessions.
    pub seconds: f64,
    /// What is in the folder: the validation of the model that was saved, if there was any.
    pub best: Option<ValidationMetric>,
    /// Why more training would make it better, if it would.
    pub undertrained: Option<Undertrained>,
    /// Seconds of this session in which steps were made.
    pub session: f64,
    /// Seconds of these that were spent waiting for batches.
    pub waited: f64,
}

impl Outcome {
    /// The share of this session's steps that was spent waiting for batches.
    pub fn waited_share(&self) -> f64 {
        if self.session > 0.0 { self.waited / self.session } else { 0.0 }
    }
}
