//! Matrix products in f32, `C = A·B`, in every transposition, with bias and activation on the way out.
//!
//! Every element of `C` is one chain of multiply-adds in the order of `k`, starting from zero or from what `C` held. A block of `k`
//! continues exactly from the stored sum. So an element depends only on its row of `A`, its column of `B` and the instruction set: not
//! on the number of rows, the blocking or the threads.
//!
//! Both operands are first packed into panels that the tile kernel reads in order (`pack.rs`). Then tasks of about 340 × 128 elements of
//! `C` are computed tile by tile (`tile.rs`), for a block of `k` at a time: a panel of `B` stays in the L1 cache while panels of `A`
//! stream past it from the L2 cache.

pub(crate) mod bf16;
mod both_ways;
mod int8;
mod pack;
mod tile;
mod weights;

use bf16::gemm_bf16;
pub use both_ways::BothWays;
pub(crate) use both_ways::PackingTargets;
pub(crate) use int8::quantise_row;
pub use int8::{Int8Rows, Int8Weights, gemm_int8, gemm_int8_columns, quantise};
pub use weights::{PackedWeights, Weights};

use crate::activation::Activation;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::threads::Shared;
use crate::{Cpu, Isa, Real};
use pack::{Left, PackLeft, PackRight};
use std::ops::Range;
use tile::{Edges, Panels};

/// Elements of `k` in a block: a panel of `B` of that depth fills two thirds of the L1 cache.
const DEPTH: usize = 256;
/// The distance of the rows of a packed block of `A`: one cache line more than [`DEPTH`], so that rows fall into different sets of a
/// cache.
const DEPTH_STRIDE: usize = DEPTH + 16;
/// Panels of `A` in a task: they fit easily into the L2 cache.
const TASK_LEFT: usize = 24;
/// Panels of `B` in a task.
const TASK_RIGHT: usize = 4;
/// Panels that a task packs.
const TASK_PACK: usize = 4;

/// A matrix operand: `rows × cols` numbers, row-major or, if it is transposed, column-major.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T = f32> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    transposed: bool,
}

impl<'a, T> Matrix<'a, T> {
    /// The row-major matrix in `data`.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        let len = data.len();
        assert!(product([rows, cols]) == Some(len), "gemm: {len} numbers for a matrix of {rows} × {cols}");
        Matrix { data, rows, cols, transposed: false }
    }

    /// How many rows and columns it has.
    pub(crate) fn shape(self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// How many rows it has.
    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    /// Some of its rows.
    ///
    /// # Panics
    /// If it is transposed.
    pub(crate) fn part(self, rows: Range<usize>) -> Self {
        assert!(!self.transposed, "gemm: the rows of a transposed matrix do not lie together");
        Matrix::new(&self.data[rows.start * self.cols..rows.end * self.cols], rows.len(), self.cols)
    }

    /// Its transpose, without moving a number.
    pub fn t(self) -> Self {
        Matrix { rows: self.cols, cols: self.rows, transposed: !self.transposed, ..self }
    }
}

/// What is done with the sums of a product before they are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// Whether to add to what `C` holds. Sums in f32 on vectors start from it; other sums are added to it at the end.
    pub accumulate: bool,
    /// A number to add to each column, `[n]`.
    pub bias: Option<&'a [f32]>,
    /// A function to apply at the end.
    pub activation: Option<Activation>,
    /// Whether to write `C` past the caches if possible, because it is large and not read soon. The numbers are the same.
    pub streamed: bool,
}

impl Epilogue<'_> {
    /// That of a gradient of weights. The gradients of a model are too many for a cache to hold until the optimizer reads them.
    fn of_gradient(accumulate: bool) -> Self {
        Epilogue { accumulate, streamed: !accumulate, ..Epilogue::default() }
    }
}

