//! `attentive bench generate`: how fast a model reads prompts and writes.
//!
//! Prompts are random tokens. No text ends before it has all of its new tokens. A language model writes them behind the prompt; in a
//! model with an encoder and a decoder the prompt is the source. What one new token takes is the
//! time of reading the prompts; what all take beyond that is the time of writing. The middle one of several times counts.

use super::median;
use crate::error::Error;
use crate::machine::peak_mb;
use crate::model::Model;
use crate::options::{Compute, between};
use crate::output;
use crate::precision::DecodingPrecision;
use attentive_generate::{Generator, Hypothesis, MaxLength, Options, Spec};
use attentive_tasks::LanguageModel;
use attentive_tensor::Random;
use clap::Args;
use serde::Serialize;
use std::time::Instant;

/// The options of `attentive bench generate`.
#[derive(Args)]
pub(crate) struct Generate {
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: DecodingPrecision,
    /// Number of prompts, which are continued together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between::<1, 4096>)]
    prompts: usize,
    /// Number of tokens of each prompt
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = between::<1, 1_000_000>)]
    prompt_tokens: usize,
    /// Number of tokens to write for each prompt
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = between::<2, 1_000_000>)]
    new_tokens: usize,
    /// Beam width; 1 is greedy search
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between::<1, 1024>)]
    beam: usize,
    /// Number of measurements; the median time is printed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = between::<1, 1000>)]
    repeat: usize,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Where random tokens come from.
const SEED: u64 = 1;

/// What was measured.
#[derive(Serialize)]
struct Report {
    peer: String,
    prompts: usize,
    prompt_tokens_per_s: f64,
    new_tokens_per_s: f64,
    /// Of reading and writing.
    seconds: f64,
    peak_mb: Option<f64>,
}

pub(crate) fn run(generate: &Generate) -> Result<(), Error> {
    let decoders = generate.compute.decoder(generate.precision)?;
    let int8 = decoders.int8.unwrap_or(false);
    let model = LanguageModel::open_on(&decoders.backends, int8, &generate.model.folder()?)?;
    check_positions(generate, &model.copies[0].spec())?;
    let (vocabulary, lengths) = (model.copies[0].spec().source_vocabulary, model.length_of_new(1));
    let continues = matches!(lengths, MaxLength::SourceAnd(_));
    let prompts: Vec<Vec<u32>> =
        (0..generate.prompts).map(|i| random_prompt(i, generate.prompt_tokens, vocabulary)).collect();
    let options = Options { beam: generate.beam, batch: generate.prompts, ..Options::greedy() };
    let mut generator = Generator::with_copies(model.copies, options)?;
    let mut seconds = |new_tokens: usize, repeat: usize| -> Result<f64, Error> {
        let mut seconds = Vec::new();
        for _ in 0..repeat {
            let begin = Instant::now();
            write(&mut generator, &prompts, new_tokens, continues)?;
            seconds.push(begin.elapsed().as_secs_f64());
        }
        Ok(median(&mut seconds))
    };
    seconds(2, 1)?;
    let (read, whole) = (seconds(1, generate.repeat)?, seconds(generate.new_tokens, generate.repeat)?);
    let written = (generate.prompts * (generate.new_tokens - 1)) as f64;
    let report = Report {
        peer: format!("attentive {} {}", env!("CARGO_PKG_VERSION"), decoders.description(int8)),
        prompts: generate.prompts,
        prompt_tokens_per_s: (generate.prompts * generate.prompt_tokens) as f64 / read,
        new_tokens_per_s: written / (whole - read).max(1e-9),
        seconds: whole,
        peak_mb: peak_mb(),
    };
    if generate.json { output::json(&report) } else { print(&report) }
}

/// Refuses lengths that the model has no positions for.
fn check_positions(generate: &Generate, spec: &Spec) -> Result<(), Error> {
    let (prompt, new) = (generate.prompt_tokens, generate.new_tokens);
    let refuse = |option, problem| Err(Error::Flag { option, problem });
    let most = spec.max_target;
    if spec.continues && prompt.saturating_add(new) > most {
        let problem = format!("{new} tokens behind {prompt} are more than the {most} positions of the model");
        return refuse("new-tokens", problem);
    }
    if !spec.continues && new > most {
        return refuse("new-tokens", format!("{new} are more than the {most} positions of the model"));
    }
    if !spec.continues && prompt > spec.max_source {
        let problem = format!("{prompt} are more than the {} positions of the model", spec.max_source);
        return refuse("prompt-tokens", problem);
    }
    Ok(())
}

fn random_prompt(number: usize, tokens: usize, vocabulary: usize) -> Vec<u32> {
    let random = Random::new(SEED).split(number as u64);
    (0..tokens as u32).map(|i| random.bits(i) % vocabulary as u32).collect()
}

/// Writes exactly that many tokens for each prompt.
fn write(
    generator: &mut Generator,
    prompts: &[Vec<u32>],
    new_tokens: usize,
    continues: bool,
) -> Result<(), Error> {
    let options = Options {
        min_length: new_tokens,
        max_length: if continues { MaxLength::SourceAnd(new_tokens) } else { MaxLength::Tokens(new_tokens) },
        ..generator.options().clone()
    };
    for prompt in prompts {
        generator.push_with(prompt.clone(), options.clone(), 0)?;
    }
    let mut tokens = 0;
    while !generator.is_empty() {
        generator.steps(new_tokens);
        while let Some(found) = generator.pop() {
            tokens += found.first().map_or(0, |best: &Hypothesis| best.tokens.len());
        }
    }
    assert_eq!(tokens, prompts.len() * new_tokens, "every prompt gets all of its new tokens");
    Ok(())
}

fn print(report: &Report) -> Result<(), Error> {
    let mut rows = vec![
        ["prompt tokens/s".to_owned(), format!("{:.0}", report.prompt_tokens_per_s)],
        ["new tokens/s".to_owned(), format!("{:.1}", report.new_tokens_per_s)],
        ["seconds".to_owned(), format!("{:.3}", report.seconds)],
    ];
    rows.extend(report.peak_mb.map(|peak| ["peak MB".to_owned(), format!("{peak:.0}")]));
    output::table(&rows, 1)
}
