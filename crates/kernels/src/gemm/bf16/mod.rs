//! Matrix products of bf16 with sums in f32.
//!
//! A task has all rows and 128 columns. It packs its columns, rounded to bf16 on the way, into pairs of neighbours along
//! `k`: that is what the tile unit and the dot products of AVX-512 multiply. Then it goes through blocks of 32 rows: a
//! stretch of `k` of them stays in the first cache while the columns stream past it from the second. Sums of a block of
//! 32 × 32 elements go on exactly from one stretch to the next, so that an element depends on its row, its column and
//! the instruction set alone.

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
/// Panels of `B`, each as wide as a block, in a task.
const PANELS: usize = 4;
/// Elements of `k` that are multiplied in one go: so much of a block of rows of `A` is 16 KiB, a third of the first
/// cache, which may have to be shared with a neighbour.
const DEPTH: usize = 256;
/// Elements of `k` that are packed in one go: so much of a task's columns is 1 MiB, half of the second cache.
const PACKED: usize = 16 * DEPTH;

/// `C = activation(A·B + bias)` with operands rounded to bf16: `A: [m, k]`, `B: [k, n]`, `C: [m, n]`.
pub fn gemm_bf16<B: Real, C: Real>(
    cpu: &Cpu,
    a: Matrix<bf16>,
    b: Matrix<B>,
    c: &mut [C],
    epilogue: Epilogue,
) {
    super::check((a.rows, a.cols), (b.rows, b.cols), c.len(), epilogue);
    let (m, n) = (a.rows, b.cols);
    if m == 0 || n == 0 {
        return;
    }
    let left = Left::new(cpu, a);
    let c = Shared::new(c);
    let packed = left.stride.min(PACKED) * PANELS * BLOCK;
    // Beyond that, the sums of all rows wait for the rest of `k`.
    let blocks = PANELS * if left.stride > PACKED { m.div_ceil(BLOCK) } else { 1 };
    cpu.threads.run(n.div_ceil(PANELS * BLOCK), |task| {
        let mut right = Scratch::take(packed);
        let mut sums = Scratch::take(blocks * BLOCK * BLOCK);
        let mut rows = Scratch::take(DEPTH * BLOCK);
        let columns = task * PANELS * BLOCK..n.min((task + 1) * PANELS * BLOCK);
        cpu.isa.dispatch(Columns {
            isa: cpu.isa,
            left: &left,
            b,
            columns,
            right: &mut right,
            rows: &mut rows,
            sums: &mut sums,
            c,
            epilogue,
        });
    });
}
