//! Blocks of sums, of 16 rows and the columns of a panel, which stays in the first cache while rows stream past it: on the tile
//! unit, or as dot products of pairs on vectors.

use super::finish::{Finish, InSteps, Squares};
use super::pack::{Left, PackPanel, Right, Tile};
use super::parts::PARTS;
use super::{DEPTH, Epilogue, STEP};
use crate::amx::{PANEL, Product, TILE, Tiles, sum_at};
use crate::isa::{Isa, Kernel};
use crate::simd::{Real, Simd, settle};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// The product of some rows of `A`, from the start of a tile on, with some columns of `B`, with numbers in `N` parts.
pub(super) struct Columns<'a, C, const N: usize> {
    pub isa: Isa,
    pub left: &'a Left<'a, N>,
    pub b: Right<'a>,
    /// The columns of `B`.
    pub n: usize,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// The first row and the first column of what this thread presumably has next.
    pub next_task: Option<[usize; 2]>,
    /// Room for a stretch of columns as pairs, if they do not come packed: of one panel, or where rows stay of all.
    pub right: &'a mut [bf16],
    /// Room for a stretch of 32 rows, where they stay and are longer.
    pub copied: &'a mut [bf16],
    /// Room for two blocks of sums, or where `k` has more than one stretch for all that wait for the next.
    pub sums: Shared<'a, f32>,
    pub c: Shared<'a, C>,
    /// If `C` is streamed, its rows are whole cache lines.
    pub epilogue: Epilogue<'a>,
    /// Whether `C` is the transpose of this product.
    pub turned: bool,
}

/// Sums in a block of one tile of rows.
pub(super) const SUMS: usize = TILE * PANEL;
/// Elements of rows, and of columns, that are fetched at each step for each part: two cache lines.
const FETCHED: usize = 2 * STEP;

impl<C: Real, const N: usize> Kernel for Columns<'_, C, N> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let tiles = self.isa.tiles::<S>();
        if const { N > 1 } {
            assert!(S::BESIDE_TILES && tiles.is_some(), "numbers in parts are for tiles");
        }
        // Conditions that are constants come first, here and below: what they rule out is not even compiled.
        if S::BESIDE_TILES
            && const { N == 1 }
            && self.left.stay
            && let Some(tiles) = &tiles
        {
            self.rows_stay(s, tiles);
        } else {
            self.columns_stay(s, tiles.as_ref());
        }
        if self.epilogue.streamed {
            settle();
        }
    }
}

