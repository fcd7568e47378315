//! Blocks of sums, of 16 or 32 rows and the columns of a panel: on the tile unit, or as dot products of pairs on vectors.

use super::finish::{InSteps, Square};
use super::pack::{Left, Right, pack_right};
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
    /// Elements of `k`, in whole stretches, that a panel goes through before the next: the rows stay in the second cache so long.
    pub reach: usize,
    /// Room for so much of the rows as tiles, if they do not come as such.
    pub copy: &'a mut [bf16],
    /// Room for a stretch of a panel as pairs, if it does not come packed.
    pub right: &'a mut [bf16],
    /// Room for two blocks of sums; where `k` has more than one stretch, for those of a panel; where it is out of reach, for all.
    pub sums: Shared<'a, f32>,
    pub c: Shared<'a, C>,
    /// If `C` is streamed, its rows are whole cache lines.
    pub epilogue: Epilogue<'a>,
    /// Whether `C` is the transpose of this product.
    pub turned: bool,
}

/// Sums of a tile of rows in a panel.
pub(super) const SUMS: usize = TILE * PANEL;
/// Rows that the tile unit takes at a time, if there are two tiles of them left.
pub(super) const TALL: usize = 2 * TILE;
/// Elements of a tile.
const IN_TILE: usize = TILE * STEP;
/// Bytes of a row of it: a cache line.
const LINE: usize = STEP * size_of::<bf16>();
/// Elements of columns that are fetched at each step of a tile of rows, for each part: two cache lines.
const FETCHED: usize = 2 * STEP;

/// A stretch of `k`, and of a panel in it.
#[derive(Clone, Copy)]
struct Stretch<'a> {
    start: usize,
    /// The rows of the task: `[tile of rows][step][part][16 rows][32 elements]`.
    rows: &'a [bf16],
    /// The first column of the panel, and the panel: `[step][2][part][16 pairs][16 columns]`.
    column: usize,
    panel: &'a [bf16],
}

impl<B: Real, C: Real, const N: usize> Kernel for Columns<'_, B, C, N> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let tiles = self.isa.amx().map(|amx| amx.tiles());
        let (k, left) = (self.left.length, self.left);
        let (copy, room) = (std::mem::take(&mut self.copy), std::mem::take(&mut self.right));
        // Two tiles of rows at a time, as long as there are two.
        let padded = self.rows.len().next_multiple_of(TILE);
        let rest = self.rows.start + if N == 1 && tiles.is_some() { padded / TALL * TALL } else { 0 };
        for begin in (0..k).step_by(self.reach) {
            let end = k.min(begin + self.reach);
            left.copy(s, &self.rows, begin..end, copy);
            for column in self.columns.clone().step_by(PANEL) {
                for start in (begin..end).step_by(depth(N)) {
                    let size = N * PANEL * depth(N).min(k - start);
                    let panel = match self.b {
                        Right::Packed(panels) => &panels[N * (column * k + start * PANEL)..][..size],
                        Right::Matrix(b) => {
                            pack_right::<_, _, N>(s, b, column, start, &mut room[..size]);
                            &room[..size]
                        }
                    };
                    let rows = left.stretch(&self.rows, start, begin, copy);
                    let stretch = Stretch { start, rows, column, panel };
                    self.multiply::<S, TALL>(s, tiles.as_ref(), stretch, self.rows.start..rest);
                    self.multiply::<S, TILE>(s, tiles.as_ref(), stretch, rest..self.rows.end);
                }
            }
        }
        if self.epilogue.streamed {
            settle();
        }
    }
}

