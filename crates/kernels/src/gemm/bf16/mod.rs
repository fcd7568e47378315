//! Matrix products of bf16 with sums in f32.
//!
//! A task has some rows and some columns. It goes through its columns in panels of 32: a stretch of `k` of a panel is packed (unless
//! it comes packed), rounded to bf16 on the way, into pairs of neighbours along `k`, which is what the tile unit and the dot products
//! of AVX-512 multiply, and stays in the first cache while the rows stream past it from the second, copied to tiles before. Sums of a block of 16 rows, or of 32 on the tile unit, go on exactly from one stretch to the next, so that an
//! element depends on its row, its column and the instruction set alone. A complete block goes to `C` while the next one is computed
//! (`finish.rs`). Numbers in parts (`parts.rs`) take more room: a stretch is shorter, and a task has fewer rows.

mod block;
mod finish;
mod pack;
mod parts;
#[cfg(test)]
mod tests;

use super::{Epilogue, Matrix, PackedWeights, Weights, gemm_int8};
use crate::Cpu;
use crate::amx::{PANEL, TILE};
use crate::scratch::Scratch;
use crate::simd::Real;
use crate::threads::Shared;
use block::{Columns, SUMS, TALL};
use half::bf16;
use pack::{Left, PackPanel, Right};
pub(crate) use pack::{Parts, as_tiles, pack_right, put, transpose};
pub(super) use parts::gemm_in_parts;
pub(crate) use parts::{pairs, row};

/// Elements of `k` in a row of a tile: rows of operands are padded to a multiple of it.
pub(crate) const STEP: usize = 32;
/// Panels in a task at most, if they come packed: so many that rows are worth copying.
const PANELS: usize = 32;
/// Rows in a task at most, if columns come packed; threads that have nothing to do are not worth fewer than half as many.
const ROWS: usize = 256;
/// Bytes of rows that had better stay in the second cache, of which a neighbour may have his share, while all columns of a task go
/// past. (One stretch is more than that, if a task packs its columns.)
const STAY: usize = 512 << 10;
/// Panels in a task at most, if it packs them.
const PANELS_TO_PACK: usize = 8;
/// Rows in such a task at most: packing has to be worth it.
const ROWS_TO_PACK: usize = 1024;
/// The same of numbers in parts, which take more room.
const ROWS_IN_PARTS: usize = 512;

/// Elements of `k` that are multiplied in one go, with numbers in so many parts: so much of a panel is two thirds of the first
/// cache, or in three parts all of it.
const fn depth(parts: usize) -> usize {
    if parts == 1 { 512 } else { 256 }
}

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
    if better_turned(a, b) {
        let left = Left::<1>::tiles(cpu, b.t(), whole_steps(b.rows));
        multiply(cpu, left, Right::Matrix(a.t()), a.rows, c, epilogue, true);
    } else {
        multiply(cpu, Left::new(cpu, a), Right::Matrix(b), b.cols, c, epilogue, false);
    }
}

/// Whether the transpose of a product takes less time. Rows on the left that lie in columns have to be turned, which takes longer than
/// packing them on the right: with the wider operand there, the result comes out transposed, and is turned block by block.
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
                let right = Right::<bf16>::Packed(weights.panels_from(cpu, columns.start, PANEL));
                let left = match whole_steps(weights.k) {
                    length if length == whole_steps(k) => Left::new(cpu, a),
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
            cpu.isa.dispatch(PackPanel { b, column: panel * PANEL, to });
        });
    })
}

/// How a product is cut into tasks.
struct Cut {
    /// The columns are cut into so many shares at least.
    shares: usize,
    most_panels: usize,
    most_rows: usize,
    /// Fewer rows are not worth a task of their own, unless there are no more.
    fewest_rows: usize,
    /// So many tasks are wanted.
    tasks: usize,
}

/// The product, or with `turned` its transpose, in tasks.
fn multiply<B: Real, C: Real, const N: usize>(
    cpu: &Cpu,
    left: Left<N>,
    b: Right<B>,
    n: usize,
    c: &mut [C],
    epilogue: Epilogue,
    turned: bool,
) {
    let m = left.m;
    let width = if turned { m } else { n } * size_of::<C>();
    let streamed = epilogue.streamed
        && size_of::<C>() == 4
        && c.as_ptr().addr().is_multiple_of(64)
        && width.is_multiple_of(64);
    let epilogue = Epilogue { streamed, ..epilogue };
    let c = Shared::new(c);
    // No element can tell how the work is cut, so that it may be cut by the number of threads.
    let threads = cpu.threads.count();
    let (all_panels, packed) = (n.div_ceil(PANEL), matches!(b, Right::Packed(_)));
    let Cut { shares, most_panels, most_rows, fewest_rows, tasks } = if packed {
        // By rows, so that each is copied once, unless there are few of them. Where no sums wait, smaller tasks take no longer, and
        // threads have less to wait for each other.
        Cut {
            shares: threads.div_ceil(m.div_ceil(ROWS / 2)),
            most_panels: PANELS,
            most_rows: ROWS,
            fewest_rows: ROWS / 2,
            tasks: if left.length > depth(N) { threads } else { 4 * threads },
        }
    } else {
        // By columns, so that each is packed by one of the threads, unless there are so many more rows that they had better not all
        // read them.
        Cut {
            shares: if m > 3 * n { 1 } else { threads.min(2) },
            most_panels: PANELS_TO_PACK,
            most_rows: if N == 1 { ROWS_TO_PACK } else { ROWS_IN_PARTS },
            fewest_rows: ROWS,
            tasks: threads,
        }
    };
    let panels = all_panels.div_ceil(shares).min(most_panels);
    let wanted = tasks.div_ceil(all_panels.div_ceil(panels));
    let row_tasks = wanted.min(m.div_ceil(fewest_rows)).max(m.div_ceil(most_rows));
    let (rows_each, columns_each) = (m.div_ceil(TALL).div_ceil(row_tasks) * TALL, panels * PANEL);
    let row_tasks = m.div_ceil(rows_each);
    let reach = (STAY / (rows_each * N * size_of::<bf16>()) / depth(N)).max(1) * depth(N);
    // Neighbouring tasks have the same columns.
    cpu.threads.run(row_tasks * n.div_ceil(columns_each), |task| {
        let (i, j) = (task % row_tasks, task / row_tasks);
        let rows = i * rows_each..m.min((i + 1) * rows_each);
        let columns = j * columns_each..n.min((j + 1) * columns_each);
        let copied =
            if left.given() { rows.len().next_multiple_of(TILE) * left.length.min(reach) } else { 0 };
        let mut copy = Scratch::take(copied);
        let mut right = Scratch::take(if packed { 0 } else { left.length.min(depth(N)) * N * PANEL });
        let blocks = match left.length {
            k if k <= depth(N) => 2 * TALL / TILE,
            k if k <= reach => rows.len().div_ceil(TILE),
            _ => rows.len().div_ceil(TILE) * panels,
        };
        let mut sums = Scratch::take(blocks * SUMS);
        cpu.isa.dispatch(Columns {
            isa: cpu.isa,
            left: &left,
            b,
            n,
            rows,
            columns,
            reach,
            copy: &mut copy,
            right: &mut right,
            sums: Shared::new(&mut sums),
            c,
            epilogue,
            turned,
        });
    });
}
