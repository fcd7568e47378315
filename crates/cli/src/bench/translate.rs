//! `attentive bench translate`: how fast a model decodes a file.
//!
//! The clock runs from tokens to tokens: reading the model and the file and both ways of the tokenizer are left out. The file is
//! translated several times, and the middle time counts.

use super::median;
use crate::decoding::{Decoding, SEARCH_RULE};
use crate::error::Error;
use crate::machine::peak_mb;
use crate::options::between;
use crate::output;
use attentive_generate::{Generator, Hypothesis};
use attentive_tasks::ModelFolder;
use attentive_text::score::Lines;
use attentive_text::tokenizer::Side;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// The options of `attentive bench translate`.
#[derive(Args)]
#[command(after_help = SEARCH_RULE)]
pub(crate) struct Translate {
    #[command(flatten)]
    decoding: Decoding,
    /// Text to translate, one sentence per line
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Number of times to translate the file; the median time is printed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = between::<1, 1000>)]
    repeat: usize,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Sentences that are translated before the clock runs.
const WARM_UP: usize = 64;

/// What was measured.
#[derive(Serialize)]
struct Report {
    sentences: usize,
    target_tokens: usize,
    seconds: f64,
    sentences_per_s: f64,
    target_tokens_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_mb: Option<f64>,
}

pub(crate) fn run(translate: &Translate) -> Result<(), Error> {
    let lines = Lines::read(&translate.input)?;
    let ModelFolder { copies, codec, options, .. } = translate.decoding.open(Some(1), false)?;
    let languages = translate.decoding.languages(codec.tokenizer())?;
    let encode =
        |line: &&str| Ok(codec.tokenizer().encode(&languages.prepare(line.trim())?, Side::Source)?);
    let written = lines.segments().into_iter().filter(|line| !line.trim().is_empty());
    let sources: Vec<Vec<u32>> = written.map(|line| encode(&line)).collect::<Result<_, Error>>()?;
    let mut generator = Generator::with_copies(copies, options)?;
    decode(&mut generator, &sources[..sources.len().min(WARM_UP)])?;
    let (mut seconds, mut target_tokens) = (Vec::new(), 0);
    for _ in 0..translate.repeat {
        let begin = Instant::now();
        let results = decode(&mut generator, &sources)?;
        seconds.push(begin.elapsed().as_secs_f64());
        // The end token is not counted, as others do not count it.
        let tokens = |best: &Hypothesis| best.tokens.len() - usize::from(best.ended);
        target_tokens = results.iter().filter_map(|results| results.first()).map(tokens).sum();
    }
    let seconds = median(&mut seconds);
    let report = Report {
        sentences: sources.len(),
        target_tokens,
        seconds,
        sentences_per_s: sources.len() as f64 / seconds,
        target_tokens_per_s: target_tokens as f64 / seconds,
        peak_mb: peak_mb(),
    };
    if translate.json { output::json(&report) } else { print(&report) }
}

fn decode(generator: &mut Generator, sources: &[Vec<u32>]) -> Result<Vec<Vec<Hypothesis>>, Error> {
    Ok(generator.generate(sources.iter().cloned()).collect::<Result<_, _>>()?)
}

fn print(report: &Report) -> Result<(), Error> {
    let mut rows = vec![
        ["sentences".to_owned(), report.sentences.to_string()],
        ["target tokens".to_owned(), report.target_tokens.to_string()],
        ["seconds".to_owned(), format!("{:.3}", report.seconds)],
        ["sentences/s".to_owned(), format!("{:.1}", report.sentences_per_s)],
        ["target tokens/s".to_owned(), format!("{:.0}", report.target_tokens_per_s)],
    ];
    rows.extend(report.peak_mb.map(|peak| ["peak MB".to_owned(), format!("{peak:.0}")]));
    output::table(&rows, 1)
}
