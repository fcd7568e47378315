//! `attentive bench train`: whole training steps, as long as they take.
//!
//! The work is that of one step in any trainer: forward with dropout, loss, backward, Adam. Tokens are
//! random and every sequence has its full length, so that nothing but the sizes decides about the time.

mod bert;
mod encoder_decoder;
mod gpt2;

use super::{median, shares};
use crate::error::Error;
use crate::machine::{available_bytes, peak_mb};
use crate::options::{Compute, between};
use crate::output;
use crate::precision::{self, PrecisionChoice};
use attentive_tensor::{Adam, AdamRule, Backend, CpuBackend, Gradients, Parameter, Random, Tape, Var};
use clap::{Args, ValueEnum};
use encoder_decoder::Pairs;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

const SEED: u64 = 1;
/// Steps before the clock runs: by then memory comes from the pool.
const WARM_UP: usize = 3;
const RULE: AdamRule = AdamRule { rate: 1e-4, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };
/// Source tokens, and target tokens, of the largest batch.
const MOST_TOKENS: usize = 1 << 20;

/// The options of `attentive bench train`.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Train {
    /// Family of the model: transformer, bart and t5 learn to write a target, bert, roberta and deberta (the third) to classify, gpt2
    /// to predict the next token
    #[arg(long, value_enum, default_value_t = Family::Transformer)]
    family: Family,
    /// Size of the model and default size of the batch
    #[arg(long, value_enum, default_value_t = Preset::Base)]
    preset: Preset,
    /// Number of sentence pairs, or of texts, in a batch [default: the preset's]
    #[arg(long, value_name = "N", value_parser = between::<1, { 1 << 20 }>)]
    batch: Option<usize>,
    /// Length of a source, or of a text, in tokens [default: the preset's]
    #[arg(long, visible_alias = "tokens", value_name = "N", value_parser = between::<1, 65_536>)]
    source: Option<usize>,
    /// Length of a target in tokens, for transformer, bart and t5 [default: the preset's]
    #[arg(long, value_name = "N", value_parser = between::<1, 65_536>)]
    target: Option<usize>,
    /// Vocabulary size [default: the preset's]
    #[arg(long, value_name = "N", value_parser = between::<2, { 1 << 20 }>)]
    vocab: Option<usize>,
    /// Number of encoder layers, and of decoder layers [default: the preset's]
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Width of the model [default: the preset's]
    #[arg(long, visible_alias = "width", value_name = "N")]
    d_model: Option<usize>,
    /// Number of attention heads [default: the preset's]
    #[arg(long, value_name = "N")]
    heads: Option<usize>,
    /// Width of the feed-forward network [default: the preset's]
    #[arg(long, value_name = "N")]
    d_ff: Option<usize>,
    /// Dropout probability of embeddings and sublayers
    #[arg(long, value_name = "P", default_value_t = 0.1)]
    dropout: f32,
    /// Precision of matrix products
    #[arg(long, value_enum, default_value_t = PrecisionChoice::Auto)]
    precision: PrecisionChoice,
    #[command(flatten)]
    compute: Compute,
    /// Number of steps to time, after three warm-up steps
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = between::<1, 1_000_000>)]
    steps: usize,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Family {
    Transformer,
    Bart,
    T5,
    Bert,
    Roberta,
    Deberta,
    Gpt2,
}