/// `C = activation(A·B + bias)`, with `A: [m, k]`, `B: [k, n]` and `C: [m, n]`, row after row.
pub fn gemm(cpu: &Cpu, a: Matrix, b: Matrix, c: &mut [f32], epilogue: Epilogue) {
    check((a.rows, a.cols), (b.rows, b.cols), c.len(), epilogue);
    let shape = Shape::of(cpu.isa);
    let mut left = Scratch::take(shape.left_len(a));
    let mut right = Scratch::take(shape.right_len(b));
    let left_tasks = shape.left_panels(a.rows).div_ceil(TASK_PACK);
    let right_tasks = shape.right_panels(b.cols).div_ceil(TASK_PACK);
    let (to_left, to_right) = (Shared::new(&mut left), Shared::new(&mut right));
    cpu.threads.run(left_tasks + right_tasks, |task| match task.checked_sub(left_tasks) {
        None => shape.pack_left(cpu.isa, a, task, to_left),
        Some(task) => shape.pack_right(cpu.isa, b, task, to_right),
    });
    shape.multiply(cpu, a, &left, b.cols, &right, c, epilogue);
}

/// [`gemm`] for gradients: on the tile unit, if there is one, with numbers in three parts (`bf16/parts.rs`).
fn gemm_for_gradients(cpu: &Cpu, a: Matrix, b: Matrix, c: &mut [f32], epilogue: Epilogue) {
    if cpu.isa.amx().is_some() {
        bf16::gemm_in_parts(cpu, a, b, c, epilogue);
    } else {
        gemm(cpu, a, b, c, epilogue);
    }
}

/// [`gemm`] with some columns of weights `[n, k]` that were packed before: `C: [m, columns]`.
///
/// # Panics
/// If the first column is not the first of a panel, or they were packed for another instruction set.
fn gemm_packed(
    cpu: &Cpu,
    a: Matrix,
    w: &PackedWeights<f32>,
    columns: Range<usize>,
    c: &mut [f32],
    epilogue: Epilogue,
) {
    check((a.rows, a.cols), (w.k, columns.len()), c.len(), epilogue);
    let shape = Shape::of(cpu.isa);
    let mut left = Scratch::take(shape.left_len(a));
    let to_left = Shared::new(&mut left);
    cpu.threads.run(shape.left_panels(a.rows).div_ceil(TASK_PACK), |task| {
        shape.pack_left(cpu.isa, a, task, to_left);
    });
    let right = w.panels_from(cpu, columns.start, shape.cols);
    shape.multiply(cpu, a, &left, columns.len(), right, c, epilogue);
}

/// `C[i] = A[i]·B[i]` for each of `batch` products of one shape that lie one after the other; the transpositions are
/// `A` as `[k, m]` and `B` as `[n, k]`.
pub fn gemm_batched<T: Operand>(
    cpu: &Cpu,
    batch: usize,
    [m, k, n]: [usize; 3],
    (a, a_transposed): (&[T], bool),
    (b, b_transposed): (&[T], bool),
    c: &mut [T],
) {
    for (len, rows, cols) in [(a.len(), m, k), (b.len(), k, n), (c.len(), m, n)] {
        let fits = product([batch, rows, cols]) == Some(len);
        assert!(fits, "gemm: {len} numbers for {batch} matrices of {rows} × {cols}");
    }
    // A single product runs on all threads. Several products run on a thread each, because the threads are taken then.
    cpu.threads.for_pieces(c, (m * n).max(1), |i, c| {
        let (a, b) = (&a[i * m * k..][..m * k], &b[i * k * n..][..k * n]);
        let a = if a_transposed { Matrix::new(a, k, m).t() } else { Matrix::new(a, m, k) };
        let b = if b_transposed { Matrix::new(b, n, k).t() } else { Matrix::new(b, k, n) };
        T::multiply(cpu, a, b, c);
    });
}

/// A type of activations, with its products: with weights, and with other activations, as for the gradient of weights.
pub trait Operand: Real {
    /// `C = activation(A·B + bias)` with weights on the right.
    fn times_weights(cpu: &Cpu, a: Matrix<Self>, b: Weights<Self>, c: &mut [Self], epilogue: Epilogue);
    /// `C = A·B` for the gradient of rows that were multiplied with the transpose of these weights.
    fn back_through_weights(cpu: &Cpu, a: Matrix<Self>, b: Weights<Self>, c: &mut [Self], epilogue: Epilogue);
    /// [`times_weights`](Operand::times_weights) in f32.
    fn logits(cpu: &Cpu, a: Matrix<Self>, b: Weights<Self>, c: &mut [f32], epilogue: Epilogue);
    /// `C = A·B` of activations on both sides.
    fn multiply(cpu: &Cpu, a: Matrix<Self>, b: Matrix<Self>, c: &mut [Self]);
    /// `C = A·B` for the gradient of weights.
    fn times_activations(cpu: &Cpu, a: Matrix<Self>, b: Matrix<Self>, c: &mut [Self]);
    /// [`times_activations`](Operand::times_activations) in f32, added to what `C` holds if `accumulate` is true.
    fn times_activations_in_f32(cpu: &Cpu, a: Matrix<Self>, b: Matrix<Self>, c: &mut [f32], accumulate: bool);
    /// Weights `[n, k]` for these products.
    fn pack(cpu: &Cpu, weights: &[f32], n: usize, k: usize) -> PackedWeights<Self>;
}