impl<C: Real, const N: usize> Columns<'_, C, N> {
    /// Panel by panel, each with all rows.
    #[inline(always)]
    fn columns_stay<S: Simd>(&mut self, s: S, tiles: Option<&Tiles>) {
        let (k, deep) = (self.left.length, self.left.deep());
        let room = std::mem::take(&mut self.right);
        for begin in (0..k).step_by(deep) {
            for column in self.columns.clone().step_by(PANEL) {
                for start in (begin..k.min(begin + deep)).step_by(DEPTH) {
                    let size = N * PANEL * DEPTH.min(k - start);
                    let panel = match self.b {
                        Right::Packed(panels) => &panels[N * (column * k + start * PANEL)..][..size],
                        Right::F32(b) => {
                            let to = &mut room[..size];
                            s.call(PackPanel::<_, N> { b, column, start, to });
                            &room[..size]
                        }
                        Right::Bf16(b) => {
                            let to = &mut room[..size];
                            s.call(PackPanel::<_, N> { b, column, start, to });
                            &room[..size]
                        }
                    };
                    let (columns, rows) = (&*self, self.rows.clone());
                    s.call(Panel { columns, tiles, rows, panel, column, start });
                }
            }
        }
    }

    /// A stretch of a panel with some rows of the task.
    #[inline(always)]
    fn multiply<S: Simd>(
        &self,
        s: S,
        tiles: Option<&Tiles>,
        rows: Range<usize>,
        panel: &[bf16],
        column: usize,
        start: usize,
    ) {
        let depth = self.left.depth(start);
        let (first, last, steps) = (start == 0, start + depth == self.left.length, depth / STEP);
        assert!(panel.len() == N * depth * PANEL);
        let (next_columns, next_rows) = self.next_panel(column, start);
        // A block is finished while the tiles are at work on the next: row by row between the steps, or all of it behind them.
        let in_steps = if last && tiles.is_some() { self.in_steps::<TILE>(steps) } else { None };
        let (mut before, mut squares) = (None, Squares::new());
        for (i, row) in rows.step_by(TILE).enumerate() {
            let sums = self.sums_of::<TILE>(row, column);
            let left = self.left.tile(row, start);
            let Tile { data, stride, step } = left;
            assert!(size_of_val(data) >= (N - 1) * TILE * 64 + (TILE - 1) * stride + (steps - 1) * step + 64);
            let finish = in_steps
                .as_ref()
                .zip(before)
                .and_then(|(in_steps, row)| Some((in_steps, self.whole::<TILE>(row, column)?)));
            if S::BESIDE_TILES
                && let Some(tiles) = tiles
            {
                let (a, b) = (data.as_ptr(), panel.as_ptr());
                // A share of what comes next, as large as the product is long, or the product's own again if there is none.
                let rest = |next: &[bf16], own| match next.get(i * steps * N * FETCHED..) {
                    Some(rest) if !rest.is_empty() => rest.as_ptr().cast(),
                    _ => own,
                };
                let product = Product {
                    a,
                    a_stride: stride,
                    a_step: step,
                    b,
                    steps,
                    c: sums,
                    first,
                    next_columns: rest(next_columns, b.cast()),
                    next_rows: rest(next_rows, a.cast()),
                };
                // Safety: `left` has sixteen rows, as just checked, `panel` as many steps, `sums` is a whole block, and the
                // places of blocks do not overlap and belong to one task. Nobody writes to the sums of a complete block before the
                // block after this one.
                unsafe {
                    match finish {
                        Some((InSteps::Plain(blocks), whole)) => {
                            let (mut block, bias) = (blocks.block(whole), whole.bias(s));
                            run::<N>(
                                tiles,
                                product,
                                #[inline(always)]
                                || block.step(s, tiles, &bias),
                            );
                        }
                        Some((InSteps::Turned(blocks), whole)) => {
                            let mut block = blocks.block(whole);
                            run::<N>(
                                tiles,
                                product,
                                #[inline(always)]
                                || block.step(s, &mut squares),
                            );
                        }
                        None => {
                            if let Some(row) = before.filter(|_| last) {
                                self.fetch(tiles, row, column);
                            }
                            run::<N>(tiles, product, || {});
                        }
                    }
                }
            } else {
                let rows = TILE.min(self.left.m - row);
                // Safety: as above; sums are this task's alone.
                unsafe {
                    let sums = std::slice::from_raw_parts_mut(sums, SUMS);
                    dot_rows(s, left, panel.as_ptr().cast(), steps, rows, sums, first);
                }
            }
            if let Some(row) = before.replace(row)
                && last
                && finish.is_none()
            {
                s.call(Finish::<C, N, TILE> { columns: self, row, column });
            }
        }
        if let Some(row) = before
            && last
        {
            s.call(Finish::<C, N, TILE> { columns: self, row, column });
        }
    }

    /// What is needed after a stretch of a panel, if it comes packed: the next one, and, if they lie together, a share of the rows of
    /// the next stretch, of which each panel fetches some.
    #[inline(always)]
    fn next_panel(&self, column: usize, start: usize) -> (&[bf16], &[bf16]) {
        let (left, k, after) = (self.left, self.left.length, start + DEPTH);
        if left.stay {
            return (&[], &[]);
        }
        let again = start - start % left.deep();
        let (next_column, next_start) = if after < k.min(again + left.deep()) {
            (column, after)
        } else if column + PANEL < self.columns.end {
            (column + PANEL, again)
        } else {
            (self.columns.start, after)
        };
        let rows = if after < k { left.tiles_of(&self.rows, after) } else { &[] };
        let share = self.rows.len().div_ceil(TILE) * (DEPTH / STEP) * N * FETCHED;
        let rows = rows.get((column - self.columns.start) / PANEL * share..).unwrap_or(&[]);
        let columns = match self.b {
            Right::Packed(panels) if next_start < k => {
                let at = |element| N * (next_column * k + element * PANEL);
                &panels[at(next_start)..at(k.min(next_start + DEPTH))]
            }
            _ => &[],
        };
        (columns, rows)
    }

    /// Where the sums of the block of `row` and `column` are, which has `R` rows. If there is one stretch of `k` only, blocks take
    /// two places in turn; if they go through all stretches before those of other columns begin, they lie at the start.
    #[inline(always)]
    pub(super) fn sums_of<const R: usize>(&self, row: usize, column: usize) -> *mut f32 {
        let (tile, panel) = ((row - self.rows.start) / TILE, (column - self.columns.start) / PANEL);
        let (left, panels) = (self.left, self.columns.len().div_ceil(PANEL));
        let at = if left.length <= left.depth(0) {
            // Blocks of two tiles follow one another along a row, the others down a panel.
            let block = if R > TILE { tile / 2 * panels + panel } else { tile };
            block % 2 * R * PANEL
        } else if left.length <= left.deep() {
            tile * SUMS
        } else {
            tile * panels * SUMS + panel * R * PANEL
        };
        assert!(at + R * PANEL <= self.sums.len());
        self.sums.at(at)
    }
}