impl Family {
    fn has_target(self) -> bool {
        matches!(self, Family::Transformer | Family::Bart | Family::T5)
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Preset {
    Tiny,
    Small,
    Base,
    Big,
}

/// The sizes of a batch.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    source: usize,
    target: usize,
}

impl Train {
    /// The name of the preset, the vocabulary of the family's first model, and the batch that it has if no flag says otherwise.
    fn preset(&self) -> (&'static str, usize, Sizes) {
        let pairs = |batch, length| Sizes { batch, source: length, target: length };
        let texts = |batch, length| Sizes { batch, source: length, target: 0 };
        let name = match self.preset {
            Preset::Tiny => "tiny",
            Preset::Small => "small",
            Preset::Base => "base",
            Preset::Big => "big",
        };
        let (vocabulary, sizes) = match (self.family, self.preset) {
            (Family::Transformer, Preset::Tiny | Preset::Small) => (8000, pairs(64, 24)),
            (Family::Transformer, Preset::Base) => (16_000, pairs(32, 32)),
            (Family::Transformer, Preset::Big) => (32_000, pairs(16, 32)),
            (Family::Bart, _) => (50_265, pairs(16, 64)),
            (Family::T5, _) => (32_128, pairs(16, 64)),
            (Family::Bert, _) => (30_522, texts(16, 128)),
            (Family::Roberta, _) => (50_265, texts(16, 128)),
            (Family::Deberta, _) => (128_100, texts(16, 128)),
            (Family::Gpt2, _) => (50_257, texts(8, 512)),
        };
        (name, vocabulary, sizes)
    }

    /// The number of heads: that of the preset, or heads of 64 where the width is another.
    fn heads_of(&self, d_model: usize, preset: usize) -> usize {
        self.heads.unwrap_or(if self.d_model.is_some() { (d_model / 64).max(1) } else { preset })
    }

