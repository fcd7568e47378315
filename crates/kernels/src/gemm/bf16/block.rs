//! Blocks of 32 × 32 sums: on the tile unit, or as dot products of pairs on vectors.

use super::pack::{Left, pack_right};
use super::{BLOCK, DEPTH, Epilogue, Matrix, PACKED, STEP};
use crate::amx::{AHEAD, TILE, Tiles};
use crate::isa::{Isa, Kernel};
use crate::simd::{Real, Simd, for_vectors, load, prefetch_to_write, store};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// The product of some rows of `A`, from the start of a block on, with some columns of `B`.
pub(super) struct Columns<'a, B, C> {
    pub isa: Isa,
    pub left: &'a Left<'a>,
    pub b: Matrix<'a, B>,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// Room for the columns as pairs: `[stretch of k][panel]`.
    pub right: &'a mut [bf16],
    /// Room for a stretch of a block of rows.
    pub stretch: &'a mut [bf16],
    /// Room for the sums of a row of blocks, or of all of them.
    pub sums: &'a mut [f32],
    pub c: Shared<'a, C>,
    pub epilogue: Epilogue<'a>,
    /// Whether `C` is the transpose of this product.
    pub turned: bool,
}

/// A block of sums.
#[repr(C, align(64))]
struct Block([[f32; BLOCK]; BLOCK]);

/// A block's place in `C`, which is so wide.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    column: usize,
    rows: usize,
    cols: usize,
    width: usize,
}

impl<B: Real, C: Real> Kernel for Columns<'_, B, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let tiles = self.isa.amx().map(|amx| amx.tiles());
        let k = self.left.length;
        for start in (0..k).step_by(PACKED) {
            let end = k.min(start + PACKED);
            self.pack(s, start..end);
            for row in self.rows.clone().step_by(BLOCK) {
                for at in (start..end).step_by(DEPTH) {
                    self.multiply(s, tiles.as_ref(), row, at..end.min(at + DEPTH), start, end == k);
                }
            }
        }
    }
}

