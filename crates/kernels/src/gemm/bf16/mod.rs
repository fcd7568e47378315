//! Matrix products of bf16 with sums in f32.
//!
//! A task has up to 256 columns and, if these come packed, 256 rows, else 1,024, or 512 of numbers in parts (`parts.rs`). Its
//! columns are packed (unless they come packed) in panels of 32, rounded to bf16 on the way, into pairs of neighbours along `k`,
//! which is what the tile unit and the dot products of AVX-512 multiply.
//!
//! On the tile unit a stretch of `k` of 32 rows stays in the first cache while the panels stream past it from the second
//! (`rows_stay.rs`); if `k` is one stretch, a task has up to 512 columns. On vectors, with numbers in parts, and for sixteen rows
//! that are alone, a stretch of a panel stays while rows stream past it (`block.rs`). Sums of a block go on exactly from one stretch
//! to the next, so that an element depends on its row, its column and the instruction set alone. A complete block goes to `C` while
//! the next one is computed (`finish.rs`).

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
use block::{Columns, SUMS};
use half::bf16;
use pack::{Left, PackPanel, Right};
pub(crate) use pack::{Parts, as_tiles, pack_right, put, transpose};
pub(super) use parts::gemm_in_parts;
pub(crate) use parts::{pairs, row};
use rows_stay::PAIR;

/// Elements of `k` in a row of a tile: rows of operands are padded to a multiple of it.
pub(crate) const STEP: usize = 32;
/// Panels in a task at most.
const PANELS: usize = 8;
/// The same where rows stay and no sums wait: 512 KiB of them are in the second cache, of which a neighbour may have his share.
const MORE_PANELS: usize = 16;
/// Rows in a task, if columns come packed: their sums with the panels of a task are 256 KiB.
const ROWS: usize = 256;
/// The same if each task packs its columns, which has to be worth it.
const WORTHWHILE: usize = 1024;
/// The same of numbers in parts, which take more room.
const WORTHWHILE_IN_PARTS: usize = 512;
/// Elements of `k` that are multiplied in one go where columns stay: so much of a panel stays in the first cache, and most of one
/// with numbers in three parts.
const DEPTH: usize = 256;
/// The same where rows stay: so much of 32 rows is two thirds of the first cache.
const DEEP: usize = 512;

/// So many times as many rows as columns, as in feed-forward layers, are still better turned themselves than their result, if `k` is
/// one stretch.
const FEW: usize = 4;

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
    // Where rows stay and no sums wait, blocks that are written one beside the other make up for some more rows to turn.
    let as_it_is = cpu.isa.amx().is_some() && a.cols <= DEEP && a.rows <= FEW * b.cols;
    if better_turned(a, b) && !as_it_is {
        let left = Left::<1>::tiles(cpu, b.t(), whole_steps(b.rows));
        multiply(cpu, left, Right::Bf16(a.t()), a.rows, c, epilogue, true);
    } else {
        multiply(cpu, Left::new(cpu, a, b.cols), b.into(), b.cols, c, epilogue, false);
    }
}

/// Whether the transpose of a product takes less time, as a rule. Rows on the left that lie in columns have to be turned, which takes
/// longer than packing them on the right: with the wider operand there, the result comes out transposed, and is turned block by
/// block.
fn better_turned<A, B>(a: Matrix<A>, b: Matrix<B>) -> bool {
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

/// The product, or with `turned` its transpose, in tasks.
fn multiply<C: Real, const N: usize>(
    cpu: &Cpu,
    left: Left<N>,
    b: Right,
    n: usize,
    c: &mut [C],
    epilogue: Epilogue,
    turned: bool,
) {
    let m = left.m;
    let width = if turned { m } else { n } * size_of::<C>();
    let streamed = epilogue.streamed && c.as_ptr().addr().is_multiple_of(64) && width.is_multiple_of(64);
    let epilogue = Epilogue { streamed, ..epilogue };
    let c = Shared::new(c);
    // No element can tell how the work is cut, so that it may be cut by the number of threads: by columns, so that each is
    // packed, if it has to be, by one of them, unless there are so many more rows that the threads had better not all read them.
    let threads = cpu.threads.count();
    let shares = if m > 3 * n { 1 } else { threads.min(2) };
    let most_panels = if left.stay && left.length <= DEEP { MORE_PANELS } else { PANELS };
    let all_panels = n.div_ceil(PANEL);
    let panels = all_panels.div_ceil(all_panels.div_ceil(most_panels).next_multiple_of(shares));
    let column_tasks = all_panels.div_ceil(panels);
    let most = if matches!(b, Right::Packed(_)) {
        ROWS
    } else if N == 1 {
        WORTHWHILE
    } else {
        WORTHWHILE_IN_PARTS
    };
    let row_tasks = threads.div_ceil(column_tasks).min(m.div_ceil(ROWS)).max(m.div_ceil(most));
    let unit = if left.stay { PAIR } else { TILE };
    let rows_each = m.div_ceil(unit).div_ceil(row_tasks) * unit;
    let tasks = row_tasks * column_tasks;
    // Neighbouring tasks have the same columns.
    let first = |task| [m.min(task % row_tasks * rows_each), task / row_tasks * panels * PANEL];
    cpu.threads.run(tasks, |task| {
        let [row, column] = first(task);
        let (rows, columns) = (row..m.min(row + rows_each), column..n.min(column + panels * PANEL));
        let packed_here = match b {
            Right::Packed(_) => 0,
            Right::F32(_) | Right::Bf16(_) => left.depth(0) * N * PANEL * if left.stay { panels } else { 1 },
        };
        let mut right = Scratch::take(packed_here);
        let mut copied = Scratch::take(if left.are_long() { PAIR * DEEP } else { 0 });
        let blocks = if left.length <= left.depth(0) {
            2 * unit / TILE
        } else {
            // The sums of all blocks that wait for the next stretch of `k`.
            rows.len().div_ceil(TILE) * if left.length <= left.deep() { 1 } else { panels }
        };
        let mut sums = Scratch::take(blocks * SUMS);
        cpu.isa.dispatch(Columns {
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
            turned,
        });
    });
}
