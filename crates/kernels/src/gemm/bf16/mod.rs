//! Matrix products of bf16 with sums in f32.
//!
//! A product is cut into tasks: up to 256 rows and 256 columns if columns come packed, or 512 columns if `k` is a single stretch. A
//! task that packs its columns has up to 1,024 rows, or 512 if numbers are in parts (`parts.rs`), so that packing pays. Columns are
//! packed in panels of 32, rounded to bf16, as pairs of neighbours along `k`: that is what the tile unit and the dot products of
//! AVX-512 multiply.
//!
//! On the tile unit 32 rows stay in the L1 cache while panels stream past them from the L2 cache, one stretch of `k` after the other
//! (`rows_stay.rs`). On vectors, with numbers in parts, and for a single tile of rows, a stretch of a panel stays while rows stream
//! past it (`block.rs`). The sums of a block continue exactly from one stretch to the next, so that an element depends on its row, its
//! column and the instruction set alone. A complete block goes to `C` while the next one is computed (`finish.rs`). `docs/kernels.md`
//! explains why.

mod block;
mod finish;
mod pack;
mod parts;
mod rows_stay;
#[cfg(test)]
mod tests;

use super::{Epilogue, Matrix, PackedWeights, Weights, gemm_int8};
use crate::Cpu;
use crate::amx::{PANEL, TILE};
use crate::scratch::Scratch;
use crate::simd::Real;
use crate::threads::Shared;
use block::{SUMS, Task};
use half::bf16;
use pack::{Left, PackPanel, Right};
pub(crate) use pack::{Parts, as_tiles, pack_right, put, transpose};
pub(super) use parts::gemm_in_parts;
pub(crate) use parts::{pairs, row};
use rows_stay::PAIR;

/// Elements of `k` in a row of a tile: a step. Rows of operands are padded to whole steps.
pub(crate) const STEP: usize = 32;
/// The largest number of panels in a task.
const TASK_PANELS: usize = 8;
/// The same if rows stay and `k` is a single stretch, so that no sums wait in the L2 cache: then columns may fill 512 KiB of it.
const TASK_PANELS_OF_ONE_STRETCH: usize = 16;
/// The largest number of rows in a task whose columns come packed: the sums of such a task are 256 KiB.
const TASK_ROWS: usize = 256;
/// The same for a task that packs its columns: more rows make packing pay.
const PACKING_TASK_ROWS: usize = 1024;
/// The same for numbers in parts, which take more memory.
const PACKING_TASK_ROWS_IN_PARTS: usize = 512;
/// Elements of `k` in a stretch if columns stay: so much of a panel fits into the L1 cache, and most of one in three parts.
const DEPTH_COLUMNS_STAY: usize = 256;
/// The same if rows stay: so much of 32 rows fills two thirds of the L1 cache.
const DEPTH_ROWS_STAY: usize = 512;
/// Rows for each column up to which it is faster to transpose the rows than the result, if `k` is a single stretch. Feed-forward
/// layers have 4.
const TRANSPOSED_ROWS_PER_COLUMN: usize = 4;

/// `C = activation(A·B + bias)` with operands rounded to bf16: `A: [m, k]`, `B: [k, n]`, `C: [m, n]`.
pub(super) fn gemm_bf16<'b, B: Real, C: Real>(
    cpu: &Cpu,
    a: Matrix<bf16>,
    b: Matrix<'b, B>,
    c: &mut [C],
    epilogue: Epilogue,
) where
    Right<'b>: From<Matrix<'b, B>>,
{
    super::check((a.rows, a.cols), (b.rows, b.cols), c.len(), epilogue);
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    // If rows stay and no sums wait, blocks are written side by side. That is worth transposing some more rows.
    let is_one_stretch = cpu.isa.amx().is_some() && a.cols <= DEPTH_ROWS_STAY;
    let straight = is_one_stretch && a.rows <= TRANSPOSED_ROWS_PER_COLUMN * b.cols;
    if better_transposed(a, b) && !straight {
        let left = Left::<1>::tiles(cpu, b.t(), whole_steps(b.rows));
        multiply(cpu, left, Right::Bf16(a.t()), a.rows, c, epilogue, true);
    } else {
        multiply(cpu, Left::new(cpu, a, b.cols), b.into(), b.cols, c, epilogue, false);
    }
}

/// Whether it is usually faster to compute the transpose of a product. A column-major operand on the left has to be transposed, which
/// takes longer than packing it on the right. So the wider operand goes to the right; then the result comes out transposed, and each
/// block is transposed on its way to `C`.
fn better_transposed<A, B>(a: Matrix<A>, b: Matrix<B>) -> bool {
    a.transposed && !b.transposed && a.rows > b.cols
}

