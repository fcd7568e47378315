//! Every kernel alone, on the shapes of training the base model: what `attentive bench kernels` times.
//!
//! The cases are here and not beside the clock because kernels are generic over the type of activations, and a crate that
//! calls one compiles it. This crate calls them all anyway.

use crate::Precision;
use attentive_kernels::activation::{Activation, activate, activate_backward};
use attentive_kernels::attention::{Attention, Rows, Span, attention, attention_backward};
use attentive_kernels::elementwise::{add, dropout, sum_rows};
use attentive_kernels::embedding::{embedding, embedding_backward};
use attentive_kernels::gemm::{
    BothWays, Epilogue, Int8Weights, Matrix, Operand, PackedWeights, Weights, gemm_int8,
};
use attentive_kernels::loss::cross_entropy;
use attentive_kernels::norm::{self, Dropped, NormKind, Residual};
use attentive_kernels::optimizer::{Adam, adam, squared_norm};
use attentive_kernels::projection::{Gradients, Projection, projection_loss};
use attentive_kernels::{Aligned, Cpu, Dropout, Random, Real};
use half::bf16;
use std::hint::black_box;

/// Runs cases and writes down how long they took.
pub trait Stopwatch {
    /// What cases run on.
    fn cpu(&self) -> &Cpu;
    /// Times `run`, which has `work` to do.
    fn measure(&mut self, kernel: &'static str, shape: String, work: Work, run: &mut dyn FnMut(&Cpu));
}

/// What a kernel has to do, which says what limits it.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Floating-point operations on vectors.
    Flops(usize),
    /// Operations of a product of such operands, on tiles where there are any.
    Product(usize, Operands),
    /// Bytes, of which there are some, and of which some are moved at the least.
    Bytes {
        /// Read or written.
        moved: usize,
        /// In all operands.
        held: usize,
    },
}

/// What a product multiplies.
#[derive(Debug, Clone, Copy)]
pub enum Operands {
    /// f32.
    F32,
    /// f32 in the backward pass, where tiles multiply six pairs of parts.
    Parts,
    /// f32 a third forward and two thirds back.
    Both,
    /// bf16.
    Bf16,
    /// bf16 in the backward pass of attention: of its five products, three have an operand in two parts.
    Attention,
    /// int8.
    Int8,
}

impl Work {
    /// Operations or bytes.
    pub fn amount(self) -> usize {
        match self {
            Work::Flops(amount) | Work::Product(amount, _) | Work::Bytes { moved: amount, .. } => amount,
        }
    }
}

const TOKENS: usize = 1024;
const D_MODEL: usize = 512;
const D_FF: usize = 2048;
const VOCAB: usize = 16_000;
/// Tokens whose logits exist at a time.
const SLICE: usize = 256;
const DROPPED: f32 = 0.1;

/// Hands every kernel to the stopwatch, with activations of a precision.
pub fn run(precision: Precision, bench: &mut dyn Stopwatch) {
    match precision {
        Precision::F32 => all::<f32>(bench),
        Precision::Bf16 => all::<bf16>(bench),
    }
}

