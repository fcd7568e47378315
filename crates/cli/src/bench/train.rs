//! `attentive bench train`: whole training steps, as long as they take.
//!
//! The work is that of one step in any trainer: forward with dropout, label-smoothed loss, backward, Adam. Tokens are
//! random and every sequence has its full length, so that nothing but the sizes decides about the time.

use super::median;
use crate::error::Error;
use crate::machine::{available_bytes, peak_mb};
use crate::options::{Compute, between};
use crate::output;
use crate::precision::{self, PrecisionChoice};
use attentive_model::Builder;
use attentive_model::families::transformer::{Batch, Transformer, TransformerConfig};
use attentive_tensor::{Adam, AdamRule, Backend, CpuBackend, Gradients, Random, Tape};
use clap::{Args, ValueEnum};
use serde::{Serialize, Serializer};
use std::sync::Arc;
use std::time::Instant;

const SEED: u64 = 1;
/// Steps before the clock runs: by then memory comes from the pool.
const WARM_UP: usize = 3;
const SMOOTHING: f32 = 0.1;
const RULE: AdamRule = AdamRule { rate: 1e-4, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };
/// Positions that every model has, and more where sequences are longer.
const POSITIONS: usize = 1024;
/// Source tokens, and target tokens, of the largest batch.
const MOST_TOKENS: usize = 1 << 20;