    fn sizes(&self) -> Result<Sizes, Error> {
        let (_, _, preset) = self.preset();
        let sizes = Sizes {
            batch: self.batch.unwrap_or(preset.batch),
            source: self.source.unwrap_or(preset.source),
            target: self.target.unwrap_or(preset.target),
        };
        for (side, length) in [("source", sizes.source), ("target", sizes.target)] {
            let (batch, tokens) = (sizes.batch, sizes.batch * length);
            if tokens > MOST_TOKENS {
                return Err(Error::Batch { batch, side, length, tokens, most: MOST_TOKENS });
            }
        }
        Ok(sizes)
    }
}

/// What was measured.
#[derive(Serialize)]
struct Report {
    family: Family,
    preset: &'static str,
    precision: &'static str,
    isa: &'static str,
    threads: usize,
    parameters: usize,
    steps: usize,
    /// The median.
    step_ms: f64,
    /// Source and target tokens.
    tokens_per_s: f64,
    peak_mb: Option<f64>,
    /// Of the last step.
    loss: f32,
    /// Of the time, for each kind of kernel.
    #[serde(serialize_with = "shares::as_object")]
    shares: Vec<(&'static str, f64)>,
}

/// A model, and a batch that it learns from.
trait Lesson {
    fn parameters(&self) -> &[Parameter];
    fn tokens(&self) -> usize;
    fn loss(&self, tape: &Tape) -> Result<Var, Error>;
}

pub(crate) fn run(train: &Train) -> Result<(), Error> {
    if !train.family.has_target() && train.target.is_some() {
        let problem = "only transformer, bart and t5 have a target: remove the option".to_owned();
        return Err(Error::Flag { option: "target", problem });
    }
    let sizes = train.sizes()?;
    let report = measure(train, sizes)?;
    if train.json { output::json(&report) } else { print(&report) }
}

fn measure(train: &Train, sizes: Sizes) -> Result<Report, Error> {
    let cpu = train.compute.cpu()?;
    let (isa, threads) = (cpu.isa.name(), cpu.threads.count());
    let precision = train.precision.on(cpu.isa);
    let backend = CpuBackend::new(cpu).with_precision(precision).shared();
    let lesson: Box<dyn Lesson> = match train.family {
        Family::Transformer => Box::new(Pairs::transformer(train, sizes, &backend)?),
        Family::Bart => Box::new(Pairs::bart(train, sizes, &backend)?),
        Family::T5 => Box::new(Pairs::t5(train, sizes, &backend)?),
        Family::Bert | Family::Roberta | Family::Deberta => {
            Box::new(bert::Classification::new(train, sizes, &backend)?)
        }
        Family::Gpt2 => Box::new(gpt2::NextToken::new(train, sizes, &backend)?),
    };
    let mut adam = Adam::new(&*backend, lesson.parameters());

    let progress = output::progress(WARM_UP + train.steps);
    progress.set_message("warming up");
    for _ in 0..WARM_UP {
        step(&backend, &*lesson, &mut adam)?;
        progress.inc(1);
    }
    backend.take_profile();
    progress.set_message("measuring");
    let (mut seconds, mut loss) = (Vec::new(), f32::NAN);
    for _ in 0..train.steps {
        let begin = Instant::now();
        loss = step(&backend, &*lesson, &mut adam)?;
        seconds.push(begin.elapsed().as_secs_f64());
        progress.inc(1);
    }
    progress.finish_and_clear();

    let shares = shares::shares(&*backend, seconds.iter().sum());
    let median = median(&mut seconds);
    Ok(Report {
        family: train.family,
        preset: train.preset().0,
        precision: precision::name(precision),
        isa,
        threads,
        parameters: lesson.parameters().iter().map(|parameter| parameter.value().shape().len()).sum(),
        steps: train.steps,
        step_ms: median * 1e3,
        tokens_per_s: lesson.tokens() as f64 / median,
        peak_mb: peak_mb(),
        loss,
        shares,
    })
}

/// One training step, and its loss: reading it waits until a device is done.
fn step(backend: &Arc<dyn Backend>, lesson: &dyn Lesson, adam: &mut Adam) -> Result<f32, Error> {
    let tape = Tape::training(backend, SEED + u64::from(adam.steps()));
    let loss = lesson.loss(&tape)?;
    let mut gradients = Gradients::default();
    tape.backward(&loss, &mut gradients);
    adam.step(&**backend, &RULE, None, &gradients);
    Ok(backend.download_f32(loss.value())[0])
}

/// Random tokens from `first` on; the same for the same number.
fn random_tokens(number: usize, length: usize, first: usize, vocabulary: usize) -> Vec<i32> {
    let random = Random::new(SEED).split(number as u64);
    let most = (vocabulary - first) as u32;
    (0..length as u32).map(|i| (first as u32 + random.bits(i) % most) as i32).collect()
}

/// Refuses what cannot fit: the bytes that a model and its batch need at least.
///
/// The system ends a program that asks for too much, without a word.
fn check_memory(needed: f64) -> Result<(), Error> {
    match available_bytes() {
        Some(available) if needed >= available => {
            Err(Error::Memory { needed: needed / 1e9, available: available / 1e9 })
        }
        _ => Ok(()),
    }
}

/// The sizes of a model that is one stack of layers.
struct Stack {
    d_model: usize,
    d_ff: usize,
    layers: usize,
    /// Rows of its tables of embeddings.
    tables: usize,
}

impl Stack {
    /// Refuses what cannot fit: weights with their gradients and moments, and what the layers keep for the backward pass. It is less
    /// than is used in the end, never more.
    fn check_memory(&self, sizes: Sizes) -> Result<(), Error> {
        let [d, d_ff, layers, tables] =
            [self.d_model, self.d_ff, self.layers, self.tables].map(|size| size as f64);
        let weights = tables * d + layers * (4.0 * d * d + 2.0 * d * d_ff);
        let kept = (sizes.batch * sizes.source) as f64 * layers * (8.0 * d + d_ff);
        check_memory(4.0 * (4.0 * weights + kept) + 4096.0 * layers)
    }
}

fn print(report: &Report) -> Result<(), Error> {
    let facts = [
        ("family", format!("{:?}", report.family).to_lowercase()),
        ("preset", report.preset.to_owned()),
        ("precision", report.precision.to_owned()),
        ("isa", report.isa.to_owned()),
        ("threads", report.threads.to_string()),
        ("parameters", report.parameters.to_string()),
        ("step_ms", format!("{:.2}", report.step_ms)),
        ("tokens_per_s", format!("{:.0}", report.tokens_per_s)),
        ("peak_mb", report.peak_mb.map_or("unknown".to_owned(), |mb| format!("{mb:.0}"))),
        ("loss", format!("{:.4}", report.loss)),
    ];
    let facts = facts.map(|(name, value)| [name.to_owned(), value]).into_iter();
    output::table(&facts.chain(shares::rows(&report.shares)).collect::<Vec<_>>(), 1)
}
