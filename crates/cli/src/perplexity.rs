//! `attentive perplexity`: how well a language model predicts a text.

use crate::error::Error;
use crate::model::Model;
use crate::options::{Compute, between};
use crate::output;
use crate::precision::PrecisionChoice;
use attentive_tasks::Perplexity;
use attentive_tensor::CpuBackend;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Command {
    /// Text to measure, in UTF-8
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: PrecisionChoice,
    /// Number of tokens from one window to the next [default: half of the model's positions]
    #[arg(long, value_name = "N", value_parser = between::<1, 1_000_000>)]
    stride: Option<usize>,
    /// Print one line of JSON instead of a number
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive perplexity test.txt --model gpt2
  attentive perplexity test.txt --model gpt2 --stride 512 --json

The file is one text. It is read in windows of all positions of the model; each window predicts the tokens that none \
before it has predicted. A shorter stride gives each token more context, and takes longer. The result is e^loss, and \
the loss is the mean over the predicted tokens.";

#[derive(Serialize)]
struct Report {
    perplexity: f64,
    loss: f64,
    tokens: usize,
    predicted: usize,
    stride: usize,
}

pub(crate) fn run(command: &Command) -> Result<(), Error> {
    let name = command.file.display().to_string();
    let text = std::fs::read_to_string(&command.file)
        .map_err(|source| Error::Input { input: name.clone(), source })?;
    let cpu = command.compute.cpu()?;
    let precision = command.precision.on(cpu.isa);
    let backend = CpuBackend::new(cpu).with_precision(precision).shared();
    let model = Perplexity::open(&backend, &command.model.folder()?)?;
    let positions = model.positions();
    let stride = command.stride.unwrap_or(positions.div_ceil(2));
    if stride > positions {
        let problem = format!("must be at most {positions}, the positions of the model, not {stride}");
        return Err(Error::Flag { option: "stride", problem });
    }
    let measured = model.measure(&text, stride).map_err(|error| match error {
        attentive_tasks::Error::NoTokens { .. } => {
            Error::Document { input: name, problem: "a text of at least two tokens is needed".to_owned() }
        }
        other => other.into(),
    })?;
    let perplexity = measured.perplexity();
    if !command.json {
        return output::write(&format!("{perplexity:.4}\n"));
    }
    let (loss, tokens, predicted) = (measured.loss, measured.tokens, measured.predicted);
    output::json(&Report { perplexity, loss, tokens, predicted, stride })
}
