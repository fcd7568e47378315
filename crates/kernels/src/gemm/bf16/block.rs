//! Blocks of 32 × 32 sums: on the tile unit, or as dot products of pairs on vectors.

use super::pack::{Left, pack_right};
use super::{BLOCK, DEPTH, Epilogue, Matrix, STEP};
use crate::amx::TILE;
use crate::isa::{Isa, Kernel};
use crate::simd::{Real, Simd, load, store};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// The product of all rows of `A` with some columns of `B`.
pub(super) struct Columns<'a, B, C> {
    pub isa: Isa,
    pub left: &'a Left<'a>,
    pub b: Matrix<'a, B>,
    pub columns: Range<usize>,
    /// Room for one stretch of `k` of the columns, as pairs.
    pub packed: &'a mut [f32],
    /// Room for the sums of one block, or of all.
    pub sums: &'a mut [f32],
    pub c: Shared<'a, C>,
    pub epilogue: Epilogue<'a>,
}

impl<B: Real, C: Real> Kernel for Columns<'_, B, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let tiles = self.isa.amx().map(|amx| amx.tiles());
        let (m, k) = (self.left.m, self.left.stride);
        let panels = self.columns.len().div_ceil(BLOCK);
        for start in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - start);
            let panel = depth * BLOCK / 2;
            for (j, to) in self.packed[..panels * panel].chunks_exact_mut(panel).enumerate() {
                pack_right(s, self.b, self.columns.start + j * BLOCK, start..start + depth, to);
            }
            // A block is finished while the tiles are at work on the next.
            let mut waiting = None;
            for j in 0..panels {
                let right = self.packed[j * panel..][..panel].as_ptr();
                for i in 0..m.div_ceil(BLOCK) {
                    let block = self.block(i, j);
                    let sums = &mut self.sums[block.sums.clone()];
                    // Safety: `left` gives whole blocks of rows of `k` elements, `right` was packed for `depth` of them.
                    unsafe {
                        let left = self.left.block(i * BLOCK).add(start);
                        match &tiles {
                            Some(tiles) => {
                                let (stride, steps) = (k * size_of::<bf16>(), depth / STEP);
                                tiles.multiply_bf16(
                                    left,
                                    stride,
                                    right.cast(),
                                    steps,
                                    sums.as_mut_ptr(),
                                    start == 0,
                                );
                            }
                            None => dot_rows(s, left, k, right, depth / STEP, block.rows, sums, start == 0),
                        }
                    }
                    if start + depth == k
                        && let Some(done) = waiting.replace(block)
                    {
                        self.finish(s, done);
                    }
                }
            }
            if let Some(done) = waiting {
                self.finish(s, done);
            }
        }
    }
}

/// Where a block of sums lies and where it belongs.
struct Block {
    row: usize,
    rows: usize,
    column: usize,
    cols: usize,
    sums: Range<usize>,
}

impl<B: Real, C: Real> Columns<'_, B, C> {
    /// The block in row `i` and column `j` of blocks. Its sums have a place of their own if they have to wait for the next
    /// stretch of `k`, and else one of two that are used in turn.
    #[inline(always)]
    fn block(&self, i: usize, j: usize) -> Block {
        let (row, column) = (i * BLOCK, self.columns.start + j * BLOCK);
        let number = j * self.left.m.div_ceil(BLOCK) + i;
        let place = if self.left.stride > DEPTH { number } else { number % 2 };
        let (rows, cols) = (BLOCK.min(self.left.m - row), BLOCK.min(self.b.cols - column));
        Block { row, rows, column, cols, sums: place * BLOCK * BLOCK..(place + 1) * BLOCK * BLOCK }
    }

    /// What is in `C` already, bias and activation; then the block goes to its place, rounded to its type.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, block: Block) {
        let Block { row, rows, column, cols, sums } = block;
        let n = self.b.cols;
        let Epilogue { accumulate, bias, activation } = self.epilogue;
        for i in 0..rows {
            let sums = &self.sums[sums.start + i * BLOCK..][..BLOCK];
            // Safety: columns belong to one task each.
            let c = unsafe { self.c.slice((row + i) * n + column, cols) };
            for at in (0..cols).step_by(S::LANES) {
                let lanes = S::LANES.min(cols - at);
                let mut sum = load(s, sums, at, lanes);
                if accumulate {
                    sum = s.add(sum, load(s, c, at, lanes));
                }
                if let Some(bias) = bias {
                    sum = s.add(sum, load(s, bias, column + at, lanes));
                }
                if let Some(activation) = activation {
                    sum = activation.apply(s, sum);
                }
                store(s, c, at, lanes, sum);
            }
        }
    }
}

