//! Training as one watches it: a line for each validation, with the loss as a bar that gets shorter and a result that gets better.

use crate::error::Error;
use crate::interrupt;
use crate::words::{duration, thousands};
use attentive_train::metrics::ValidationMetric;
use attentive_train::{Begin, Event, Outcome, Reason, Run, Sample, Settings};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{Write, stderr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The width of the longest bar of a loss.
const WIDTH: usize = 22;
/// Positions of the bar that shows how much is done.
const FULL: u64 = 1000;

/// What is learned, in words.
pub(super) trait Subject {
    /// What a person reads before the first step.
    fn begin(&self, begin: &Begin) -> String;

    /// What stands above the column of results; none if there is no such column.
    fn heading(&self, samples: &[Sample]) -> Option<String>;

    /// The result of a validation.
    fn result(&self, metric: &ValidationMetric, samples: &[Sample]) -> String;

    /// What is shown below the line of a validation, when its model is saved.
    fn look(&mut self) -> Option<String> {
        None
    }
}

/// Whoever watches.
pub(super) struct Lesson<S> {
    subject: S,
    quiet: bool,
    bar: ProgressBar,
    /// The first loss, which has the longest bar.
    first: Option<f64>,
    /// Whether there was a validation since the last step.
    is_validated: bool,
}

impl<S: Subject> Lesson<S> {
    pub(super) fn new(subject: S, quiet: bool) -> Lesson<S> {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(FULL) };
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
        Lesson {
            subject,
            quiet,
            bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            first: None,
            is_validated: false,
        }
    }

    /// Trains a model in a folder, or goes on with the one that is there, until it is done or interrupted.
    pub(super) fn learn(mut self, folder: &Path, settings: &Settings) -> Result<Outcome, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        interrupt::on_signal(move || {
            // Once the lesson is over there is nothing to save.
            if asked.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        let mut tell = |event: &_| self.event(event);
        let outcome =
            Run::resume(folder, settings.clone(), &mut tell).and_then(|mut run| run.train(&stop, &mut tell));
        self.bar.finish_and_clear();
        let outcome = outcome?;
        if outcome.reason == Reason::Interrupted {
            return Err(Error::Interrupted);
        }
        self.line(&format!("{} steps in {}\n", outcome.step, duration(outcome.seconds)));
        stop.store(true, Ordering::Relaxed);
        Ok(outcome)
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Preparing(_) | Event::Chosen(_) => {}
            Event::Begin(begin) => self.line(&self.subject.begin(begin)),
            Event::Progress(progress) => {
                if std::mem::take(&mut self.is_validated)
                    && !self.quiet
                    && let Some(look) = self.subject.look()
                {
                    self.line(&look);
                }
                self.bar.set_position((progress.share.unwrap_or(0.0) * FULL as f64) as u64);
            }
            Event::Step(metric) => {
                let speed = thousands(metric.tokens_per_second as usize);
                self.bar.set_message(format!("step {}, {speed} tokens/s", metric.step));
            }
            Event::Validation(metric, samples) => self.validation(metric, samples),
            Event::Notice(message) => self.line(message),
        }
    }

    fn validation(&mut self, metric: &ValidationMetric, samples: &[Sample]) {
        if self.first.is_none()
            && let Some(heading) = self.subject.heading(samples)
        {
            self.line(&format!("  step   loss  {:WIDTH$}  {heading}", ""));
        }
        let first = *self.first.get_or_insert(metric.loss);
        self.line(&format!(
            "{:>6}  {:.3}  {}  {}",
            metric.step,
            metric.loss,
            bar(metric.loss / first),
            self.subject.result(metric, samples)
        ));
        self.is_validated = true;
    }

    /// A line above the bar, or just a line.
    fn line(&self, line: &str) {
        if !self.quiet {
            // The lesson continues even if stderr is closed.
            self.bar.suspend(|| {
                let _ = writeln!(stderr(), "{line}");
            });
        }
    }
}

/// A bar of a length between 0 and 1, in eighths of a character.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (WIDTH * 8) as f64).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{:width$}", "█".repeat(eighths / 8) + part, width = WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(1.0), "█".repeat(22));
        assert_eq!(bar(0.5).trim_end(), "█".repeat(11));
        assert_eq!(bar(1.0 / 22.0 / 2.0).trim_end(), "▌");
        assert_eq!(bar(0.0).trim_end(), "");
        for share in [0.0, 0.1, 0.33, 0.999, 7.0] {
            assert_eq!(bar(share).chars().count(), 22);
        }
    }
}