/// A stretch of a panel with some rows of a task, as a function of its own.
pub(super) struct Panel<'a, 'c, C, const N: usize> {
    pub columns: &'a Columns<'c, C, N>,
    pub tiles: Option<&'a Tiles>,
    pub rows: Range<usize>,
    pub panel: &'a [bf16],
    pub column: usize,
    pub start: usize,
}

impl<C: Real, const N: usize> Kernel for Panel<'_, '_, C, N> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.columns.multiply(s, self.tiles, self.rows, self.panel, self.column, self.start);
    }
}

/// The product of tiles with numbers in `N` parts.
///
/// # Safety
/// As for [`Tiles::multiply_bf16`].
#[inline(always)]
unsafe fn run<const N: usize>(tiles: &Tiles, product: Product<bf16, f32>, between: impl FnMut()) {
    // Safety: the caller's promise.
    unsafe {
        match N {
            1 => tiles.multiply_bf16(product, between),
            PARTS => tiles.multiply_parts(product, between),
            _ => unreachable!("numbers in {N} parts"),
        }
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
                let place = [row, column];
                match (rows - row).min(S::TILE_ROWS) {
                    1 => dot::<S, 1>(s, left, right, steps, place, sums, first),
                    2 | 3 => dot::<S, 2>(s, left, right, steps, place, sums, first),
                    4..=7 => dot::<S, 4>(s, left, right, steps, place, sums, first),
                    _ => dot::<S, 8>(s, left, right, steps, place, sums, first),
                }
            };
        }
        row += done;
    }
}

/// `ROWS` rows, which come from `first_row` on in the block, by two vectors of columns from `column` on; returns `ROWS`.
///
/// # Safety
/// As for [`dot_rows`].
#[inline(always)]
unsafe fn dot<S: Simd, const ROWS: usize>(
    s: S,
    left: Tile,
    right: *const f32,
    steps: usize,
    [first_row, column]: [usize; 2],
    sums: &mut [f32],
    first: bool,
) -> usize {
    assert!(sums.len() == SUMS && first_row + ROWS <= TILE && column + 2 * S::LANES <= PANEL);
    let c = sums.as_mut_ptr();
    let at = |row, v| sum_at::<TILE>(first_row + row, column + v * S::LANES);
    let mut totals = [[s.splat(0.0); 2]; ROWS];
    if !first {
        for row in 0..ROWS {
            for v in 0..2 {
                // Safety: inside `sums`, as just checked.
                totals[row][v] = unsafe { s.load(c.add(at(row, v))) };
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
            unsafe { s.store(c.add(at(row, v)), totals[row][v]) }
        }
    }
    ROWS
}
