//! A training run: from settings and an empty folder to a model in it.
//!
//! ```no_run
//! use attentive_train::{Event, Run, Settings};
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! let settings = Settings {
//!     source: vec!["train.en".into()],
//!     target: vec!["train.de".into()],
//!     steps: Some(1000),
//!     ..Settings::default()
//! };
//! let mut watch = |event: &Event| println!("{event:?}");
//! let mut run = Run::begin(Path::new("model"), settings, &mut watch)?;
//! let outcome = run.train(&AtomicBool::new(false), &mut watch)?;
//! println!("{} steps in {:.0} s", outcome.step, outcome.seconds);
//! # Ok::<(), attentive_train::Error>(())
//! ```

mod astray;
mod begin;
mod choose;
mod end;
mod fresh;
mod judge;
mod save;
mod together;
mod verdict;

use crate::checkpoints::{Checkpoints, State};
use crate::corpus::{Batches, ExampleBatch, Examples};
use crate::learner::Learner;
use crate::lock::Lock;
use crate::logs::Log;
use crate::metrics::{EventMetric, Metric, StepMetric};
use crate::schedule::LearningRate;
use crate::settings::Settings;
use crate::{Begin, Error, Event, Outcome, Progress, Reason, Sample};
use attentive_tensor::Parameter;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A training run in its folder, which is locked against other runs.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    settings: Settings,
    /// How many tokens there are.
    vocabulary: usize,
    examples: Arc<dyn Examples>,
    batches: Batches,
    learner: Learner,
    rate: LearningRate,
    checkpoints: Checkpoints,
    state: State,
    /// The step of the last checkpoint.
    saved: Option<u64>,
    log: Log,
    /// Translations of the last validation.
    samples: Vec<Sample>,
    clock: Clock,
    /// Of rank 0 alone.
    _lock: Option<Arc<Lock>>,
}

/// What is to be done after a step.
#[derive(Debug, Clone, Copy)]
struct Due {
    log: bool,
    validation: bool,
    checkpoint: bool,
}

impl Due {
    const AT_THE_END: Due = Due { log: false, validation: false, checkpoint: true };
}

/// Where the time of this session goes.
#[derive(Debug)]
struct Clock {
    begin: Instant,
    /// Seconds of training in sessions before.
    before: f64,
    /// Seconds in which steps were made.
    steps: f64,
    /// Of these, seconds in which there was no batch.
    waited: f64,
    /// Whether the first batch is there: until then it is not training that waits.
    warm: bool,
}

impl Clock {
    fn start(before: f64) -> Clock {
        Clock { begin: Instant::now(), before, steps: 0.0, waited: 0.0, warm: false }
    }

    /// Seconds of training over all sessions.
    fn seconds(&self) -> f64 {
        self.before + self.begin.elapsed().as_secs_f64()
    }
}

impl Run {
    /// Everything that is learned, as it is now.
    pub fn parameters(&self) -> &[Parameter] {
        self.learner.parameters()
    }

    /// Makes steps until the settings, or `stop`, say that it is enough, and leaves the best model in the
    /// folder. Events go to `watch` as they happen.
    pub fn train(&mut self, stop: &AtomicBool, watch: &mut dyn FnMut(&Event)) -> Result<Outcome, Error> {
        self.clock = Clock::start(self.state.seconds);
        watch(&Event::Begin(self.beginning()));
        loop {
            let reason = self.agreed(self.reason_to_stop(stop))?;
            let due = if reason.is_some() {
                Due::AT_THE_END
            } else {
                self.step(watch)?;
                self.due()
            };
            if let Some(problem) = self.astray(due) {
                self.go_back(&problem, watch)?;
                continue;
            }
            if let Some(reason) = reason {
                return self.end(reason, watch);
            }
            if due.log {
                self.log_steps(watch)?;
            }
            if due.validation {
                self.validate(watch)?;
            }
            if due.checkpoint {
                self.checkpoint()?;
            }
            if due.validation || due.checkpoint {
                self.meet()?;
            }
        }
    }

    /// What is to be done after this step.
    fn due(&self) -> Due {
        let every = |steps: u64| self.state.step.is_multiple_of(steps);
        let validation = self.validates() && every(self.settings.validate_every);
        Due {
            log: every(self.settings.log_every),
            validation,
            checkpoint: validation || every(self.settings.save_every()),
        }
    }

    /// Whether there is something to validate on.
    fn validates(&self) -> bool {
        self.learner.task.held() > 0
    }

