//! Matrix products of bf16 with sums in f32.
//!
//! A task has up to 256 columns, and all rows if that makes tasks enough for all threads. It packs its columns, rounded to
//! bf16 on the way, into pairs of neighbours along `k`: that is what the tile unit and the dot products of AVX-512 multiply.
//! Then it goes through blocks of 32 rows: a stretch of `k` of them stays in the first cache while the columns stream past it
//! from the second. Sums of a block of 32 × 32 elements go on exactly from one stretch to the next, so that an element
//! depends on its row, its column and the instruction set alone.

mod block;
mod pack;
#[cfg(test)]
mod tests;

use super::{Epilogue, Matrix};
use crate::Cpu;
use crate::scratch::Scratch;
use crate::simd::Real;
use crate::threads::Shared;
use block::Columns;
use half::bf16;
use pack::Left;

/// Elements of `k` in a row of a tile: rows of operands are padded to a multiple of it.
const STEP: usize = 32;
/// Rows and columns of a block of sums.
const BLOCK: usize = crate::amx::BLOCK;
/// Panels of `B`, each as wide as a block, in a task: rows of `A` come from the last cache, once for so many of them.
const PANELS: usize = 8;
/// Rows that are worth packing columns for.
const WORTHWHILE: usize = 8 * BLOCK;
/// Elements of `k` that are multiplied in one go: so much of a block of rows of `A` is 16 KiB, a third of the first
/// cache, which may have to be shared with a neighbour.
const DEPTH: usize = 256;
/// Elements of `k` that are packed in one go: so much of a task's columns is 1 MiB, half of the second cache.
const PACKED: usize = 8 * DEPTH;

/// `C = activation(A·B + bias)` with operands rounded to bf16: `A: [m, k]`, `B: [k, n]`, `C: [m, n]`.
pub fn gemm_bf16<B: Real, C: Real>(
    cpu: &Cpu,
    a: Matrix<bf16>,
    b: Matrix<B>,
    c: &mut [C],
    epilogue: Epilogue,
) {
    super::check((a.rows, a.cols), (b.rows, b.cols), c.len(), epilogue);
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    // Rows on the left that lie in columns have to be turned, which takes longer than packing them on the right: with the wider
    // operand there, the result comes out transposed, and is turned block by block.
    if a.transposed && !b.transposed && a.rows > b.cols {
        multiply(cpu, Left::turned(cpu, b.t()), a.t(), c, epilogue, true);
    } else {
        multiply(cpu, Left::new(cpu, a), b, c, epilogue, false);
    }
}

/// The product, or with `turned` its transpose, in tasks.
fn multiply<B: Real, C: Real>(
    cpu: &Cpu,
    left: Left,
    b: Matrix<B>,
    c: &mut [C],
    epilogue: Epilogue,
    turned: bool,
) {
    let (m, n) = (left.m, b.cols);
    let c = Shared::new(c);
    // No element can tell how the work is cut, so that it may be cut by the number of threads.
    let threads = cpu.threads.count();
    let panels = n.div_ceil(BLOCK).div_ceil(threads.min(2)).min(PANELS);
    let column_tasks = n.div_ceil(panels * BLOCK);
    let row_tasks = threads.div_ceil(column_tasks).min(m.div_ceil(WORTHWHILE));
    let rows_each = m.div_ceil(BLOCK).div_ceil(row_tasks) * BLOCK;
    cpu.threads.run(row_tasks * column_tasks, |task| {
        let (i, j) = (task / column_tasks, task % column_tasks);
        let rows = m.min(i * rows_each)..m.min((i + 1) * rows_each);
        let columns = j * panels * BLOCK..n.min((j + 1) * panels * BLOCK);
        let mut right = Scratch::take(left.stride.min(PACKED) * panels * BLOCK);
        // Beyond that, the sums of all rows wait for the rest of `k`.
        let waiting = if left.length > PACKED { rows.len().div_ceil(BLOCK) } else { 1 };
        let mut sums = Scratch::take(waiting * panels * BLOCK * BLOCK);
        let mut stretch = Scratch::take(DEPTH * BLOCK);
        cpu.isa.dispatch(Columns {
            isa: cpu.isa,
            left: &left,
            b,
            rows,
            columns,
            right: &mut right,
            stretch: &mut stretch,
            sums: &mut sums,
            c,
            epilogue,
            turned,
        });
    });
}
