//! `attentive bench kernels`: each kernel alone, beside the limit that it runs into.
//!
//! Shapes are those of training the base model. Products and attention are held against multiply-adds that need
//! nothing but registers; what a tile unit computes, where there is one, against its products. Everything else
//! goes over its operands once, and is held against the plainest stream over as many bytes: in a cache or in memory,
//! wherever they fit. What is only written is counted once, although most processors read it first.
//!
//! Kernel and limit take turns of some milliseconds, and the medians count: what else the machine has to do holds up both. The
//! best of both are told as well.

use super::limit::{Limit, Operands, Work};
use super::median;
use crate::error::Error;
use crate::options::{Compute, between};
use crate::output;
use crate::precision::{self, PrecisionChoice};
use attentive_kernels::activation::{Activation, activate, activate_backward};
use attentive_kernels::attention::{Attention, Rows, Span, attention, attention_backward};
use attentive_kernels::elementwise::{add, dropout, sum_rows};
use attentive_kernels::embedding::{embedding, embedding_backward};
use attentive_kernels::gemm::{
    BothWays, Epilogue, Int8Weights, Matrix, Operand, PackedWeights, Weights, gemm_int8,
};
use attentive_kernels::loss::cross_entropy;
use attentive_kernels::norm::{residual_layer_norm, residual_layer_norm_backward};
use attentive_kernels::optimizer::{Adam, adam, squared_norm};
use attentive_kernels::projection::{Projection, projection_loss};
use attentive_kernels::softmax::{softmax, softmax_backward};
use attentive_kernels::{Aligned, Cpu, Dropout, Random, Real};
use attentive_tensor::Precision;
use clap::Args;
use half::bf16;
use indicatif::ProgressBar;
use serde::Serialize;
use std::hint::black_box;
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
const TOKENS: usize = 1024;
const D_MODEL: usize = 512;
const D_FF: usize = 2048;
const VOCAB: usize = 16_000;
/// Tokens whose logits exist at a time.
const SLICE: usize = 256;
const DROPPED: f32 = 0.1;

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

/// What products of a precision multiply on the way forward, on the way back, and on both.
fn operands<T: Real>() -> [Operands; 3] {
    if size_of::<T>() == size_of::<f32>() {
        [Operands::F32, Operands::Parts, Operands::Both]
    } else {
        [Operands::Bf16; 3]
    }
}

/// The work of a kernel that reads or writes each of so many numbers once.
fn once<T: Real>(numbers: usize) -> Work {
    work::<T>(numbers, numbers)
}

fn work<T: Real>(moved: usize, held: usize) -> Work {
    Work::Bytes { moved: moved * size_of::<T>(), held: held * size_of::<T>() }
}

pub(crate) fn run(kernels: &Kernels) -> Result<(), Error> {
    let mut bench = Bench::new(kernels)?;
    match bench.precision {
        Precision::F32 => all::<f32>(&mut bench),
        Precision::Bf16 => all::<bf16>(&mut bench),
    }
    let report = bench.finish()?;
    if kernels.json { output::json(&report) } else { print(&report) }
}