impl Operand for f32 {
    fn times_weights(cpu: &Cpu, a: Matrix, b: Weights<f32>, c: &mut [f32], epilogue: Epilogue) {
        match b {
            Weights::F32(b) => gemm(cpu, a, b, c, epilogue),
            Weights::Packed { weights, columns, k } => {
                assert_eq!(k, weights.k, "gemm: some elements of weights that are packed in f32");
                gemm_packed(cpu, a, weights, columns, c, epilogue);
            }
            Weights::Int8(w) => gemm_int8(cpu, a, w, c, epilogue),
        }
    }
    fn back_through_weights(cpu: &Cpu, a: Matrix, b: Weights<f32>, c: &mut [f32], epilogue: Epilogue) {
        match b {
            Weights::F32(b) => gemm_for_gradients(cpu, a, b, c, epilogue),
            b => f32::times_weights(cpu, a, b, c, epilogue),
        }
    }
    fn logits(cpu: &Cpu, a: Matrix, b: Weights<f32>, c: &mut [f32], epilogue: Epilogue) {
        f32::times_weights(cpu, a, b, c, epilogue);
    }
    fn multiply(cpu: &Cpu, a: Matrix, b: Matrix, c: &mut [f32]) {
        gemm(cpu, a, b, c, Epilogue::default());
    }
    fn times_activations(cpu: &Cpu, a: Matrix, b: Matrix, c: &mut [f32]) {
        f32::times_activations_in_f32(cpu, a, b, c, false);
    }
    fn times_activations_in_f32(cpu: &Cpu, a: Matrix, b: Matrix, c: &mut [f32], accumulate: bool) {
        gemm_for_gradients(cpu, a, b, c, Epilogue::of_gradient(accumulate));
    }
    fn pack(cpu: &Cpu, weights: &[f32], n: usize, k: usize) -> PackedWeights<f32> {
        let (shape, b) = (Shape::of(cpu.isa), Matrix::new(weights, n, k).t());
        PackedWeights::new(cpu, n, k, shape.right_len(b), |to| {
            let to = Shared::new(to);
            cpu.threads.run(shape.right_panels(n).div_ceil(TASK_PACK), |task| {
                shape.pack_right(cpu.isa, b, task, to);
            });
        })
    }
}

impl Operand for half::bf16 {
    fn times_weights(cpu: &Cpu, a: Matrix<Self>, b: Weights<Self>, c: &mut [Self], epilogue: Epilogue) {
        bf16::times_weights(cpu, a, b, c, epilogue);
    }
    fn back_through_weights(
        cpu: &Cpu,
        a: Matrix<Self>,
        b: Weights<Self>,
        c: &mut [Self],
        epilogue: Epilogue,
    ) {
        bf16::times_weights(cpu, a, b, c, epilogue);
    }
    fn logits(cpu: &Cpu, a: Matrix<Self>, b: Weights<Self>, c: &mut [f32], epilogue: Epilogue) {
        bf16::times_weights(cpu, a, b, c, epilogue);
    }
    fn multiply(cpu: &Cpu, a: Matrix<Self>, b: Matrix<Self>, c: &mut [Self]) {
        gemm_bf16(cpu, a, b, c, Epilogue::default());
    }
    fn times_activations(cpu: &Cpu, a: Matrix<Self>, b: Matrix<Self>, c: &mut [Self]) {
        gemm_bf16(cpu, a, b, c, Epilogue::of_gradient(false));
    }
    fn times_activations_in_f32(
        cpu: &Cpu,
        a: Matrix<Self>,
        b: Matrix<Self>,
        c: &mut [f32],
        accumulate: bool,
    ) {
        gemm_bf16(cpu, a, b, c, Epilogue::of_gradient(accumulate));
    }
    fn pack(cpu: &Cpu, weights: &[f32], n: usize, k: usize) -> PackedWeights<Self> {
        bf16::pack_weights(cpu, weights, n, k)
    }
}