impl<B: Real, C: Real> Columns<'_, B, C> {
    fn panels(&self) -> usize {
        self.columns.len().div_ceil(BLOCK)
    }

    #[inline(always)]
    fn pack<S: Simd>(&mut self, s: S, k: Range<usize>) {
        let panels = self.panels();
        let mut to = &mut *self.right;
        for at in k.clone().step_by(DEPTH) {
            for panel in 0..panels {
                let size = DEPTH.min(k.end - at) * BLOCK;
                let (this, rest) = to.split_at_mut(size);
                pack_right(s, self.b, self.columns.start + panel * BLOCK, at, this);
                to = rest;
            }
        }
    }

    /// One stretch of `k` of a block of rows, with all columns of the task; `packed` is where the packed part of `k`
    /// starts, and `last` says that nothing comes after it.
    #[inline(always)]
    fn multiply<S: Simd>(
        &mut self,
        s: S,
        tiles: Option<&Tiles>,
        row: usize,
        k: Range<usize>,
        packed: usize,
        last: bool,
    ) {
        let panels = self.panels();
        let last = last && k.end == self.left.length.min(packed + PACKED);
        let mut block = &self.left.block(row)[k.start..];
        let mut stride = self.left.stride;
        if self.left.collides() {
            for i in 0..BLOCK {
                self.stretch[i * k.len()..][..k.len()].copy_from_slice(&block[i * stride..][..k.len()]);
            }
            (block, stride) = (&*self.stretch, k.len());
        }
        let ahead = self.next(row, &k, packed);
        let first_sums = if self.left.length > PACKED { (row - self.rows.start) / BLOCK * panels } else { 0 };
        let right = &self.right[(k.start - packed) * panels * BLOCK..];
        for panel in 0..panels {
            let right = &right[panel * k.len() * BLOCK..][..k.len() * BLOCK];
            if last {
                self.fetch_place(row, panel);
            }
            let sums = &mut self.sums[(first_sums + panel) * BLOCK * BLOCK..][..BLOCK * BLOCK];
            let (steps, first) = (k.len() / STEP, k.start == 0);
            assert!(block.len() >= (BLOCK - 1) * stride + k.len());
            // Safety: `block` has 32 rows of `k`, as just checked, `right` as many pairs as it takes, `sums` a whole block.
            unsafe {
                match tiles {
                    Some(tiles) => {
                        let (left, bytes) = (block.as_ptr(), stride * size_of::<bf16>());
                        let ahead_stride = self.left.stride * size_of::<bf16>();
                        let ahead = ahead.wrapping_byte_add(panel * AHEAD * ahead_stride);
                        let (right, sums) = (right.as_ptr(), sums.as_mut_ptr());
                        tiles.multiply_bf16(left, bytes, right, steps, sums, first, ahead, ahead_stride);
                    }
                    None => {
                        let rows = BLOCK.min(self.left.m - row);
                        dot_rows(s, block.as_ptr(), stride, right.as_ptr().cast(), steps, rows, sums, first);
                    }
                }
            }
            // A block is finished while the tiles are at work on the next.
            if last && panel > 0 {
                self.finish(s, row, panel - 1, first_sums);
            }
        }
        if last {
            self.finish(s, row, panels - 1, first_sums);
        }
    }

    /// What comes after the stretch `k` of a block of rows.
    fn next(&self, row: usize, k: &Range<usize>, packed: usize) -> *const bf16 {
        if k.end < self.left.length.min(packed + PACKED) {
            return self.left.block(row)[k.end..].as_ptr();
        }
        let row = if row + BLOCK < self.rows.end { row + BLOCK } else { self.rows.start };
        self.left.block(row)[packed..].as_ptr()
    }

    /// Where the block of `row` and `panel` goes.
    #[inline(always)]
    fn place(&self, row: usize, panel: usize) -> Place {
        let (m, n) = (self.left.m, self.b.cols);
        let column = self.columns.start + panel * BLOCK;
        let (rows, cols) = (BLOCK.min(m - row), BLOCK.min(n - column));
        if self.turned {
            return Place { row: column, column: row, rows: cols, cols: rows, width: m };
        }
        Place { row, column, rows, cols, width: n }
    }

    /// What is in `C` already, bias and activation; then the block goes to its place, rounded to its type.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, row: usize, panel: usize, first_sums: usize) {
        let Epilogue { accumulate, bias, activation } = self.epilogue;
        let place = self.place(row, panel);
        let mut wide_bias = [0.0; BLOCK];
        if let Some(bias) = bias {
            wide_bias[..place.cols].copy_from_slice(&bias[place.column..place.column + place.cols]);
        }
        let mut sums = self.sums[(first_sums + panel) * BLOCK * BLOCK..].as_chunks::<BLOCK>().0;
        let mut turned = Block([[0.0; BLOCK]; BLOCK]);
        if self.turned {
            let (from, to) = (sums[..BLOCK].as_flattened(), turned.0.as_flattened_mut());
            for i in (0..BLOCK).step_by(S::LANES) {
                for j in (0..BLOCK).step_by(S::LANES) {
                    let (from, to) = (&from[i * BLOCK + j..], &mut to[j * BLOCK + i..]);
                    // Safety: squares of LANES × LANES inside of both blocks.
                    unsafe { s.transpose(from.as_ptr(), BLOCK, to.as_mut_ptr(), BLOCK) }
                }
            }
            sums = &turned.0;
        }
        // The choices are made here, once for a block.
        match (accumulate, activation) {
            (false, None) => self.put(s, place, sums, &wide_bias, |sum, _, _| sum),
            (true, None) => self.put(
                s,
                place,
                sums,
                &wide_bias,
                #[inline(always)]
                |sum, c, lanes| s.add(sum, load(s, c, 0, lanes)),
            ),
            (_, Some(activation)) => self.put(
                s,
                place,
                sums,
                &wide_bias,
                #[inline(always)]
                |sum, c, lanes| {
                    let sum = if accumulate { s.add(sum, load(s, c, 0, lanes)) } else { sum };
                    activation.apply(s, sum)
                },
            ),
        }
    }

    /// Stores `finish` of each sum with its bias, what `C` holds there and the number of lanes.
    #[inline(always)]
    fn put<S: Simd>(
        &self,
        s: S,
        Place { row, column, rows, cols, width }: Place,
        sums: &[[f32; BLOCK]],
        bias: &[f32; BLOCK],
        finish: impl Fn(S::F, &[C], usize) -> S::F,
    ) {
        let sum = |sums: &[f32], at| s.add(load(s, sums, at, S::LANES), load(s, bias, at, S::LANES));
        // Safety: rows and columns belong to one task each.
        let c = |i: usize| unsafe { self.c.slice((row + i) * width + column, cols) };
        // Whole rows are the common case, and their length is known when compiling.
        if cols == BLOCK {
            for (i, sums) in sums[..rows].iter().enumerate() {
                let c = c(i).first_chunk_mut::<BLOCK>().expect("a whole row");
                for at in (0..BLOCK).step_by(S::LANES) {
                    let y = finish(sum(sums, at), &c[at..at + S::LANES], S::LANES);
                    store(s, c, at, S::LANES, y);
                }
            }
        } else {
            for (i, sums) in sums[..rows].iter().enumerate() {
                let c = c(i);
                for_vectors(s, cols, |at, lanes| {
                    let y = finish(sum(sums, at), &c[at..at + lanes], lanes);
                    store(s, c, at, lanes, y);
                });
            }
        }
    }

    /// Asks for the place of a block in `C`: on most machines it takes longer to get it than to fill it.
    #[inline(always)]
    fn fetch_place(&self, row: usize, panel: usize) {
        let Place { row, column, rows, width, .. } = self.place(row, panel);
        for row in row..row + rows {
            let at = self.c.at(row * width + column).cast_const();
            prefetch_to_write(at);
            if size_of::<C>() == 4 {
                prefetch_to_write(at.wrapping_add(BLOCK / 2));
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
        let mut done = 0;
        for column in (0..BLOCK).step_by(2 * S::LANES) {
            // Safety: rows below `BLOCK`, columns inside the panel.
            done = unsafe {
                let left = left.add(row * stride);
                let sums = &mut sums[row * BLOCK + column..];
                match (rows - row).min(S::TILE_ROWS) {
                    1 => dot::<S, 1>(s, left, stride, right, steps, column, sums, first),
                    2 | 3 => dot::<S, 2>(s, left, stride, right, steps, column, sums, first),
                    4..=7 => dot::<S, 4>(s, left, stride, right, steps, column, sums, first),
                    _ => dot::<S, 8>(s, left, stride, right, steps, column, sums, first),
                }
            };
        }
        row += done;
    }
}

/// `ROWS` rows by two vectors of columns from `column` on; returns `ROWS`.
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
) -> usize {
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
    ROWS
}