impl<'a, B: Real, C: Real, const N: usize> Columns<'a, B, C, N> {
    /// A stretch of a panel with some rows of the task, in blocks of `H`.
    #[inline(always)]
    fn multiply<S: Simd, const H: usize>(
        &self,
        s: S,
        tiles: Option<&Tiles>,
        stretch: Stretch,
        rows: Range<usize>,
    ) {
        let Stretch { start, column, panel, .. } = stretch;
        let depth = depth(N).min(self.left.length - start);
        let (first, last, steps) = (start == 0, start + depth == self.left.length, depth / STEP);
        assert!(panel.len() == N * depth * PANEL);
        let next = self.next(column, start);
        // A block is finished while the tiles are at work on the next: row by row between the steps, or all of it behind them.
        let in_steps = if last && tiles.is_some() { self.in_steps::<H>(column, steps) } else { None };
        let (mut before, mut square) = (None, Square::new());
        for row in rows.step_by(H) {
            let sums = self.sums_of::<H>(row, column);
            let tile = (row - self.rows.start) / TILE;
            let left = &stretch.rows[tile * steps * N * IN_TILE..][..H / TILE * steps * N * IN_TILE];
            if let Some(tiles) = tiles {
                // A share of the columns that come next, as large as the product is long.
                let next = next.get(tile * steps * N * FETCHED..).filter(|rest| !rest.is_empty());
                let product = Product {
                    a: left.as_ptr(),
                    a_stride: LINE,
                    a_step: N * TILE * LINE,
                    b: panel.as_ptr(),
                    steps,
                    c: sums,
                    first,
                    next_columns: next.unwrap_or(panel).as_ptr().cast(),
                };
                let complete =
                    before.map(|row| (self.sums_of::<H>(row, column), self.first::<H>(row, column)));
                let run = Run {
                    tiles,
                    second: left[(H / TILE - 1) * steps * N * IN_TILE..].as_ptr(),
                    before: complete.map(|(sums, _)| sums),
                };
                // Safety: `left` has tiles of so many steps, as just checked, and `panel` too, `sums` is a whole block, and the places
                // of blocks do not overlap and belong to one task. A block that is complete is not the last of its panel, and so
                // whole (see `in_steps`); nobody writes to its sums before the block after this one. It is that of the product before, and
                // nothing has touched the tiles since.
                unsafe {
                    match (&in_steps, complete) {
                        (Some(InSteps::Plain(blocks)), Some((sums, c))) => {
                            let mut block = blocks.block(sums, c);
                            run.multiply::<N, H>(
                                product,
                                #[inline(always)]
                                || block.step(s, tiles),
                            );
                        }
                        (Some(InSteps::Turned(blocks)), Some((sums, c))) => {
                            let mut block = blocks.block(sums, c);
                            run.multiply::<N, H>(
                                product,
                                #[inline(always)]
                                || block.step(s, &mut square),
                            );
                        }
                        _ => {
                            if let Some(row) = before.filter(|_| last) {
                                self.fetch::<H>(tiles, row, column);
                            }
                            run.multiply::<N, H>(product, || {});
                        }
                    }
                }
            } else {
                assert!(N == 1 && H == TILE, "numbers in parts and tall blocks are for tiles");
                let rows = TILE.min(self.left.m - row);
                // Safety: as above; sums are this task's alone.
                unsafe {
                    let sums = std::slice::from_raw_parts_mut(sums, SUMS);
                    dot_rows(s, left, panel.as_ptr().cast(), steps, rows, sums, first);
                }
            }
            if let Some(row) = before.replace(row)
                && last
                && in_steps.is_none()
            {
                self.finish::<S, H>(s, row, column);
            }
        }
        let Some(row) = before else { return };
        if let Some(tiles) = tiles
            && H == TALL
        {
            // Safety: the block of the last product.
            unsafe { tiles.store_tall(self.sums_of::<H>(row, column)) }
        }
        if last {
            self.finish::<S, H>(s, row, column);
        }
    }

    /// The columns that are needed after a stretch of a panel, if they come packed.
    #[inline(always)]
    fn next(&self, column: usize, start: usize) -> &'a [bf16] {
        let (k, begin) = (self.left.length, start - start % self.reach);
        let (after, end) = (start + depth(N), begin + self.reach);
        let (column, start) = if after < k.min(end) {
            (column, after)
        } else if column + PANEL < self.columns.end {
            (column + PANEL, begin)
        } else {
            (self.columns.start, end)
        };
        match self.b {
            Right::Packed(panels) if start < k => {
                &panels[N * (column * k + start * PANEL)..][..N * depth(N).min(k - start) * PANEL]
            }
            _ => &[],
        }
    }

    /// Where the sums of the block of `row` and `column` are, which has `H` rows. If there is one stretch of `k` only, they take two
    /// places in turn; if the panel goes through all of `k`, they lie at the start.
    #[inline(always)]
    pub(super) fn sums_of<const H: usize>(&self, row: usize, column: usize) -> *mut f32 {
        let (row, panel) = (row - self.rows.start, (column - self.columns.start) / PANEL);
        let at = match self.left.length {
            k if k <= depth(N) => row / H % 2 * H * PANEL,
            k if k <= self.reach => row * PANEL,
            _ => (panel * self.rows.len().next_multiple_of(TILE) + row) * PANEL,
        };
        assert!(at + H * PANEL <= self.sums.len());
        self.sums.at(at)
    }
}

/// What a product of tiles is run with, beside its operands.
struct Run<'a> {
    tiles: &'a Tiles,
    /// The second tile of rows, if there are two.
    second: *const bf16,
    /// Where the sums of the product before it go to, if there was one.
    before: Option<*mut f32>,
}

impl Run<'_> {
    /// The product with `H` rows and numbers in `N` parts.
    ///
    /// # Safety
    /// As for [`Tiles::multiply_bf16`], or with two tiles of rows for [`Tiles::multiply_tall`].
    #[inline(always)]
    unsafe fn multiply<const N: usize, const H: usize>(
        &self,
        product: Product<bf16, f32>,
        between: impl FnMut(),
    ) {
        // Safety: the caller's promise.
        unsafe {
            match (H, N) {
                (TILE, 1) => self.tiles.multiply_bf16(product, between),
                (TILE, PARTS) => self.tiles.multiply_parts(product, between),
                (TALL, 1) => self.tiles.multiply_tall(product, self.second, self.before, between),
                _ => unreachable!("{H} rows with numbers in {N} parts"),
            }
        }
    }
}

/// The first `rows` rows of a block as dot products of pairs.
///
/// # Safety
/// `right` must be valid for a panel of `steps` steps.
#[inline(always)]
unsafe fn dot_rows<S: Simd>(
    s: S,
    left: &[bf16],
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
                let left = &left[row * STEP..];
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
    left: &[bf16],
    right: *const f32,
    steps: usize,
    column: usize,
    sums: &mut [f32],
    first: bool,
) -> usize {
    assert!(sums.len() >= (ROWS - 1) * PANEL + 2 * S::LANES);
    assert!(left.len() >= (steps - 1) * IN_TILE + ROWS * STEP);
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
                    let pair = left.as_ptr().add(step * IN_TILE + row * STEP).cast::<u32>().add(p).read();
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
