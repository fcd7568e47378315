//! Blocks of 16 × 32 sums: on the tile unit, or as dot products of pairs on vectors.

use super::finish::{InSteps, Square};
use super::pack::{Left, Right, Tile, pack_right};
use super::parts::PARTS;
use super::{Epilogue, STEP, depth};
use crate::amx::{PANEL, Product, TILE, Tiles};
use crate::isa::{Isa, Kernel};
use crate::simd::{Real, Simd, settle};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// The product of some rows of `A`, from the start of a tile on, with some columns of `B`, with numbers in `N` parts.
pub(super) struct Columns<'a, B, C, const N: usize> {
    pub isa: Isa,
    pub left: &'a Left<'a, N>,
    pub b: Right<'a, B>,
    /// The columns of `B`.
    pub n: usize,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// Room for a stretch of a panel as pairs, if they do not come packed.
    pub right: &'a mut [bf16],
    /// Room for two blocks of sums, or for all of them where `k` has more than one stretch.
    pub sums: Shared<'a, f32>,
    pub c: Shared<'a, C>,
    /// If `C` is streamed, its rows are whole cache lines.
    pub epilogue: Epilogue<'a>,
    /// Whether `C` is the transpose of this product.
    pub turned: bool,
}

/// Sums in a block.
pub(super) const SUMS: usize = TILE * PANEL;
/// Elements of rows, and of columns, that are fetched at each step for each part: two cache lines.
const FETCHED: usize = 2 * STEP;

impl<B: Real, C: Real, const N: usize> Kernel for Columns<'_, B, C, N> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let tiles = self.isa.amx().map(|amx| amx.tiles());
        let k = self.left.length;
        let room = std::mem::take(&mut self.right);
        for start in (0..k).step_by(depth(N)) {
            let size = N * PANEL * depth(N).min(k - start);
            for column in self.columns.clone().step_by(PANEL) {
                let right = match self.b {
                    Right::Packed(panels) => &panels[N * (column * k + start * PANEL)..][..size],
                    Right::Matrix(b) => {
                        pack_right::<_, _, N>(s, b, column, start, &mut room[..size]);
                        &room[..size]
                    }
                };
                self.multiply(s, tiles.as_ref(), right, column, start);
            }
        }
        if self.epilogue.streamed {
            settle();
        }
    }
}

impl<'a, B: Real, C: Real, const N: usize> Columns<'a, B, C, N> {
    /// A stretch of a panel with all rows of the task.
    #[inline(always)]
    fn multiply<S: Simd>(&self, s: S, tiles: Option<&Tiles>, right: &[bf16], column: usize, start: usize) {
        let depth = depth(N).min(self.left.length - start);
        let (first, last, steps) = (start == 0, start + depth == self.left.length, depth / STEP);
        assert_eq!(right.len(), N * depth * PANEL);
        let (next_columns, next_rows) = self.next(column, start);
        // A block is finished while the tiles are at work on the next: row by row between the steps, or all of it behind them.
        let in_steps = if last && tiles.is_some() { self.in_steps(column, steps) } else { None };
        let (mut before, mut square) = (None, Square::new());
        for (i, row) in self.rows.clone().step_by(TILE).enumerate() {
            // Safety: the places of blocks do not overlap, and belong to one task.
            let sums = unsafe { self.sums.slice(self.sums_of(row, column), SUMS) };
            let left = self.left.tile(row, start);
            let Tile { data, stride, step } = left;
            assert!(size_of_val(data) >= (N - 1) * TILE * 64 + (TILE - 1) * stride + (steps - 1) * step + 64);
            if let Some(tiles) = tiles {
                let (a, b) = (data.as_ptr(), right.as_ptr());
                // A share of what comes next, as large as the product is long.
                let share = |next: &[bf16], or: *const bf16| {
                    let rest = next.get(i * steps * N * FETCHED..).filter(|rest| !rest.is_empty());
                    rest.map_or(or, <[bf16]>::as_ptr).cast()
                };
                let product = Product {
                    a,
                    a_stride: stride,
                    a_step: step,
                    b,
                    steps,
                    c: sums.as_mut_ptr(),
                    first,
                    next_columns: share(next_columns, b),
                    next_rows: share(next_rows, a),
                };
                let complete = before.map(|row| {
                    (row, self.sums.at(self.sums_of(row, column)).cast_const(), self.first(row, column))
                });
                // Safety: `left` has sixteen rows, as just checked, `right` a panel of as many steps, `sums` is a whole block. One
                // that is complete is not the last of the panel, and so whole (see `in_steps`); nobody writes to its sums before
                // the block after this one.
                unsafe {
                    match (&in_steps, complete) {
                        (Some(InSteps::Plain(blocks)), Some((_, sums, c))) => {
                            let mut block = blocks.block(sums, c);
                            multiply::<N>(
                                tiles,
                                product,
                                #[inline(always)]
                                || block.step(s, tiles),
                            );
                        }
                        (Some(InSteps::Turned(blocks)), Some((_, sums, c))) => {
                            let mut block = blocks.block(sums, c);
                            multiply::<N>(
                                tiles,
                                product,
                                #[inline(always)]
                                || block.step(s, &mut square),
                            );
                        }
                        _ => {
                            if let Some((row, ..)) = complete {
                                self.fetch(tiles, row, column);
                            }
                            multiply::<N>(tiles, product, || {});
                        }
                    }
                }
            } else {
                assert!(N == 1, "numbers in parts are for tiles");
                let rows = TILE.min(self.left.m - row);
                // Safety: as above.
                unsafe { dot_rows(s, left, right.as_ptr().cast(), steps, rows, sums, first) }
            }
            if last
                && let Some(row) = before.replace(row)
                && in_steps.is_none()
            {
                self.finish(s, row, column);
            }
        }
        if let Some(row) = before {
            self.finish(s, row, column);
        }
    }

