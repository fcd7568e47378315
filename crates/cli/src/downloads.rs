//! How downloads are shown: a bar in a terminal, a line for each larger one elsewhere.

use crate::words;
use attentive_hub::{Plan, Watch};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{Write, stderr};

/// Downloads below this size get no line if stderr is not a terminal.
const SMALL: u64 = 1_000_000;

/// Shows the downloads of a command.
pub(crate) struct Downloads {
    bar: ProgressBar,
}

impl Downloads {
    pub(crate) fn new() -> Downloads {
        let style = ProgressStyle::with_template(
            "{msg} {bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta} left",
        );
        let bar = ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Downloads { bar }
    }

    /// Writes a line beside the bar.
    fn say(&self, line: &str) {
        // The download continues even if stderr is closed.
        self.bar.suspend(|| drop(writeln!(stderr(), "attentive: {line}")));
    }
}

impl Watch for Downloads {
    fn begins(&self, plan: &Plan<'_>) {
        if self.bar.is_hidden() {
            if plan.bytes >= SMALL {
                let (files, bytes) = (words::count(plan.files, "file"), words::bytes(plan.bytes));
                self.say(&format!("downloading {} from {}: {files}, {bytes}", plan.name, plan.host));
            }
            return;
        }
        self.bar.set_length(self.bar.length().unwrap_or(0) + plan.bytes);
        self.bar.set_message(plan.name.to_string());
    }

    fn received(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn lost(&self, bytes: u64) {
        self.bar.set_position(self.bar.position().saturating_sub(bytes));
    }

    fn waits(&self, reason: &str) {
        self.say(reason);
    }

    fn warns(&self, what: &str) {
        self.say(what);
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
