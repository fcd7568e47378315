//! `attentive train`: two text files in, a translator out.

mod flags;
mod watch;

use crate::error::Error;
use crate::interrupt::on_signal;
use crate::output;
use attentive_train::{Outcome, Reason, Run, Settings, settings};
use clap::Args;
use flags::Flags;
use serde::Serialize;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toml::Table;
use watch::Watch;

/// The options of `attentive train`.
#[derive(Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub(crate) struct Train {
    /// The folder of the run, which becomes the model
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Settings as a run has left them in its train.toml; flags win over them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Go on with the run in DIR where it was interrupted, to the same bits; begin it if there is none
    #[arg(long)]
    resume: bool,
    /// Print nothing on the way
    #[arg(long, short)]
    quiet: bool,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

const EXAMPLES: &str = "\
Examples:
  attentive train --source train.en --target train.de \\
                  --valid-source val.en --valid-target val.de --out en-de --minutes 60
  attentive train --out en-de --resume                        go on after Ctrl-C, kill or a power cut
  attentive train --out en-de --resume --minutes 120          go on for longer
  attentive train --config en-de/train.toml --seed 2 --out second

Without flags it is the recipe of the paper: post-norm, Adam(0.9, 0.98, 1e-9), its schedule, label \
smoothing 0.1. A run stops at --steps, --epochs or --minutes, or when --patience validations brought \
nothing better; given none of these, after 10 such validations.

DIR is a model folder that attentive, transformers (MarianMTModel) and CTranslate2's converter read as \
it is. It also has checkpoints/, metrics.jsonl and train.toml, the settings of the run.

Ctrl-C saves and leaves; a second Ctrl-C leaves at once.";

pub(crate) fn run(train: &Train) -> Result<(), Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    on_signal(move || {
        asked.store(true, Ordering::Relaxed);
        let _ = writeln!(stderr(), "\nsaving; once more, and it ends at once");
    });
    let settings = train.settings()?;
    let mut watch = Watch::new(train.quiet);
    let folder = &train.out;
    let outcome = {
        let mut tell = |event: &_| watch.event(event);
        let run = if train.resume { Run::resume } else { Run::begin };
        run(folder, settings, &mut tell).and_then(|mut run| run.train(&stop, &mut tell))
    };
    watch.end();
    let outcome = outcome?;
    if train.json {
        output::json(&Report::new(&outcome, folder))
    } else {
        watch.summary(&outcome, folder);
        Ok(())
    }
}

impl Train {
    /// What the folder's run began with if it is to go on, or else the file, or else the defaults; and the
    /// flags.
    fn settings(&self) -> Result<Settings, Error> {
        let begun = settings::path(&self.out);
        let file = match (&self.config, self.resume && begun.exists()) {
            (Some(config), _) => settings::read(config)?,
            (None, true) => settings::read(&begun)?,
            (None, false) => Table::new(),
        };
        Ok(Settings::merge(file, self.flags.table())?)
    }
}

/// What the command says at the end.
#[derive(Serialize)]
struct Report<'a> {
    out: &'a Path,
    finished: bool,
    reason: String,
    step: u64,
    epoch: f64,
    seconds: f64,
    loss: Option<f64>,
    bleu: Option<f64>,
    chrf: Option<f64>,
    best_step: Option<u64>,
    /// The share of the steps' time that was spent waiting for batches.
    waited: f64,
}

impl Report<'_> {
    fn new<'a>(outcome: &Outcome, out: &'a Path) -> Report<'a> {
        let best = outcome.best.as_ref();
        Report {
            out,
            finished: outcome.reason != Reason::Interrupted,
            reason: outcome.reason.to_string(),
            step: outcome.step,
            epoch: outcome.epoch,
            seconds: outcome.seconds,
            loss: best.map(|best| best.loss),
            bleu: best.and_then(|best| best.bleu),
            chrf: best.and_then(|best| best.chrf),
            best_step: best.map(|best| best.step),
            waited: outcome.waited_share(),
        }
    }
}
