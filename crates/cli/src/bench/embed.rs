//! `attentive bench embed`: how fast lines become vectors.
//!
//! Loading and tokenization are not timed. The lines are embedded several times, and the middle time counts.

use super::{median, shares};
use crate::error::Error;
use crate::machine::peak_mb;
use crate::model::Model;
use crate::options::{Compute, between};
use crate::output;
use crate::precision::DecodingPrecision;
use attentive_tasks::{Embedder, Vectors, cosine};
use attentive_tensor::{Backend, CpuBackend, Form, Precision};
use attentive_text::score::Lines;
use attentive_text::tokenizer::Input;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The options of `attentive bench embed`.
#[derive(Args)]
pub(crate) struct Embed {
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    /// Text to embed, one text per line
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: DecodingPrecision,
    /// Number of texts
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = between::<1, 100_000_000>)]
    limit: usize,
    /// Number of lines that are joined to one text
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between::<1, 1000>)]
    join: usize,
    /// Number of tokens to compute at once
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = between::<1, 1_000_000>)]
    batch: usize,
    /// Number of times to embed the texts; the median time is printed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = between::<1, 1000>)]
    repeat: usize,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    peer: String,
    seconds: f64,
    sentences_per_s: f64,
    tokens_per_s: f64,
    tokens: usize,
    /// The least cosine between vectors of this precision and of f32.
    cosine: f32,
    peak_mb: Option<f64>,
    /// Of the time, for each kind of kernel.
    #[serde(serialize_with = "shares::as_object")]
    shares: Vec<(&'static str, f64)>,
}

/// Texts whose vectors are compared with those of f32.
const COMPARED: usize = 64;

pub(crate) fn run(embed: &Embed) -> Result<(), Error> {
    let lines = Lines::read(&embed.input)?;
    let lines: Vec<&str> =
        lines.segments().into_iter().take(embed.limit.saturating_mul(embed.join)).collect();
    let texts: Vec<String> = lines.chunks(embed.join).map(|lines| lines.join(" ")).collect();
    let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
    let cpu = embed.compute.cpu()?;
    let (precision, int8) = embed.precision.of_encoder(cpu.isa);
    let form = if int8 { Form::Int8 } else { Form::Precise };
    let peer = format!(
        "attentive {} {} {}",
        env!("CARGO_PKG_VERSION"),
        cpu.isa,
        if int8 { "int8".to_owned() } else { precision.to_string() }
    );
    let folder = embed.model.folder()?;
    let backend_of = |precision| CpuBackend::new(cpu.clone()).with_precision(precision).shared();
    let open = |backend: &Arc<dyn Backend>, form| -> Result<Embedder, Error> {
        let embedder = Embedder::open(backend, &folder, form)?;
        Ok(embedder.with_encoder(|encoder| encoder.with_batch_tokens(embed.batch)))
    };
    let backend = backend_of(precision);
    let embedder = open(&backend, form)?;
    let read = embedder.encoder().read(&inputs)?;
    let found = embedder.vectors(&read)?;
    backend.take_profile();
    let mut seconds = Vec::new();
    for _ in 0..embed.repeat {
        let begin = Instant::now();
        embedder.vectors(&read)?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    let shares = shares::shares(&*backend, seconds.iter().sum());
    let (seconds, tokens, peak_mb) = (median(&mut seconds), read.tokens(), peak_mb());
    let exact = open(&backend_of(Precision::F32), Form::Precise)?;
    let exact = exact.vectors(&exact.encoder().read(&inputs[..inputs.len().min(COMPARED)])?)?;
    let report = Report {
        peer,
        seconds,
        sentences_per_s: texts.len() as f64 / seconds,
        tokens_per_s: tokens as f64 / seconds,
        tokens,
        cosine: least_cosine(&found, &exact),
        peak_mb,
        shares,
    };
    if embed.json { output::json(&report) } else { print(&report) }
}

fn least_cosine(found: &Vectors, exact: &Vectors) -> f32 {
    found.rows().zip(exact.rows()).map(|(found, exact)| cosine(found, exact)).fold(1.0, f32::min)
}

fn print(report: &Report) -> Result<(), Error> {
    let mut rows = vec![
        ["seconds".to_owned(), format!("{:.3}", report.seconds)],
        ["texts/s".to_owned(), format!("{:.1}", report.sentences_per_s)],
        ["tokens/s".to_owned(), format!("{:.0}", report.tokens_per_s)],
        ["tokens".to_owned(), report.tokens.to_string()],
        ["cosine to f32".to_owned(), format!("{:.5}", report.cosine)],
    ];
    rows.extend(report.peak_mb.map(|peak| ["peak MB".to_owned(), format!("{peak:.0}")]));
    rows.extend(shares::rows(&report.shares));
    output::table(&rows, 1)
}