/// The first `rows` rows of a block as dot products of pairs.
///
/// # Safety
/// `left` must be valid for `BLOCK` rows, `stride` apart, and `right` for `steps` steps of a panel.
#[inline(always)]
unsafe fn dot_rows<S: Simd>(
    s: S,
    left: *const bf16,
    stride: usize,
    right: *const f32,
    steps: usize,
    rows: usize,
    sums: &mut [f32],
    first: bool,
) {
    let mut row = 0;
    while row < rows {
        let left_over = rows - row;
        for column in (0..BLOCK).step_by(2 * S::LANES) {
            // Safety: rows below `BLOCK`, columns inside the panel.
            unsafe {
                let left = left.add(row * stride);
                let sums = &mut sums[row * BLOCK + column..];
                match left_over.min(S::TILE_ROWS) {
                    1 => dot::<S, 1>(s, left, stride, right, steps, column, sums, first),
                    2 | 3 => dot::<S, 2>(s, left, stride, right, steps, column, sums, first),
                    4..=7 => dot::<S, 4>(s, left, stride, right, steps, column, sums, first),
                    _ => dot::<S, 8>(s, left, stride, right, steps, column, sums, first),
                }
            }
        }
        row += match left_over.min(S::TILE_ROWS) {
            1 => 1,
            2 | 3 => 2,
            4..=7 => 4,
            _ => 8,
        };
    }
}

/// `ROWS` rows by two vectors of columns from `column` on.
///
/// # Safety
/// As for [`dot_rows`].
#[inline(always)]
unsafe fn dot<S: Simd, const ROWS: usize>(
    s: S,
    left: *const bf16,
    stride: usize,
    right: *const f32,
    steps: usize,
    column: usize,
    sums: &mut [f32],
    first: bool,
) {
    assert!(sums.len() >= (ROWS - 1) * BLOCK + 2 * S::LANES);
    let c = sums.as_mut_ptr();
    let mut totals = [[s.splat(0.0); 2]; ROWS];
    if !first {
        for row in 0..ROWS {
            for v in 0..2 {
                // Safety: inside `sums`, as just checked.
                totals[row][v] = unsafe { s.load(c.add(row * BLOCK + v * S::LANES)) };
            }
        }
    }
    for step in 0..steps {
        for p in 0..TILE {
            // Safety: the caller's promise; both columns lie inside a row of a tile.
            unsafe {
                let mut columns = [s.splat_u(0); 2];
                for v in 0..2 {
                    let column = column + v * S::LANES;
                    let tile = right.add((2 * step + column / TILE) * TILE * TILE);
                    columns[v] = s.load_u(tile.add(p * TILE + column % TILE).cast());
                }
                for row in 0..ROWS {
                    let pair = left.add(row * stride + step * STEP + 2 * p).cast::<u32>().read();
                    let pair = s.splat_u(pair);
                    for v in 0..2 {
                        totals[row][v] = s.dot(totals[row][v], pair, columns[v]);
                    }
                }
            }
        }
    }
    for row in 0..ROWS {
        for v in 0..2 {
            // Safety: inside `sums`.
            unsafe { s.store(c.add(row * BLOCK + v * S::LANES), totals[row][v]) }
        }
    }
}