    fn beginning(&self) -> Begin {
        let lengths = self.parameters().iter().map(|parameter| parameter.value().shape().len());
        Begin {
            step: self.state.step,
            task: self.settings.task,
            parameters: lengths.sum(),
            vocabulary: self.vocabulary,
            examples: self.examples.len(),
            held: self.learner.task.held(),
            device: self.devices(),
        }
    }

    fn reason_to_stop(&self, stop: &AtomicBool) -> Option<Reason> {
        let Settings { steps, epochs, minutes, .. } = self.settings;
        let state = &self.state;
        let reached = [
            (Reason::Interrupted, stop.load(Ordering::Relaxed)),
            (Reason::Steps, steps.is_some_and(|steps| state.step >= steps)),
            (Reason::Schedule, self.settings.schedule_end().is_some_and(|end| state.step >= end)),
            (Reason::Epochs, epochs.is_some_and(|epochs| state.epoch >= epochs)),
            (Reason::Minutes, minutes.is_some_and(|minutes| self.clock.seconds() >= 60.0 * minutes)),
            (Reason::Patience, self.settings.patience().is_some_and(|most| state.since_best >= most)),
        ];
        reached.into_iter().find(|(_, reached)| *reached).map(|(reason, _)| reason)
    }

    /// Makes one step.
    fn step(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        let begin = Instant::now();
        let batches = self.next_batches()?;
        // What the first batch took is no part of the first step.
        let begin = if std::mem::replace(&mut self.clock.warm, true) { begin } else { Instant::now() };

        let step = self.state.step + 1;
        let rate = self.rate.at(step) * self.state.rate_factor;
        let logs = step.is_multiple_of(self.settings.log_every);
        let norm = self.learner.step(&self.settings, step, rate, &batches, logs)?;
        let norm = norm.map(|norm| self.learner.backend.download_f32(&norm)[0].into());

        let state = &mut self.state;
        (state.step, state.position) = (step, self.batches.next_position().clone());
        state.epoch = self.batches.epochs();
        (state.unlogged.rate, state.unlogged.squared_norm) = (rate, norm);
        state.unlogged.targets += batches.iter().map(|batch| batch.answers() as u64).sum::<u64>();
        state.unlogged.tokens += batches.iter().map(|batch| batch.tokens() as u64).sum::<u64>();
        let seconds = begin.elapsed().as_secs_f64();
        state.unlogged.seconds += seconds;
        self.clock.steps += seconds;
        watch(&Event::Progress(self.progress()));
        Ok(())
    }

    /// The batches of a step.
    fn next_batches(&mut self) -> Result<Vec<ExampleBatch>, Error> {
        let begin = Instant::now();
        let batches = self.batches.by_ref().take(self.settings.accumulate);
        let batches = batches.collect::<Result<Vec<_>, _>>()?;
        if self.clock.warm {
            self.clock.waited += begin.elapsed().as_secs_f64();
        }
        Ok(batches)
    }

    fn progress(&self) -> Progress {
        let (state, seconds) = (&self.state, self.clock.seconds());
        let shares = [
            self.settings.steps.map(|steps| state.step as f64 / steps as f64),
            self.settings.schedule_end().map(|end| state.step as f64 / end as f64),
            self.settings.epochs.map(|epochs| state.epoch / epochs),
            self.settings.minutes.map(|minutes| seconds / (60.0 * minutes)),
        ];
        let share = shares.into_iter().flatten().reduce(f64::max).map(|share| share.min(1.0));
        Progress { step: state.step, epoch: state.epoch, seconds, share }
    }

    /// Writes how the steps since the last such line went.
    fn log_steps(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        let unlogged = std::mem::take(&mut self.state.unlogged);
        let metric = StepMetric {
            step: self.state.step,
            epoch: self.state.epoch,
            loss: self.learner.take_loss() / unlogged.targets.max(1) as f64,
            learning_rate: unlogged.rate,
            gradient_norm: unlogged.squared_norm.unwrap_or_default().sqrt(),
            tokens_per_second: unlogged.tokens as f64 / unlogged.seconds,
            seconds: self.clock.seconds(),
        };
        self.state.course.follow(metric.loss, self.settings.log_every);
        self.log.write(&Metric::Step(metric.clone())).map_err(|error| self.unsaved(error))?;
        watch(&Event::Step(metric));
        Ok(())
    }

    /// Tells something and writes it down.
    fn notice(&mut self, message: String, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        let metric = EventMetric { step: self.state.step, message: message.clone() };
        self.log.write(&Metric::Event(metric)).map_err(|error| self.unsaved(error))?;
        watch(&Event::Notice(message));
        Ok(())
    }
}