/// Every kernel, with activations that are stored as `T`.
fn all<T: Operand>(bench: &mut dyn Stopwatch) {
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

/// What products of a precision multiply in the forward pass, in the backward pass, and in both.
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
fn products<T: Operand>(bench: &mut dyn Stopwatch) {
    let plain = Epilogue::default;
    for [m, k, n] in LAYERS {
        let (a, w, x) = (random::<T>(m * k, 1), random(k * n, 2), random::<T>(k * n, 2));
        let (mut y, mut dw) = (zeros::<T>(m * n), zeros::<T>(m * n));
        let [forward_work, back_work, _] =
            operands::<T>().map(|operands| Work::Product(2 * m * k * n, operands));
        let shape = format!("{m}×{k}×{n}");
        let rows = Matrix::new(&a, m, k);
        let [transposed, plain_w] = [[n, k], [k, n]].map(|[n, k]| both_ways::<T>(bench.cpu(), &w, n, k));
        let forward = transposed.as_ref().and_then(BothWays::forward).map(PackedWeights::all);
        let forward = forward.unwrap_or(Weights::F32(Matrix::new(&w, n, k).t()));
        bench.measure("gemm nt", shape.clone(), forward_work, &mut |cpu| {
            T::times_weights(cpu, rows, forward.clone(), &mut y, plain());
        });
        let back = plain_w.as_ref().and_then(BothWays::back).map(PackedWeights::all);
        let back = back.unwrap_or(Weights::F32(Matrix::new(&w, k, n)));
        bench.measure("gemm nn", shape.clone(), back_work, &mut |cpu| {
            T::back_through_weights(cpu, rows, back.clone(), &mut y, plain());
        });
        bench.measure("gemm tn", shape, back_work, &mut |cpu| {
            T::times_activations(cpu, Matrix::new(&a, k, m).t(), Matrix::new(&x, k, n), &mut dw);
        });
    }
}

/// Weights `[n, k]` packed for training, if training packs them.
fn both_ways<T: Real>(cpu: &Cpu, w: &[f32], n: usize, k: usize) -> Option<BothWays> {
    (size_of::<T>() == size_of::<bf16>()).then(|| BothWays::new(cpu, w, n, k))
}

/// Forward with quantised weights; rows are quantised on the way.
fn products_int8(bench: &mut dyn Stopwatch) {
    for [m, k, n] in LAYERS {
        let (a, mut y) = (random::<bf16>(m * k, 1), zeros::<bf16>(m * n));
        let w = Int8Weights::new(bench.cpu(), &random::<f32>(k * n, 2), n, k);
        let work = Work::Product(2 * m * k * n, Operands::Int8);
        bench.measure("gemm int8", format!("{m}×{k}×{n}"), work, &mut |cpu| {
            gemm_int8(cpu, Matrix::new(&a, m, k), &w, &mut y, Epilogue::default());
        });
    }
}

/// Two products forward; backward five, as the scores are computed once more.
fn attentions<T: Real>(bench: &mut dyn Stopwatch, sequences: usize, length: usize) {
    let (heads, d) = (8, D_MODEL / 8);
    let scale = 1.0 / (d as f32).sqrt();
    let rule =
        Attention { heads, d_k: d, d_v: d, scale, causal: false, window: None, cached: false, dropout: None };
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
    bench.measure("attention", shape.clone(), Work::Flops(2 * product), &mut |cpu| {
        attention(cpu, &rule, &spans, None, q, k, v, &mut y, &mut lse);
    });
    let [_, back, _] = operands::<T>();
    let back = if matches!(back, Operands::Bf16) { Operands::Attention } else { Operands::F32 };
    bench.measure("attention backward", shape, Work::Product(5 * product, back), &mut |cpu| {
        attention_backward(cpu, &rule, &spans, None, q, k, v, &y, &lse, &dy, &mut dq, &mut dk, &mut dv, None);
    });
}

fn norms<T: Real>(bench: &mut dyn Stopwatch) {
    let (rows, d) = (TOKENS, D_MODEL);
    let [x, r, dy] = [1, 2, 3].map(|seed| random::<T>(rows * d, seed));
    let (gamma, beta) = (random(d, 4), random(d, 5));
    let [mut z, mut y, mut dz, mut dr] = [(); 4].map(|()| zeros(rows * d));
    let [mut dgamma, mut dbeta] = [(); 2].map(|()| zeros(d));
    let mut stats = zeros(2 * rows);
    let weights = norm::Weights { kind: NormKind::Layer, gamma: &gamma, beta: Some(&beta), epsilon: 1e-5 };

    let shape = format!("{rows}×{d}");
    bench.measure("residual dropout norm", shape.clone(), once::<T>(4 * rows * d), &mut |cpu| {
        let residual = Some(Residual { r: &r, dropout: Some(drops()), z: &mut z });
        norm::norm(cpu, weights, &x, residual, &mut y, &mut stats);
    });
    bench.measure("residual dropout norm backward", shape, once::<T>(4 * rows * d), &mut |cpu| {
        let dropped = Some(Dropped { dropout: drops(), dr: &mut dr });
        let into = (&mut dgamma[..], Some(&mut dbeta[..]));
        norm::norm_backward(cpu, (weights.kind, &gamma), &z, &stats, &dy, &mut dz, dropped, into, false);
    });
}

fn elementwise<T: Real>(bench: &mut dyn Stopwatch) {
    let (rows, d) = (TOKENS, D_MODEL);
    let len = rows * d;
    let (x, dy, mut y) = (random::<T>(len, 1), random(len, 2), zeros(len));
    let shape = || format!("{rows}×{d}");
    bench.measure("add", shape(), once::<T>(3 * len), &mut |cpu| add(cpu, &x, &dy, &mut y));
    bench.measure("dropout", shape(), once::<T>(2 * len), &mut |cpu| dropout(cpu, &x, drops(), &mut y));
    let mut row = zeros(d);
    bench.measure("sum_rows", shape(), once::<T>(len), &mut |cpu| sum_rows(cpu, &x, d, &mut row, false));

    let (rows, d) = (TOKENS, D_FF);
    let len = rows * d;
    let (x, dy, mut y) = (random::<T>(len, 1), random(len, 2), zeros(len));
    let functions =
        [("relu", "relu backward", Activation::Relu), ("gelu", "gelu backward", Activation::Gelu)];
    for (forward, backward, function) in functions {
        let shape = format!("{rows}×{d}");
        bench.measure(forward, shape.clone(), once::<T>(2 * len), &mut |cpu| {
            activate(cpu, function, &x, &mut y);
        });
        bench.measure(backward, shape, once::<T>(3 * len), &mut |cpu| {
            activate_backward(cpu, function, &x, &dy, &mut y);
        });
    }
}

/// The gradient reads rows, and reads rows of the table, adds to them and writes them.
fn embeddings<T: Real>(bench: &mut dyn Stopwatch) {
    let (rows, d) = (TOKENS, D_MODEL);
    let (mut table, ids, mut y) = (random(VOCAB * d, 1), tokens(rows), zeros::<T>(rows * d));
    let (numbers, bytes) = (rows * d, rows * d * size_of::<T>());
    let work = Work::Bytes { moved: 4 * numbers + bytes, held: 4 * numbers + bytes };
    bench.measure("embedding", format!("{rows}×{d}"), work, &mut |cpu| {
        embedding(cpu, &table, d, &ids, 1.0, &mut y);
    });
    bench.measure(
        "embedding backward",
        format!("{rows}×{d}"),
        Work::Bytes { moved: 8 * numbers + bytes, held: 4 * numbers + bytes },
        &mut |cpu| {
            embedding_backward(cpu, &ids, 1e-6, None, &y, d, &mut table);
        },
    );
}

fn losses<T: Operand>(bench: &mut dyn Stopwatch) {
    let (rows, targets) = (SLICE, tokens(TOKENS));
    let (mut logits, mut losses) = (random::<T>(rows * VOCAB, 1), zeros(rows));
    let work = work::<T>(2 * rows * VOCAB, rows * VOCAB);
    bench.measure("cross_entropy", format!("{rows}×{VOCAB}"), work, &mut |cpu| {
        cross_entropy(cpu, &mut logits, VOCAB, &targets[..rows], 0.1, 1.0, &mut losses, true);
    });
    let (hidden, table) = (random::<T>(TOKENS * D_MODEL, 2), random(VOCAB * D_MODEL, 3));
    let packed = both_ways::<T>(bench.cpu(), &table, VOCAB, D_MODEL);
    let (mut dhidden, mut dtable) = (zeros::<T>(TOKENS * D_MODEL), zeros(VOCAB * D_MODEL));
    let rule =
        Projection { d: D_MODEL, classes: VOCAB, bias: None, smoothing: 0.1, scale: 1.0 / TOKENS as f32 };
    // Logits, and the gradients of both operands: three products.
    let work = Work::Product(6 * TOKENS * D_MODEL * VOCAB, operands::<T>()[2]);
    bench.measure("projection loss", format!("{TOKENS}×{D_MODEL}×{VOCAB}"), work, &mut |cpu| {
        let gradients = Some(Gradients { hidden: &mut dhidden, table: &mut dtable, bias: None });
        let table = (&table[..], packed.as_ref());
        black_box(projection_loss(cpu, &rule, &hidden, table, &targets, gradients));
    });
}

/// Adam reads four numbers for each parameter and writes three; the gradient of weights that are packed has the type of activations.
fn optimizers<T: Real>(bench: &mut dyn Stopwatch, parameters: usize) {
    let rule = Adam { rate: 1e-4, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };
    let (mut p, g, narrow) =
        (random(parameters, 1), random::<f32>(parameters, 2), random::<T>(parameters, 2));
    let (mut m, mut v) = (zeros(parameters), zeros(parameters));
    let mut step = 0;
    bench.measure("adam", parameters.to_string(), work::<f32>(7 * parameters, 4 * parameters), &mut |cpu| {
        step += 1;
        adam(cpu, &rule, step, 1.0, &mut p, &g, &mut m, &mut v, None);
    });
    // Six in f32, the gradient, and two of bf16 that are packed.
    let work =
        Work::Bytes { moved: (28 + size_of::<T>()) * parameters, held: (16 + size_of::<T>()) * parameters };
    let (columns, mut step) = (1024, 0);
    let mut packed = BothWays::new(bench.cpu(), &p, parameters / columns, columns);
    bench.measure("adam with packing", parameters.to_string(), work, &mut |cpu| {
        step += 1;
        adam(cpu, &rule, step, 1.0, &mut p, &narrow, &mut m, &mut v, Some(&mut packed));
    });
    bench.measure("squared_norm", parameters.to_string(), once::<T>(parameters), &mut |cpu| {
        black_box(squared_norm(cpu, &narrow));
    });
}