/// The options of `attentive bench train`.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Train {
    /// Size of the model and default size of the batch
    #[arg(long, value_enum, default_value_t = Preset::Base)]
    preset: Preset,
    /// Number of sentence pairs in a batch [default: the preset's]
    #[arg(long, value_name = "N", value_parser = between::<1, { 1 << 20 }>)]
    batch: Option<usize>,
    /// Length of a source in tokens [default: the preset's]
    #[arg(long, value_name = "N", value_parser = between::<1, 65_536>)]
    source: Option<usize>,
    /// Length of a target in tokens [default: the preset's]
    #[arg(long, value_name = "N", value_parser = between::<1, 65_536>)]
    target: Option<usize>,
    /// Vocabulary size [default: the preset's]
    #[arg(long, value_name = "N", value_parser = between::<2, { 1 << 20 }>)]
    vocab: Option<usize>,
    /// Number of encoder layers, and of decoder layers [default: the preset's]
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Width of the model [default: the preset's]
    #[arg(long, value_name = "N")]
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
    fn preset(&self) -> (&'static str, usize, Sizes) {
        match self.preset {
            Preset::Tiny => ("tiny", 8000, Sizes { batch: 64, source: 24, target: 24 }),
            Preset::Small => ("small", 8000, Sizes { batch: 64, source: 24, target: 24 }),
            Preset::Base => ("base", 16_000, Sizes { batch: 32, source: 32, target: 32 }),
            Preset::Big => ("big", 32_000, Sizes { batch: 16, source: 32, target: 32 }),
        }
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

    /// The model: every token of the vocabulary is a class, there is no padding.
    fn config(&self, sizes: Sizes) -> Result<TransformerConfig, Error> {
        let (name, vocab, _) = self.preset();
        let preset = TransformerConfig::preset(name, self.vocab.unwrap_or(vocab))?;
        let config = TransformerConfig {
            d_model: self.d_model.unwrap_or(preset.d_model),
            h: self.heads.unwrap_or(preset.h),
            d_ff: self.d_ff.unwrap_or(preset.d_ff),
            encoder_layers: self.layers.unwrap_or(preset.encoder_layers),
            decoder_layers: self.layers.unwrap_or(preset.decoder_layers),
            dropout: self.dropout,
            max_positions: POSITIONS.max(sizes.source).max(sizes.target),
            pad: None,
            eos: 0,
            start: 0,
            ..preset
        };
        config.check()?;
        Ok(config)
    }
}

/// What was measured.
#[derive(Serialize)]
struct Report {
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
    #[serde(serialize_with = "as_object")]
    shares: Vec<(&'static str, f64)>,
}

fn as_object<S: Serializer>(shares: &[(&'static str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(shares.iter().copied())
}

pub(crate) fn run(train: &Train) -> Result<(), Error> {
    let sizes = train.sizes()?;
    let config = train.config(sizes)?;
    check_memory(&config, sizes)?;
    let report = measure(train, &config, sizes)?;
    if train.json { output::json(&report) } else { print(&report) }
}

fn measure(train: &Train, config: &TransformerConfig, sizes: Sizes) -> Result<Report, Error> {
    let cpu = train.compute.cpu()?;
    let (isa, threads) = (cpu.isa.name(), cpu.threads.count());
    let precision = train.precision.on(cpu.isa);
    let backend = CpuBackend::new(cpu).with_precision(precision).shared();
    let model = Transformer::new(&Builder::random(&backend, SEED), config)?;
    let mut adam = Adam::new(&*backend, model.parameters());
    let batch = random_batch(&*backend, sizes, config);

    let progress = output::progress(WARM_UP + train.steps);
    progress.set_message("warming up");
    for _ in 0..WARM_UP {
        step(&backend, &model, &batch, &mut adam);
        progress.inc(1);
    }
    backend.take_profile();
    progress.set_message("measuring");
    let (mut seconds, mut loss) = (Vec::new(), f32::NAN);
    for _ in 0..train.steps {
        let begin = Instant::now();
        loss = step(&backend, &model, &batch, &mut adam);
        seconds.push(begin.elapsed().as_secs_f64());
        progress.inc(1);
    }
    progress.finish_and_clear();

    let shares = shares(&*backend, seconds.iter().sum());
    let median = median(&mut seconds);
    Ok(Report {
        preset: train.preset().0,
        precision: precision::name(precision),
        isa,
        threads,
        parameters: model.parameter_count(),
        steps: train.steps,
        step_ms: median * 1e3,
        tokens_per_s: batch.tokens() as f64 / median,
        peak_mb: peak_mb(),
        loss,
        shares,
    })
}

/// One training step, and its loss: reading it waits until a device is done.
fn step(backend: &Arc<dyn Backend>, model: &Transformer, batch: &Batch, adam: &mut Adam) -> f32 {
    let tape = Tape::training(backend, SEED + u64::from(adam.steps()));
    let loss = model.loss(&tape, batch, SMOOTHING);
    let mut gradients = Gradients::default();
    tape.backward(&loss, &mut gradients);
    adam.step(&**backend, &RULE, None, &gradients);
    backend.download_f32(loss.value())[0]
}

/// Pairs of random tokens; none of them is the start token.
fn random_batch(backend: &dyn Backend, sizes: Sizes, config: &TransformerConfig) -> Batch {
    let random = Random::new(SEED);
    let sequence = |number: usize, length: usize| -> Vec<i32> {
        let random = random.split(number as u64);
        (0..length as u32).map(|i| 1 + (random.bits(i) % (config.vocab_size as u32 - 1)) as i32).collect()
    };
    let pair = |i| (sequence(2 * i, sizes.source), sequence(2 * i + 1, sizes.target));
    Batch::new(backend, &(0..sizes.batch).map(pair).collect::<Vec<_>>(), config.start as i32)
}

/// The share of each kind of kernel in `wall` seconds; what remains is `other`.
fn shares(backend: &dyn Backend, wall: f64) -> Vec<(&'static str, f64)> {
    let profile = backend.take_profile();
    let mut shares: Vec<_> = profile.iter().map(|(name, time)| (*name, time.as_secs_f64() / wall)).collect();
    shares.push(("other", 1.0 - shares.iter().map(|(_, share)| share).sum::<f64>()));
    shares
}

/// Refuses what cannot fit: weights with their gradients and moments, and what the layers keep for the way back.
///
/// The system ends a program that asks for too much, without a word. This counts less than is used in the end,
/// never more.
fn check_memory(config: &TransformerConfig, sizes: Sizes) -> Result<(), Error> {
    let Some(available) = available_bytes() else { return Ok(()) };
    let number = |size: usize| size as f64;
    let (d, d_ff) = (number(config.d_model), number(config.d_ff));
    let (encoders, decoders) = (number(config.encoder_layers), number(config.decoder_layers));
    let weights = number(config.vocab_size) * d
        + encoders * (4.0 * d * d + 2.0 * d * d_ff)
        + decoders * (8.0 * d * d + 2.0 * d * d_ff);
    let positions = 2.0 * number(config.max_positions) * d;
    let kept = number(sizes.batch)
        * (number(sizes.source) * encoders * (8.0 * d + d_ff)
            + number(sizes.target) * decoders * (12.0 * d + d_ff));
    // Each layer also has a dozen small tensors, whatever their size.
    let needed = 4.0 * (4.0 * weights + positions + kept) + 4096.0 * (encoders + decoders);
    if needed < available {
        return Ok(());
    }
    Err(Error::Memory { needed: needed / 1e9, available: available / 1e9 })
}

fn print(report: &Report) -> Result<(), Error> {
    let facts = [
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
    let shares =
        report.shares.iter().map(|(name, share)| [format!("in {name}"), format!("{:.1} %", share * 100.0)]);
    output::table(&facts.chain(shares).collect::<Vec<_>>(), 1)
}