fn check((m, a_k): (usize, usize), (k, n): (usize, usize), c: usize, epilogue: Epilogue) {
    assert_eq!(a_k, k, "gemm: [{m}, {a_k}] · [{k}, {n}] does not fit");
    assert!(product([m, n]) == Some(c), "gemm: {c} numbers for a result of [{m}, {n}]");
    if let Some(bias) = epilogue.bias {
        assert_eq!(bias.len(), n, "gemm: a bias of {} for {n} columns", bias.len());
    }
}

/// How many numbers a shape has, unless that overflows.
fn product<const N: usize>(shape: [usize; N]) -> Option<usize> {
    shape.into_iter().try_fold(1, usize::checked_mul)
}

/// The size of the tile that an instruction set computes in registers, and the sizes that follow from it.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    cols: usize,
}

impl Shape {
    fn of(isa: Isa) -> Shape {
        struct TileShape;
        impl Kernel for TileShape {
            type Output = Shape;
            #[inline(always)]
            fn run<S: Simd>(self, _: S) -> Shape {
                Shape { rows: S::TILE_ROWS, cols: tile::VECTORS * S::LANES }
            }
        }
        isa.dispatch(TileShape)
    }

    fn left_panels(self, m: usize) -> usize {
        m.div_ceil(self.rows)
    }

    fn right_panels(self, n: usize) -> usize {
        n.div_ceil(self.cols)
    }

    fn left_panel_len(self, a: Matrix) -> usize {
        let left = Left::of(a);
        self.rows * if left == Left::Rows { a.cols.div_ceil(DEPTH) * DEPTH_STRIDE } else { a.cols }
    }

    fn left_len(self, a: Matrix) -> usize {
        self.left_panels(a.rows) * self.left_panel_len(a)
    }

    fn right_len(self, b: Matrix) -> usize {
        self.right_panels(b.cols) * self.cols * b.rows
    }

    fn pack_left(self, isa: Isa, a: Matrix, task: usize, to: Shared<f32>) {
        let panels = task * TASK_PACK..self.left_panels(a.rows).min((task + 1) * TASK_PACK);
        let size = self.left_panel_len(a);
        // Safety: panels belong to one task each.
        let to = unsafe { to.slice(panels.start * size, panels.len() * size) };
        isa.dispatch(PackLeft { a, panels, to });
    }

    fn pack_right(self, isa: Isa, b: Matrix, task: usize, to: Shared<f32>) {
        let panels = task * TASK_PACK..self.right_panels(b.cols).min((task + 1) * TASK_PACK);
        let size = self.cols * b.rows;
        // Safety: panels belong to one task each.
        let to = unsafe { to.slice(panels.start * size, panels.len() * size) };
        isa.dispatch(PackRight { b, panels, to });
    }

    /// `C` from packed operands, in tasks of equal size, of at most [`TASK_LEFT`] × [`TASK_RIGHT`] panels.
    fn multiply(
        self,
        cpu: &Cpu,
        a: Matrix,
        left: &[f32],
        n: usize,
        right: &[f32],
        c: &mut [f32],
        epilogue: Epilogue,
    ) {
        let (rows, cols) = (self.left_panels(a.rows), self.right_panels(n));
        let (row_tasks, col_tasks) = (rows.div_ceil(TASK_LEFT), cols.div_ceil(TASK_RIGHT));
        let c = Shared::new(c);
        cpu.threads.run(row_tasks * col_tasks, |task| {
            let (i, j) = (task / col_tasks, task % col_tasks);
            cpu.isa.dispatch(Panels {
                left,
                left_kind: Left::of(a),
                left_panel: self.left_panel_len(a),
                right,
                right_panel: self.cols * a.cols,
                left_panels: rows * i / row_tasks..rows * (i + 1) / row_tasks,
                right_panels: cols * j / col_tasks..cols * (j + 1) / col_tasks,
                edges: Edges { m: a.rows, k: a.cols, n },
                c,
                epilogue,
            });
        });
    }
}

#[cfg(test)]
mod tests;
