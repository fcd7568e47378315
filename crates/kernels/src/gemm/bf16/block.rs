//! Blocks of 16 rows and the columns of a panel, which stays in the L1 cache while rows stream past it: on the tile unit, or as dot
//! products of pairs on vectors.

use super::finish::{BetweenSteps, Finish, Squares};
use super::pack::{Left, PackPanel, Right, Tile};
use super::parts::PARTS;
use super::{DEPTH_COLUMNS_STAY, Epilogue, STEP};
use crate::amx::{PANEL, Product, TILE, Tiles, sum_at};
use crate::isa::{Isa, Kernel};
use crate::simd::{Real, Simd, store_fence};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// A task: the product of some rows of `A`, beginning with a tile, and some columns of `B`. Numbers are in `N` parts.
pub(super) struct Task<'a, C, const N: usize> {
    pub isa: Isa,
    pub left: &'a Left<'a, N>,
    pub b: Right<'a>,
    /// How many columns `B` has.
    pub n: usize,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// The first row and the first column of the task that this thread presumably has next.
    pub next_task: Option<[usize; 2]>,
    /// Memory for packing a stretch of columns, if they do not come packed: of all panels if rows stay, else of one.
    pub right: &'a mut [bf16],
    /// Memory for copying a stretch of 32 long rows, if rows stay.
    pub copied: &'a mut [bf16],
    /// Memory for sums: two blocks, or all blocks that wait for the next stretch of `k`.
    pub sums: Shared<'a, f32>,
    pub c: Shared<'a, C>,
    /// If `C` is written past the caches, its rows are whole cache lines.
    pub epilogue: Epilogue<'a>,
    /// Whether `C` is the transpose of this product.
    pub transposed_result: bool,
}

/// Sums in a block of one tile of rows.
pub(super) const SUMS: usize = TILE * PANEL;
/// Elements of rows, and of columns, that each step prefetches for each part: two cache lines.
const PREFETCHED: usize = 2 * STEP;

impl<C: Real, const N: usize> Kernel for Task<'_, C, N> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let tiles = self.isa.tiles::<S>();
        if const { N > 1 } {
            assert!(S::BESIDE_TILES && tiles.is_some(), "numbers in parts are for tiles");
        }
        // Constant conditions come first, here and below: the compiler drops the branches that they rule out.
        if S::BESIDE_TILES
            && const { N == 1 }
            && self.left.rows_stay
            && let Some(tiles) = &tiles
        {
            self.rows_stay(s, tiles);
        } else {
            self.columns_stay(s, tiles.as_ref());
        }
        if self.epilogue.streamed {
            store_fence();
        }
    }
}