/// [`gemm_bf16`] with weights in any form.
pub(super) fn times_weights<C: Real>(
    cpu: &Cpu,
    a: Matrix<bf16>,
    b: Weights<bf16>,
    c: &mut [C],
    epilogue: Epilogue,
) {
    match b {
        Weights::F32(b) => gemm_bf16(cpu, a, b, c, epilogue),
        Weights::Int8(w) => gemm_int8(cpu, a, w, c, epilogue),
        Weights::Packed { weights, columns, k } => {
            let n = columns.len();
            super::check((a.rows, a.cols), (k, n), c.len(), epilogue);
            if a.rows > 0 && n > 0 {
                let right = Right::Packed(weights.panels_from(cpu, columns.start, PANEL));
                let left = match whole_steps(weights.k) {
                    length if length == whole_steps(k) => Left::new(cpu, a, n),
                    length => Left::tiles(cpu, a, length),
                };
                multiply(cpu, left, right, n, c, epilogue, false);
            }
        }
    }
}

/// The length of a column of `k`, in whole steps.
pub(super) fn whole_steps(k: usize) -> usize {
    k.next_multiple_of(STEP).max(STEP)
}

/// Weights `[n, k]` in panels of whole steps.
pub(super) fn pack_weights(cpu: &Cpu, weights: &[f32], n: usize, k: usize) -> PackedWeights<bf16> {
    let (b, size) = (Matrix::new(weights, n, k).t(), whole_steps(k) * PANEL);
    PackedWeights::new(cpu, n, k, n.div_ceil(PANEL) * size, |to| {
        cpu.threads.for_pieces(to, size, |panel, to| {
            cpu.isa.dispatch(PackPanel::<_, 1> { b, column: panel * PANEL, start: 0, to });
        });
    })
}

/// The product in tasks. With `transposed_result`, `c` is its transpose.
fn multiply<C: Real, const N: usize>(
    cpu: &Cpu,
    left: Left<N>,
    b: Right,
    n: usize,
    c: &mut [C],
    epilogue: Epilogue,
    transposed_result: bool,
) {
    let m = left.m;
    let width = if transposed_result { m } else { n } * size_of::<C>();
    let streamed = epilogue.streamed && c.as_ptr().addr().is_multiple_of(64) && width.is_multiple_of(64);
    let epilogue = Epilogue { streamed, ..epilogue };
    let c = Shared::new(c);
    // The numbers do not depend on how the work is cut, so it may depend on the number of threads. It is cut by columns, so that a
    // column is packed by one thread only, unless there are so many rows that not every thread should read all of them.
    let threads = cpu.threads.count();
    let shares = if m > 3 * n { 1 } else { threads.min(2) };
    let most_panels = if left.rows_stay && left.length <= DEPTH_ROWS_STAY {
        TASK_PANELS_OF_ONE_STRETCH
    } else {
        TASK_PANELS
    };
    let all_panels = n.div_ceil(PANEL);
    let panels = all_panels.div_ceil(all_panels.div_ceil(most_panels).next_multiple_of(shares));
    let column_tasks = all_panels.div_ceil(panels);
    let most = if matches!(b, Right::Packed(_)) {
        TASK_ROWS
    } else if N == 1 {
        PACKING_TASK_ROWS
    } else {
        PACKING_TASK_ROWS_IN_PARTS
    };
    let row_tasks = threads.div_ceil(column_tasks).min(m.div_ceil(TASK_ROWS)).max(m.div_ceil(most));
    let unit = if left.rows_stay { PAIR } else { TILE };
    let rows_each = m.div_ceil(unit).div_ceil(row_tasks) * unit;
    let tasks = row_tasks * column_tasks;
    // Tasks with neighbouring numbers have the same columns.
    let first = |task| [m.min(task % row_tasks * rows_each), task / row_tasks * panels * PANEL];
    cpu.threads.run(tasks, |task| {
        let [row, column] = first(task);
        let (rows, columns) = (row..m.min(row + rows_each), column..n.min(column + panels * PANEL));
        let packed_here = match b {
            Right::Packed(_) => 0,
            Right::F32(_) | Right::Bf16(_) => {
                left.depth(0) * N * PANEL * if left.rows_stay { panels } else { 1 }
            }
        };
        let mut right = Scratch::take(packed_here);
        let mut copied = Scratch::take(if left.are_long() { PAIR * DEPTH_ROWS_STAY } else { 0 });
        let blocks = if left.length <= left.depth(0) {
            2 * unit / TILE
        } else {
            // All blocks whose sums wait for the next stretch of `k`.
            rows.len().div_ceil(TILE) * if left.length <= left.depth_of_one_pass() { 1 } else { panels }
        };
        let mut sums = Scratch::take(blocks * SUMS);
        cpu.isa.dispatch(Task {
            isa: cpu.isa,
            left: &left,
            b,
            n,
            rows,
            columns,
            next_task: (task + threads < tasks).then(|| first(task + threads)),
            right: &mut right,
            copied: &mut copied,
            sums: Shared::new(&mut sums),
            c,
            epilogue,
            transposed_result,
        });
    });
}
