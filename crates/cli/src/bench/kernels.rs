//! `attentive bench kernels`: each kernel alone, beside the limit that it runs into.
//!
//! Shapes are those of training the base model. Products and attention are held against multiply-adds that need
//! nothing but registers; what a tile unit computes, where there is one, against its products. Everything else
//! goes over its operands once, and is held against the plainest stream over as many bytes: in a cache or in memory,
//! wherever they fit. What is only written is counted once, although most processors read it first.
//!
//! Kernel and limit take turns of some milliseconds, and the medians count: what else the machine has to do holds up both. The
//! best of both are printed as well.

use super::limit::Limit;
use super::median;
use crate::error::Error;
use crate::options::{Compute, between};
use crate::output;
use crate::precision::{self, PrecisionChoice};
use attentive_kernels::Cpu;
use attentive_tensor::Precision;
use attentive_tensor::kernel_cases::{self, Stopwatch, Work};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The options of `attentive bench kernels`.
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Kernels {
    /// Run only kernels with NAME in their name [default: all]
    #[arg(default_value = "", hide_default_value = true)]
    name: String,
    /// Precision of activations
    #[arg(long, value_enum, default_value_t = PrecisionChoice::Auto)]
    precision: PrecisionChoice,
    #[command(flatten)]
    compute: Compute,
    /// Time to spend on each kernel and its limit, in milliseconds (at least three runs; the median is printed)
    #[arg(long, value_name = "MS", default_value_t = 300, value_parser = between::<1, 60_000>)]
    time: usize,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// A kernel's turn. Its operands are in their caches again when it is timed: the run before that does not count.
const TURN: Duration = Duration::from_millis(2);
/// What was measured.
#[derive(Serialize)]
struct Report {
    isa: &'static str,
    precision: &'static str,
    threads: usize,
    kernels: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    kernel: &'static str,
    shape: String,
    seconds: f64,
    /// FLOP/s or bytes/s, as the limit.
    rate: f64,
    limit: &'static str,
    limit_rate: f64,
    share: f64,
    /// The share of the fastest run, held against the greatest of the limit's rates: on a machine that is never at rest,
    /// the nearest thing to it.
    best_share: f64,
}

pub(crate) fn run(kernels: &Kernels) -> Result<(), Error> {
    let mut bench = Bench::new(kernels)?;
    kernel_cases::run(bench.precision, &mut bench);
    let report = bench.finish()?;
    if kernels.json { output::json(&report) } else { print(&report) }
}

/// Runs kernels and writes down how long they took.
struct Bench<'a> {
    /// What must be in the name of a kernel.
    name: &'a str,
    cpu: Cpu,
    precision: Precision,
    time: Duration,
    rows: Vec<Row>,
    progress: ProgressBar,
}

impl<'a> Bench<'a> {
    fn new(kernels: &'a Kernels) -> Result<Bench<'a>, Error> {
        let (name, cpu) = (&kernels.name, kernels.compute.cpu()?);
        let precision = kernels.precision.on(cpu.isa);
        let time = Duration::from_millis(kernels.time as u64);
        let progress = ProgressBar::new_spinner();
        Ok(Bench { name, cpu, precision, time, rows: Vec::new(), progress })
    }

    fn finish(self) -> Result<Report, Error> {
        self.progress.finish_and_clear();
        if self.rows.is_empty() {
            return Err(Error::Kernel(self.name.to_owned()));
        }
        Ok(Report {
            isa: self.cpu.isa.name(),
            precision: precision::name(self.precision),
            threads: self.cpu.threads.count(),
            kernels: self.rows,
        })
    }
}

impl Stopwatch for Bench<'_> {
    fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Times `run`, which has `work` to do, in turn with what limits it, if its name is wanted.
    fn measure(&mut self, kernel: &'static str, shape: String, work: Work, run: &mut dyn FnMut(&Cpu)) {
        if !kernel.contains(self.name) {
            return;
        }
        self.progress.set_message(format!("{kernel} {shape}"));
        self.progress.tick();
        let (cpu, mut limit) = (&self.cpu, Limit::of(work, &self.cpu));
        let (begin, mut turns) = (Instant::now(), 0);
        let (mut limits, mut seconds) = (Vec::new(), Vec::new());
        while turns < 3 || begin.elapsed() < self.time {
            limits.push((limit.rate)(cpu));
            run(cpu);
            let turn = Instant::now();
            loop {
                let begin = Instant::now();
                run(cpu);
                seconds.push(begin.elapsed().as_secs_f64());
                if turn.elapsed() >= TURN {
                    break;
                }
            }
            turns += 1;
        }
        let fastest = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = limits.iter().copied().fold(0.0, f64::max);
        let (seconds, limit_rate) = (median(&mut seconds), median(&mut limits));
        let amount = work.amount() as f64;
        let rate = amount / seconds;
        let (share, best_share) = (rate / limit_rate, amount / fastest / greatest);
        let limit = limit.name;
        self.rows.push(Row { kernel, shape, seconds, rate, limit, limit_rate, share, best_share });
    }
}

fn print(report: &Report) -> Result<(), Error> {
    let titles = ["kernel", "shape", "limit", "µs", "rate", "at most", "share", "at best"];
    let mut rows = vec![titles.map(str::to_owned)];
    for row in &report.kernels {
        let unit = if row.limit == "stream" { "GB/s" } else { "GFLOP/s" };
        rows.push([
            row.kernel.to_owned(),
            row.shape.clone(),
            row.limit.to_owned(),
            format!("{:.1}", row.seconds * 1e6),
            format!("{:.1} {unit}", row.rate / 1e9),
            format!("{:.1} {unit}", row.limit_rate / 1e9),
            format!("{:.0} %", row.share * 100.0),
            format!("{:.0} %", row.best_share * 100.0),
        ]);
    }
    let facts = [
        ["isa", report.isa].map(str::to_owned),
        ["precision", report.precision].map(str::to_owned),
        ["threads".to_owned(), report.threads.to_string()],
        [const { String::new() }; 2],
    ];
    output::table(&facts, 2)?;
    output::table(&rows, 3)
}
