//! `attentive bench`: how fast this machine is at it.

mod kernels;
mod limit;
mod train;
mod translate;

use crate::error::Error;
use clap::Subcommand;

/// What is measured.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Whole training steps on random tokens: forward, loss, backward, Adam
    Train(train::Train),
    /// Each kernel alone, beside the limit that it runs into
    Kernels(kernels::Kernels),
    /// Translate a file with a model, reading and tokenizing left out
    Translate(Box<translate::Translate>),
}

pub(crate) fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Train(train) => train::run(train),
        Command::Kernels(kernels) => kernels::run(kernels),
        Command::Translate(translate) => translate::run(translate),
    }
}

/// The middle one of some measurements.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