impl<C: Real, const N: usize> Task<'_, C, N> {
    /// All rows with all columns, panel after panel.
    #[inline(always)]
    fn columns_stay<S: Simd>(&mut self, s: S, tiles: Option<&Tiles>) {
        let (k, depth_of_one_pass) = (self.left.length, self.left.depth_of_one_pass());
        let room = std::mem::take(&mut self.right);
        for begin in (0..k).step_by(depth_of_one_pass) {
            for column in self.columns.clone().step_by(PANEL) {
                for start in (begin..k.min(begin + depth_of_one_pass)).step_by(DEPTH_COLUMNS_STAY) {
                    let size = N * PANEL * DEPTH_COLUMNS_STAY.min(k - start);
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
                    let (task, rows) = (&*self, self.rows.clone());
                    s.call(RowsTimesPanel { task, tiles, rows, panel, column, start });
                }
            }
        }
    }

    /// Some rows of the task with a stretch of a panel.
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
        let (from_zero, last, steps) = (start == 0, start + depth == self.left.length, depth / STEP);
        assert!(panel.len() == N * depth * PANEL);
        let (next_columns, next_rows) = self.next_panel(column, start);
        // A block is finished while the tiles work on the next one: row by row between its steps, or in one go behind them.
        let between_steps = if last && tiles.is_some() { self.between_steps::<TILE>(steps) } else { None };
        let (mut before, mut squares) = (None, Squares::new());
        for (i, row) in rows.step_by(TILE).enumerate() {
            let sums = self.sums_of::<TILE>(row, column);
            let left = self.left.tile(row, start);
            let Tile { data, stride, step } = left;
            assert!(size_of_val(data) >= (N - 1) * TILE * 64 + (TILE - 1) * stride + (steps - 1) * step + 64);
            let finish = between_steps
                .as_ref()
                .zip(before)
                .and_then(|(between_steps, row)| Some((between_steps, self.whole::<TILE>(row, column)?)));
            if S::BESIDE_TILES
                && let Some(tiles) = tiles
            {
                let (a, b) = (data.as_ptr(), panel.as_ptr());
                // Each block prefetches its share of what comes next. If nothing is left, it prefetches its own operands again.
                let rest = |next: &[bf16], own| match next.get(i * steps * N * PREFETCHED..) {
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
                    from_zero,
                    next_columns: rest(next_columns, b.cast()),
                    next_rows: rest(next_rows, a.cast()),
                };
                // Safety: `left` has sixteen rows, as just checked, `panel` has as many steps, and `sums` is a whole block. Blocks of
                // `C` do not overlap and belong to one task. The sums of a complete block are not written before the block after
                // this one begins.
                unsafe {
                    match finish {
                        Some((BetweenSteps::Plain(blocks), whole)) => {
                            let (mut block, bias) = (blocks.block(whole), whole.bias(s));
                            multiply_tiles::<N>(
                                tiles,
                                product,
                                #[inline(always)]
                                || block.step(s, tiles, &bias),
                            );
                        }
                        Some((BetweenSteps::Transposed(blocks), whole)) => {
                            let mut block = blocks.block(whole);
                            multiply_tiles::<N>(
                                tiles,
                                product,
                                #[inline(always)]
                                || block.step(s, &mut squares),
                            );
                        }
                        None => {
                            if let Some(row) = before.filter(|_| last) {
                                self.prefetch_result(tiles, row, column);
                            }
                            multiply_tiles::<N>(tiles, product, || {});
                        }
                    }
                }
            } else {
                let rows = TILE.min(self.left.m - row);
                // Safety: as above; sums are this task's alone.
                unsafe {
                    let sums = std::slice::from_raw_parts_mut(sums, SUMS);
                    dot_rows(s, left, panel.as_ptr().cast(), steps, rows, sums, from_zero);
                }
            }
            if let Some(row) = before.replace(row)
                && last
                && finish.is_none()
            {
                s.call(Finish::<C, N, TILE> { task: self, row, column });
            }
        }
        if let Some(row) = before
            && last
        {
            s.call(Finish::<C, N, TILE> { task: self, row, column });
        }
    }

    /// What to prefetch during a stretch of a panel: the next stretch of columns, if they come packed, and a share of the rows of the
    /// next stretch, if they are contiguous.
    #[inline(always)]
    fn next_panel(&self, column: usize, start: usize) -> (&[bf16], &[bf16]) {
        let (left, k, after) = (self.left, self.left.length, start + DEPTH_COLUMNS_STAY);
        if left.rows_stay {
            return (&[], &[]);
        }
        let again = start - start % left.depth_of_one_pass();
        let (next_column, next_start) = if after < k.min(again + left.depth_of_one_pass()) {
            (column, after)
        } else if column + PANEL < self.columns.end {
            (column + PANEL, again)
        } else {
            (self.columns.start, after)
        };
        let rows = if after < k { left.tiles_of(&self.rows, after) } else { &[] };
        let share = self.rows.len().div_ceil(TILE) * (DEPTH_COLUMNS_STAY / STEP) * N * PREFETCHED;
        let rows = rows.get((column - self.columns.start) / PANEL * share..).unwrap_or(&[]);
        let columns = match self.b {
            Right::Packed(panels) if next_start < k => {
                let at = |element| N * (next_column * k + element * PANEL);
                &panels[at(next_start)..at(k.min(next_start + DEPTH_COLUMNS_STAY))]
            }
            _ => &[],
        };
        (columns, rows)
    }

    /// Where the sums of the block of `R` rows at `row` and `column` are. If `k` is a single stretch, blocks alternate between two
    /// places. If a panel goes through all stretches before the next panel begins, the sums of one panel are enough.
    #[inline(always)]
    pub(super) fn sums_of<const R: usize>(&self, row: usize, column: usize) -> *mut f32 {
        let (tile, panel) = ((row - self.rows.start) / TILE, (column - self.columns.start) / PANEL);
        let (left, panels) = (self.left, self.columns.len().div_ceil(PANEL));
        let at = if left.length <= left.depth(0) {
            // Blocks of two tiles of rows follow one another along a row of `C`, the others down a panel.
            let block = if R > TILE { tile / 2 * panels + panel } else { tile };
            block % 2 * R * PANEL
        } else if left.length <= left.depth_of_one_pass() {
            tile * SUMS
        } else {
            tile * panels * SUMS + panel * R * PANEL
        };
        assert!(at + R * PANEL <= self.sums.len());
        self.sums.at(at)
    }
}

/// Some rows of a task with a stretch of a panel, as a function that is called and not inlined.
pub(super) struct RowsTimesPanel<'a, 'c, C, const N: usize> {
    pub task: &'a Task<'c, C, N>,
    pub tiles: Option<&'a Tiles>,
    pub rows: Range<usize>,
    pub panel: &'a [bf16],
    pub column: usize,
    pub start: usize,
}

impl<C: Real, const N: usize> Kernel for RowsTimesPanel<'_, '_, C, N> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.task.multiply(s, self.tiles, self.rows, self.panel, self.column, self.start);
    }
}

/// A product of tiles with numbers in `N` parts.
///
/// # Safety
/// As for [`Tiles::multiply_bf16`].
#[inline(always)]
unsafe fn multiply_tiles<const N: usize>(tiles: &Tiles, product: Product<bf16, f32>, between: impl FnMut()) {
    // Safety: the caller's promise.
    unsafe {
        match N {
            1 => tiles.multiply_bf16(product, between),
            PARTS => tiles.multiply_parts(product, between),
            _ => unreachable!("numbers in {N} parts"),
        }
    }
}

/// The first `rows` rows of a block as dot products of pairs, added to `sums` or, with `from_zero`, stored there.
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
    from_zero: bool,
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
                    1 => dot::<S, 1>(s, left, right, steps, place, sums, from_zero),
                    2 | 3 => dot::<S, 2>(s, left, right, steps, place, sums, from_zero),
                    4..=7 => dot::<S, 4>(s, left, right, steps, place, sums, from_zero),
                    _ => dot::<S, 8>(s, left, right, steps, place, sums, from_zero),
                }
            };
        }
        row += done;
    }
}

/// `ROWS` rows from `first_row` on with two vectors of columns from `column` on. Returns `ROWS`.
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
    from_zero: bool,
) -> usize {
    assert!(sums.len() == SUMS && first_row + ROWS <= TILE && column + 2 * S::LANES <= PANEL);
    let c = sums.as_mut_ptr();
    let at = |row, v| sum_at::<TILE>(first_row + row, column + v * S::LANES);
    let mut totals = [[s.splat(0.0); 2]; ROWS];
    if !from_zero {
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
