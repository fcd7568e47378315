//! Matrix products of bf16 with sums in f32.
//!
//! The left operand is read where it lies, if its rows start at cache lines and are whole tile rows long, or else
//! copied so. The right operand is packed by the task that needs it, some columns at a time, and rounded to bf16 on
//! the way, into pairs of neighbours along `k`: that is what the tile unit and the dot products of AVX-512 multiply.
//! Sums of a block of 32 × 32 elements go on exactly from one stretch of `k` to the next, so that an element depends on
//! its row, its column and the instruction set alone.

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
/// Columns of a task.
const TASK: usize = 4 * BLOCK;
/// Elements of `k` after which sums are set aside: a panel of `B` of that depth is 32 KiB, two thirds of the first cache.
const DEPTH: usize = 512;

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
    let depth = left.stride.min(DEPTH);
    // With more than one stretch of `k`, the sums of all blocks of a task wait for the next.
    let blocks = if left.stride > DEPTH { m.div_ceil(BLOCK) * (TASK / BLOCK) } else { 2 };
    let c = Shared::new(c);
    cpu.threads.run(n.div_ceil(TASK), |task| {
        let mut memory = Scratch::take(depth * TASK / 2 + blocks * BLOCK * BLOCK);
        let (packed, sums) = memory.split_at_mut(depth * TASK / 2);
        let columns = task * TASK..n.min((task + 1) * TASK);
        cpu.isa.dispatch(Columns { isa: cpu.isa, left: &left, b, columns, packed, sums, c, epilogue });
    });
}
