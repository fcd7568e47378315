//! What a run shows on the way: a bar with the last numbers on a terminal, plain lines elsewhere, both on
//! stderr.

use crate::words::{duration, scores, thousands};
use attentive_train::metrics::{StepMetric, ValidationMetric};
use attentive_train::{Begin, Event, Outcome, Progress, Reason, Sample};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::time::Duration;

/// Positions of the bar: the share of the run that is done, in thousandths.
const FULL: u64 = 1000;

/// Whoever watches a run.
pub(super) struct Watch {
    quiet: bool,
    bar: ProgressBar,
    /// Whether the bar is visible.
    terminal: bool,
    /// Seconds of training before this session, and the share that was done then.
    begun: Option<(f64, f64)>,
}

impl Watch {
    pub(super) fn new(quiet: bool) -> Watch {
        let terminal = stderr().is_terminal();
        let bar = if quiet || !terminal { ProgressBar::hidden() } else { ProgressBar::new(FULL) };
        Watch { quiet, bar, terminal, begun: None }
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Preparing(what) => self.prepare(what),
            Event::Chosen(choice) => self.line(&choice.to_string()),
            Event::Begin(begin) => self.begin(begin),
            Event::Progress(progress) => self.progress(progress),
            Event::Step(metric) => self.step(metric),
            Event::Validation(metric, samples) => self.validation(metric, samples),
            Event::Notice(message) => self.line(message),
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// What came of it, given the limits of the run.
    pub(super) fn summary(&self, outcome: &Outcome, folder: &Path, limits: &[(&str, f64)]) {
        let folder = folder.display();
        let Outcome { step, epoch, reason, .. } = outcome;
        if *reason == Reason::Interrupted {
            return self
                .line(&format!("saved at step {step}; to resume: attentive train --out {folder} --resume"));
        }
        let best = outcome.best.as_ref().map(|best| format!(", {}", scores(best))).unwrap_or_default();
        self.line(&format!(
            "{reason}: {step} steps, {epoch:.1} epochs, {}{best}; {:.1} % of the training time was spent \
             waiting for data",
            duration(outcome.seconds),
            100.0 * outcome.waited_share(),
        ));
        self.line(&format!("the model is in {folder}"));
        if let Some(why) = outcome.undertrained {
            let more: String =
                limits.iter().map(|(name, number)| format!(" --{name} {}", (4.0 * number).ceil())).collect();
            self.line(&format!("{why}; to train longer: attentive train --out {folder} --resume{more}"));
        }
    }

    fn prepare(&self, what: &str) {
        self.bar.set_style(style("{spinner} {msg}"));
        self.bar.enable_steady_tick(Duration::from_millis(100));
        self.bar.set_message(what.to_owned());
        if !self.terminal {
            self.line(what);
        }
    }

    fn begin(&mut self, begin: &Begin) {
        let Begin { step, task, parameters, vocabulary, examples, held, device } = begin;
        let what = task.examples();
        let from = if *step > 0 { format!(", resumed at step {step}") } else { String::new() };
        // Pictures have no words.
        let words = match vocabulary {
            0 => String::new(),
            tokens => format!("{tokens} tokens in the vocabulary, "),
        };
        self.line(&format!(
            "{} parameters, {words}{} training {what}, {} validation {what}, {device}{from}",
            thousands(*parameters),
            thousands(*examples),
            thousands(*held),
        ));
        self.bar.disable_steady_tick();
        self.bar.set_style(style("{bar:30} {percent:>3} %  step {prefix}  {msg}"));
    }

    fn progress(&mut self, progress: &Progress) {
        let share = progress.share.unwrap_or(0.0);
        self.begun.get_or_insert((progress.seconds, share));
        self.bar.set_prefix(progress.step.to_string());
        self.bar.set_position((share * FULL as f64) as u64);
    }

    /// How long it will take, as things go in this session.
    fn left(&self, seconds: f64) -> Option<f64> {
        let (before, share) = self.begun?;
        let done = self.bar.position() as f64 / FULL as f64;
        (done > share).then(|| (seconds - before) / (done - share) * (1.0 - done))
    }

    fn step(&self, metric: &StepMetric) {
        let StepMetric { step, epoch, loss, learning_rate, tokens_per_second, .. } = metric;
        let left =
            self.left(metric.seconds).map(|left| format!("  {} left", duration(left))).unwrap_or_default();
        let numbers = format!(
            "loss {loss:.3}  learning rate {learning_rate:.2e}  {} tokens/s{left}",
            thousands(*tokens_per_second as usize)
        );
        self.bar.set_message(numbers.clone());
        if !self.terminal {
            self.line(&format!("step {step}  epoch {epoch:.2}  {numbers}"));
        }
    }

    fn validation(&self, metric: &ValidationMetric, samples: &[Sample]) {
        let best = if metric.best { ", best so far" } else { "" };
        self.line(&format!("step {}: {}{best}", metric.step, scores(metric)));
        for Sample { source, reference, translation } in samples {
            self.line(&format!(
                "  source     {source}\n  reference  {reference}\n  translated {translation}"
            ));
        }
    }

    /// A line above the bar, or just a line.
    fn line(&self, line: &str) {
        if self.quiet {
            return;
        }
        // The run continues even if stderr is closed.
        self.bar.suspend(|| {
            let _ = writeln!(stderr(), "{line}");
        });
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