/// Every kernel, with activations that are stored as `T`.
fn all<T: Operand>(bench: &mut Bench) {
    products::<T>(bench);
    for (sequences, length) in [(32, 32), (4, 512)] {
        attentions::<T>(bench, sequences, length);
    }
    norms::<T>(bench);
    elementwise::<T>(bench);
    embeddings::<T>(bench);
    losses::<T>(bench);
    products_int8(bench);
    for parameters in [1 << 20, 1 << 24] {
        optimizers::<T>(bench, parameters);
    }
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

    /// Times `run`, which has `work` to do, in turn with what limits it, if its name is wanted.
    fn measure(&mut self, kernel: &'static str, shape: String, work: Work, mut run: impl FnMut(&Cpu)) {
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

/// Numbers around zero.
fn random<T: Real>(len: usize, seed: u64) -> Aligned<T> {
    let random = Random::new(seed);
    let mut x = Aligned::zeros(len);
    x.iter_mut().zip(0..).for_each(|(x, i)| *x = T::from_f32(random.uniform(i) - 0.5));
    x
}

fn zeros<T: Real>(len: usize) -> Aligned<T> {
    Aligned::zeros(len)
}

/// Tokens of the vocabulary.
fn tokens(count: usize) -> Vec<i32> {
    (0..count as u32).map(|i| (Random::new(9).bits(i) % VOCAB as u32) as i32).collect()
}

fn drops() -> Dropout {
    Dropout { p: DROPPED, random: Random::new(8) }
}

/// The products of layers: rows, columns that go in, columns that come out.
const LAYERS: [[usize; 3]; 6] = [
    [TOKENS, D_MODEL, D_MODEL],
    [TOKENS, D_MODEL, D_FF],
    [TOKENS, D_FF, D_MODEL],
    [1536, 256, 1024],
    [4 * TOKENS, 2 * D_MODEL, 2 * D_FF],
    [SLICE, D_MODEL, VOCAB],
];

/// `[m, k] · [k, n]` as they occur: forward with the weights transposed in memory (nt), back to the input with the weights
/// as they are (nn), back to the weights with the gradient transposed (tn). In bf16 weights come packed, as in training.
fn products<T: Operand>(bench: &mut Bench) {
    let plain = Epilogue::default;
    for [m, k, n] in LAYERS {
        let (a, w, x) = (random::<T>(m * k, 1), random(k * n, 2), random::<T>(k * n, 2));
        let (mut y, mut dw) = (zeros::<T>(m * n), zeros::<T>(m * n));
        let [forward_work, back_work, _] =
            operands::<T>().map(|operands| Work::Product(2 * m * k * n, operands));
        let shape = format!("{m}×{k}×{n}");
        let rows = Matrix::new(&a, m, k);
        let [transposed, plain_w] = [[n, k], [k, n]].map(|[n, k]| both_ways::<T>(&bench.cpu, &w, n, k));
        let forward = transposed.as_ref().and_then(BothWays::forward).map(PackedWeights::all);
        let forward = forward.unwrap_or(Weights::F32(Matrix::new(&w, n, k).t()));
        bench.measure("gemm nt", shape.clone(), forward_work, |cpu| {
            T::times_weights(cpu, rows, forward.clone(), &mut y, plain());
        });
        let back = plain_w.as_ref().and_then(BothWays::back).map(PackedWeights::all);
        let back = back.unwrap_or(Weights::F32(Matrix::new(&w, k, n)));
        bench.measure("gemm nn", shape.clone(), back_work, |cpu| {
            T::back_through_weights(cpu, rows, back.clone(), &mut y, plain());
        });
        bench.measure("gemm tn", shape, back_work, |cpu| {
            T::times_activations(cpu, Matrix::new(&a, k, m).t(), Matrix::new(&x, k, n), &mut dw);
        });
    }
}

/// Weights `[n, k]` packed for both ways, where training has them packed.
fn both_ways<T: Real>(cpu: &Cpu, w: &[f32], n: usize, k: usize) -> Option<BothWays> {
    (size_of::<T>() == size_of::<bf16>()).then(|| BothWays::new(cpu, w, n, k))
}

/// Forward with quantised weights; rows are quantised on the way.
fn products_int8(bench: &mut Bench) {
    for [m, k, n] in LAYERS {
        let (a, mut y) = (random::<bf16>(m * k, 1), zeros::<bf16>(m * n));
        let w = Int8Weights::new(&bench.cpu, &random::<f32>(k * n, 2), n, k);
        let work = Work::Product(2 * m * k * n, Operands::Int8);
        bench.measure("gemm int8", format!("{m}×{k}×{n}"), work, |cpu| {
            gemm_int8(cpu, Matrix::new(&a, m, k), &w, &mut y, Epilogue::default());
        });
    }
}

/// Two products forward; backward five, as the scores are computed once more.
fn attentions<T: Real>(bench: &mut Bench, sequences: usize, length: usize) {
    let (heads, d) = (8, D_MODEL / 8);
    let scale = 1.0 / (d as f32).sqrt();
    let rule = Attention { heads, d_k: d, d_v: d, scale, causal: false, window: None, dropout: None };
    let n = length as u32;
    let span = |i: u32| Span { query: i * n, queries: n, key: i * n, keys: n, offset: 0 };
    let spans: Vec<Span> = (0..sequences as u32).map(span).collect();
    let len = sequences * length * heads * d;
    let [q, k, v, dy] = [1, 2, 3, 4].map(|seed| random::<T>(len, seed));
    let [q, k, v] = [&q, &k, &v].map(|data| Rows { data, stride: heads * d });
    let (mut y, mut lse) = (zeros(len), zeros(sequences * length * heads));
    let [mut dq, mut dk, mut dv] = [(); 3].map(|()| zeros::<T>(len));

    let shape = format!("{sequences}×{heads}×{length}×{d}");
    let product = 2 * sequences * heads * length * length * d;
    bench.measure("attention", shape.clone(), Work::Flops(2 * product), |cpu| {
        attention(cpu, &rule, &spans, q, k, v, &mut y, &mut lse);
    });
    let [_, back, _] = operands::<T>();
    let back = if matches!(back, Operands::Bf16) { Operands::Attention } else { Operands::F32 };
    bench.measure("attention backward", shape, Work::Product(5 * product, back), |cpu| {
        attention_backward(cpu, &rule, &spans, q, k, v, &y, &lse, &dy, &mut dq, &mut dk, &mut dv);
    });
}

fn norms<T: Real>(bench: &mut Bench) {
    let (rows, d) = (TOKENS, D_MODEL);
    let [x, r, dy] = [1, 2, 3].map(|seed| random::<T>(rows * d, seed));
    let (gamma, beta) = (random(d, 4), random(d, 5));
    let [mut z, mut y, mut dz, mut dr] = [(); 4].map(|()| zeros(rows * d));
    let [mut dgamma, mut dbeta] = [(); 2].map(|()| zeros(d));
    let mut stats = zeros(2 * rows);

    let shape = format!("{rows}×{d}");
    bench.measure("residual dropout norm", shape.clone(), once::<T>(4 * rows * d), |cpu| {
        let dropout = Some(drops());
        residual_layer_norm(cpu, &x, &r, dropout, &gamma, &beta, 1e-5, &mut z, &mut y, &mut stats);
    });
    bench.measure("residual dropout norm backward", shape, once::<T>(4 * rows * d), |cpu| {
        residual_layer_norm_backward(
            cpu,
            &z,
            drops(),
            &gamma,
            &stats,
            &dy,
            &mut dz,
            &mut dr,
            &mut dgamma,
            &mut dbeta,
            false,
        );
    });
}

fn elementwise<T: Real>(bench: &mut Bench) {
    let (rows, d) = (TOKENS, D_MODEL);
    let len = rows * d;
    let (x, dy, mut y) = (random::<T>(len, 1), random(len, 2), zeros(len));
    let shape = || format!("{rows}×{d}");
    bench.measure("add", shape(), once::<T>(3 * len), |cpu| add(cpu, &x, &dy, &mut y));
    bench.measure("dropout", shape(), once::<T>(2 * len), |cpu| dropout(cpu, &x, drops(), &mut y));
    bench.measure("softmax", shape(), once::<T>(2 * len), |cpu| softmax(cpu, &x, d, &mut y));
    let mut dx = zeros(len);
    bench.measure("softmax backward", shape(), once::<T>(3 * len), |cpu| {
        softmax_backward(cpu, &y, &dy, d, &mut dx);
    });
    let mut row = zeros(d);
    bench.measure("sum_rows", shape(), once::<T>(len), |cpu| sum_rows(cpu, &x, d, &mut row, false));

    let (rows, d) = (TOKENS, D_FF);
    let len = rows * d;
    let (x, dy, mut y) = (random::<T>(len, 1), random(len, 2), zeros(len));
    let functions =
        [("relu", "relu backward", Activation::Relu), ("gelu", "gelu backward", Activation::Gelu)];
    for (forward, backward, function) in functions {
        let shape = format!("{rows}×{d}");
        bench.measure(forward, shape.clone(), once::<T>(2 * len), |cpu| {
            activate(cpu, function, &x, &mut y);
        });
        bench.measure(backward, shape, once::<T>(3 * len), |cpu| {
            activate_backward(cpu, function, &x, &dy, &mut y);
        });
    }
}

/// The gradient reads rows, and reads rows of the table, adds to them and writes them.
fn embeddings<T: Real>(bench: &mut Bench) {
    let (rows, d) = (TOKENS, D_MODEL);
    let (mut table, ids, mut y) = (random(VOCAB * d, 1), tokens(rows), zeros::<T>(rows * d));
    let (numbers, bytes) = (rows * d, rows * d * size_of::<T>());
    let work = Work::Bytes { moved: 4 * numbers + bytes, held: 4 * numbers + bytes };
    bench.measure("embedding", format!("{rows}×{d}"), work, |cpu| {
        embedding(cpu, &table, d, &ids, 1.0, &mut y);
    });
    bench.measure(
        "embedding backward",
        format!("{rows}×{d}"),
        Work::Bytes { moved: 8 * numbers + bytes, held: 4 * numbers + bytes },
        |cpu| {
            embedding_backward(cpu, &ids, 1e-6, None, &y, d, &mut table);
        },
    );
}

fn losses<T: Operand>(bench: &mut Bench) {
    let (rows, targets) = (SLICE, tokens(TOKENS));
    let (mut logits, mut losses) = (random::<T>(rows * VOCAB, 1), zeros(rows));
    let work = work::<T>(2 * rows * VOCAB, rows * VOCAB);
    bench.measure("cross_entropy", format!("{rows}×{VOCAB}"), work, |cpu| {
        cross_entropy(cpu, &mut logits, VOCAB, &targets[..rows], 0.1, 1.0, &mut losses, true);
    });
    let (hidden, table) = (random::<T>(TOKENS * D_MODEL, 2), random(VOCAB * D_MODEL, 3));
    let packed = both_ways::<T>(&bench.cpu, &table, VOCAB, D_MODEL);
    let (mut dhidden, mut dtable) = (zeros::<T>(TOKENS * D_MODEL), zeros(VOCAB * D_MODEL));
    let rule =
        Projection { d: D_MODEL, classes: VOCAB, bias: None, smoothing: 0.1, scale: 1.0 / TOKENS as f32 };
    // Logits, and the gradients of both operands: three products.
    let work = Work::Product(6 * TOKENS * D_MODEL * VOCAB, operands::<T>()[2]);
    bench.measure("projection loss", format!("{TOKENS}×{D_MODEL}×{VOCAB}"), work, |cpu| {
        let gradients = Some((&mut dhidden[..], &mut dtable[..]));
        let table = (&table[..], packed.as_ref());
        black_box(projection_loss(cpu, &rule, &hidden, table, &targets, gradients));
    });
}

/// Adam reads four numbers for each parameter and writes three; the gradient of weights that are packed has the type of activations.
fn optimizers<T: Real>(bench: &mut Bench, parameters: usize) {
    let rule = Adam { rate: 1e-4, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };
    let (mut p, g, narrow) =
        (random(parameters, 1), random::<f32>(parameters, 2), random::<T>(parameters, 2));
    let (mut m, mut v) = (zeros(parameters), zeros(parameters));
    let mut step = 0;
    bench.measure("adam", parameters.to_string(), work::<f32>(7 * parameters, 4 * parameters), |cpu| {
        step += 1;
        adam(cpu, &rule, step, 1.0, &mut p, &g, &mut m, &mut v, None);
    });
    // Six in f32, the gradient, and two of bf16 that are packed.
    let work =
        Work::Bytes { moved: (28 + size_of::<T>()) * parameters, held: (16 + size_of::<T>()) * parameters };
    let (columns, mut step) = (1024, 0);
    let mut packed = BothWays::new(&bench.cpu, &p, parameters / columns, columns);
    bench.measure("adam with packing", parameters.to_string(), work, |cpu| {
        step += 1;
        adam(cpu, &rule, step, 1.0, &mut p, &narrow, &mut m, &mut v, Some(&mut packed));
    });
    bench.measure("squared_norm", parameters.to_string(), once::<T>(parameters), |cpu| {
        black_box(squared_norm(cpu, &narrow));
    });
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