    /// What is needed after a stretch of a panel, if it is known and lies together: the columns of the next, and a share of the
    /// rows of the next stretch, of which each panel fetches some.
    #[inline(always)]
    fn next(&self, column: usize, start: usize) -> (&'a [bf16], &'a [bf16]) {
        let (left, k, after) = (self.left, self.left.length, start + depth(N));
        let rows = if after < k { left.tiles_of(&self.rows, after) } else { &[] };
        let share = self.rows.len().div_ceil(TILE) * (depth(N) / STEP) * N * FETCHED;
        let rows = rows.get((column - self.columns.start) / PANEL * share..).unwrap_or(&[]);
        let (column, start) = if column + PANEL < self.columns.end {
            (column + PANEL, start)
        } else {
            (self.columns.start, after)
        };
        let columns = match self.b {
            Right::Packed(panels) if start < k => {
                &panels[N * (column * k + start * PANEL)..][..N * depth(N).min(k - start) * PANEL]
            }
            _ => &[],
        };
        (columns, rows)
    }

    /// Where the sums of the block of `row` and `column` are: if there is one stretch of `k` only, in one of two places in turn.
    #[inline(always)]
    pub(super) fn sums_of(&self, row: usize, column: usize) -> usize {
        let (row, column) = ((row - self.rows.start) / TILE, (column - self.columns.start) / PANEL);
        if self.left.length > depth(N) {
            (column * self.rows.len().div_ceil(TILE) + row) * SUMS
        } else {
            row % 2 * SUMS
        }
    }
}

/// A product of tiles with numbers in `N` parts.
///
/// # Safety
/// As for [`Tiles::multiply_bf16`].
#[inline(always)]
unsafe fn multiply<const N: usize>(tiles: &Tiles, product: Product<bf16, f32>, between: impl FnMut()) {
    const { assert!(N == 1 || N == PARTS) };
    // Safety: the caller's promise.
    unsafe {
        if N == 1 { tiles.multiply_bf16(product, between) } else { tiles.multiply_parts(product, between) }
    }
}

/// The first `rows` rows of a block as dot products of pairs.
///
/// # Safety
/// `left` must be valid for sixteen rows and `right` for a panel, both of `steps` steps.
#[inline(always)]
unsafe fn dot_rows<S: Simd>(
    s: S,
    left: Tile,
    right: *const f32,
    steps: usize,
    rows: usize,
    sums: &mut [f32],
    first: bool,
) {
    let mut row = 0;
    while row < rows {
        let mut done = 0;
        for column in (0..PANEL).step_by(2 * S::LANES) {
            // Safety: rows inside the tile, columns inside the panel.
            done = unsafe {
                let left = Tile { data: &left.data[row * left.stride / size_of::<bf16>()..], ..left };
                let sums = &mut sums[row * PANEL + column..];
                match (rows - row).min(S::TILE_ROWS) {
                    1 => dot::<S, 1>(s, left, right, steps, column, sums, first),
                    2 | 3 => dot::<S, 2>(s, left, right, steps, column, sums, first),
                    4..=7 => dot::<S, 4>(s, left, right, steps, column, sums, first),
                    _ => dot::<S, 8>(s, left, right, steps, column, sums, first),
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
    left: Tile,
    right: *const f32,
    steps: usize,
    column: usize,
    sums: &mut [f32],
    first: bool,
) -> usize {
    assert!(sums.len() >= (ROWS - 1) * PANEL + 2 * S::LANES);
    let c = sums.as_mut_ptr();
    let mut totals = [[s.splat(0.0); 2]; ROWS];
    if !first {
        for row in 0..ROWS {
            for v in 0..2 {
                // Safety: inside `sums`, as just checked.
                totals[row][v] = unsafe { s.load(c.add(row * PANEL + v * S::LANES)) };
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
                    let pair = left
                        .data
                        .as_ptr()
                        .byte_add(row * left.stride + step * left.step)
                        .cast::<u32>()
                        .add(p)
                        .read();
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
            unsafe { s.store(c.add(row * PANEL + v * S::LANES), totals[row][v]) }
        }
    }
    ROWS
}
