//! `attentive bench`: how fast this machine is at it.

mod classify;
mod embed;
mod generate;
mod kernels;
mod limit;
mod shares;
mod train;
mod translate;

use crate::error::Error;
use clap::Subcommand;

/// What is measured.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Time training steps on random tokens: forward pass, loss, backward pass, Adam
    Train(train::Train),
    /// Time each kernel and compare it with the limit of the machine
    Kernels(kernels::Kernels),
    /// Time the translation of a file, without loading the model and tokenizing
    Translate(Box<translate::Translate>),
    /// Time how fast the lines of a file become vectors, without loading the model and tokenizing
    Embed(Box<embed::Embed>),
    /// Time how fast a model for pictures computes them, from pixels that are ready
    Classify(classify::Classify),
    /// Time how fast a language model reads prompts of random tokens and writes behind them
    Generate(generate::Generate),
}

pub(crate) fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Train(train) => train::run(train),
        Command::Kernels(kernels) => kernels::run(kernels),
        Command::Translate(translate) => translate::run(translate),
        Command::Embed(embed) => embed::run(embed),
        Command::Classify(classify) => classify::run(classify),
        Command::Generate(generate) => generate::run(generate),
    }
}

/// The middle one of some measurements.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
