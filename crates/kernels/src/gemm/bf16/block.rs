//! Blocks of sums, of 16 rows and the columns of a panel or of two: on the tile unit, or as dot products of pairs on vectors.

use super::finish::{InSteps, Square};
use super::pack::{Left, Right, Tile, pack_right};
use super::parts::PARTS;
use super::{DEPTH, Epilogue, Matrix, STEP};
use crate::amx::{PANEL, Product, TILE, Tiles, Wide, sum_at};
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
    /// Room for a stretch of two panels as pairs, if they do not come packed.
    pub right: &'a mut [bf16],
    /// Room for two blocks of sums, or where `k` has more than one stretch for all that wait for the next.
    pub sums: Shared<'a, f32>,
    pub c: Shared<'a, C>,
    /// If `C` is streamed, its rows are whole cache lines.
    pub epilogue: Epilogue<'a>,
    /// Whether `C` is the transpose of this product.
    pub turned: bool,
}

/// Sums in a block of one panel.
pub(super) const SUMS: usize = TILE * PANEL;
/// Panels that the tile unit takes at a time, if there are as many left.
pub(super) const PAIR: usize = 2;
/// Their columns.
const WIDE: usize = PAIR * PANEL;
/// Elements of rows, and of columns, that are fetched at each step for each part: two cache lines.
const FETCHED: usize = 2 * STEP;

impl<B: Real, C: Real, const N: usize> Kernel for Columns<'_, B, C, N> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let tiles = self.isa.tiles::<S>();
        let k = self.left.length;
        let room = std::mem::take(&mut self.right);
        for begin in (0..k).step_by(self.left.deep()) {
            let mut column = self.columns.start;
            while column < self.columns.end {
                let wide = N == 1 && tiles.is_some() && column + PANEL < self.columns.end;
                let count = if wide { PAIR } else { 1 };
                for start in (begin..k.min(begin + self.left.deep())).step_by(DEPTH) {
                    let size = N * PANEL * DEPTH.min(k - start);
                    let (data, apart) = match self.b {
                        Right::Packed(panels) => (&panels[N * (column * k + start * PANEL)..], N * PANEL * k),
                        Right::Matrix(b) => {
                            for panel in 0..count {
                                let to = &mut room[panel * size..][..size];
                                pack_right::<_, _, N>(s, b, column + panel * PANEL, start, to);
                            }
                            (&room[..], size)
                        }
                    };
                    let right = Panels { data: &data[..(count - 1) * apart + size], apart };
                    if wide {
                        self.multiply::<S, WIDE>(s, tiles.as_ref(), right, column, start);
                    } else {
                        self.multiply::<S, PANEL>(s, tiles.as_ref(), right, column, start);
                    }
                }
                column += count * PANEL;
            }
        }
        if self.epilogue.streamed {
            settle();
        }
    }
}

impl<'a, B: Real, C: Real, const N: usize> Columns<'a, B, C, N> {
    /// A stretch of the panels of `W` columns with all rows of the task.
    #[inline(always)]
    fn multiply<S: Simd, const W: usize>(
        &self,
        s: S,
        tiles: Option<&Tiles>,
        right: Panels,
        column: usize,
        start: usize,
    ) {
        let depth = DEPTH.min(self.left.length - start);
        let (first, last, steps) = (start == 0, start + depth == self.left.length, depth / STEP);
        assert!(right.data.len() == (W / PANEL - 1) * right.apart + N * depth * PANEL);
        let (next_columns, next_rows) = self.next::<W>(column, start);
        // A block is finished while the tiles are at work on the next: row by row between the steps, or all of it behind them.
        let in_steps = if last && tiles.is_some() { self.in_steps::<W>(column, steps) } else { None };
        let (mut before, mut square) = (None, Square::new());
        for (i, row) in self.rows.clone().step_by(TILE).enumerate() {
            let sums = self.sums_of::<W>(row, column);
            let left = self.left.tile(row, start);
            let Tile { data, stride, step } = left;
            assert!(size_of_val(data) >= (N - 1) * TILE * 64 + (TILE - 1) * stride + (steps - 1) * step + 64);
            if let Some(tiles) = tiles {
                let (a, b) = (data.as_ptr(), right.data.as_ptr());
                // A share of what comes next, as large as the product is long. If there is none, columns are the product's own
                // again, and so are rows in a product with one panel.
                let next_columns = next_columns.after(i * steps, b);
                let rest =
                    next_rows.get(i * steps * N * FETCHED * W / PANEL..).filter(|rest| !rest.is_empty());
                let product = Product {
                    a,
                    a_stride: stride,
                    a_step: step,
                    b,
                    steps,
                    c: sums,
                    first,
                    next_columns: next_columns.first,
                    next_rows: rest.map_or(a, <[bf16]>::as_ptr).cast(),
                };
                let complete =
                    before.map(|row| (self.sums_of::<W>(row, column), self.first::<W>(row, column)));
                let wide = Wide {
                    apart: right.apart * size_of::<bf16>(),
                    before: complete.map(|(sums, _)| sums),
                    next_apart: next_columns.apart,
                    next_step: next_columns.step,
                };
                let run = Run { tiles, wide };
                // Safety: `left` has sixteen rows, as just checked, `right` panels of as many steps, `sums` is a whole block, and the
                // places of blocks do not overlap and belong to one task. A block that is complete is not the last of its panels, and
                // so whole (see `in_steps`); nobody writes to its sums before the block after this one. (It is complete after the
                // last stretch, behind which there are no rows to be fetched.)
                unsafe {
                    match (&in_steps, complete) {
                        (Some(InSteps::Plain(blocks)), Some((sums, c))) => {
                            let mut block = blocks.block(sums, c);
                            let bias = blocks.bias(s);
                            run.multiply::<N, W, false>(
                                product,
                                #[inline(always)]
                                || block.step(s, tiles, &bias),
                            );
                        }
                        (Some(InSteps::Turned(blocks)), Some((sums, c))) => {
                            let mut block = blocks.block(sums, c);
                            run.multiply::<N, W, false>(
                                product,
                                #[inline(always)]
                                || block.step(s, &mut square),
                            );
                        }
                        _ => {
                            if let Some(row) = before.filter(|_| last) {
                                self.fetch::<W>(tiles, row, column);
                            }
                            if rest.is_some() {
                                run.multiply::<N, W, true>(product, || {});
                            } else {
                                run.multiply::<N, W, false>(product, || {});
                            }
                        }
                    }
                }
            } else {
                assert!(N == 1 && W == PANEL, "numbers in parts and wide blocks are for tiles");
                let rows = TILE.min(self.left.m - row);
                // Safety: as above; sums are this task's alone.
                unsafe {
                    let sums = std::slice::from_raw_parts_mut(sums, SUMS);
                    dot_rows(s, left, right.data.as_ptr().cast(), steps, rows, sums, first);
                }
            }
            if let Some(row) = before.replace(row)
                && last
                && in_steps.is_none()
            {
                self.finish::<S, W>(s, row, column);
            }
        }
        let Some(row) = before else { return };
        if let Some(tiles) = tiles
            && W == WIDE
        {
            // Safety: the block of the last product.
            unsafe { tiles.store_wide(self.sums_of::<W>(row, column)) }
        }
        if last {
            self.finish::<S, W>(s, row, column);
        }
    }

    /// What is needed after a stretch of panels, if it is known: the columns of the next, and, if they lie together, a share of the
    /// rows of the next stretch, of which each panel fetches some.
    #[inline(always)]
    fn next<const W: usize>(&self, column: usize, start: usize) -> (NextColumns, &'a [bf16]) {
        let (left, k, after) = (self.left, self.left.length, start + DEPTH);
        let again = start - start % left.deep();
        let (next_column, next_start) = if after < k.min(again + left.deep()) {
            (column, after)
        } else if column + W < self.columns.end {
            (column + W, again)
        } else {
            (self.columns.start, after)
        };
        let rows = if after < k { left.tiles_of(&self.rows, after) } else { &[] };
        let share = self.rows.len().div_ceil(TILE) * (DEPTH / STEP) * N * FETCHED;
        let rows = rows.get((column - self.columns.start) / PANEL * share..).unwrap_or(&[]);
        let end = k.min(next_start + DEPTH);
        let columns = match self.b {
            Right::Packed(panels) if next_start < k => {
                let at = |element| N * (next_column * k + element * PANEL);
                NextColumns::packed::<N>(&panels[at(next_start)..at(end)], N * k * PANEL)
            }
            // Rows that lie as they are, are fetched by products with two panels only.
            Right::Matrix(b) if W == WIDE => NextColumns::rows(b, next_column, next_start..b.rows.min(end)),
            _ => NextColumns::NONE,
        };
        (columns, rows)
    }

    /// Where the sums of the block of `row` and `column` are. If there is one stretch of `k` only, they take two places in turn; if
    /// they go through all stretches before others begin, they lie at the start.
    #[inline(always)]
    pub(super) fn sums_of<const W: usize>(&self, row: usize, column: usize) -> *mut f32 {
        let (row, panel) = ((row - self.rows.start) / TILE, (column - self.columns.start) / PANEL);
        let (k, tiles) = (self.left.length, self.rows.len().div_ceil(TILE));
        let at = if k <= DEPTH {
            row % 2 * TILE * W
        } else if k <= self.left.deep() {
            row * TILE * W
        } else {
            panel * tiles * SUMS + row * TILE * W
        };
        assert!(at + TILE * W <= self.sums.len());
        self.sums.at(at)
    }
}

/// A stretch of one panel of columns, or of several that are `apart` elements from each other.
#[derive(Clone, Copy)]
struct Panels<'a> {
    data: &'a [bf16],
    apart: usize,
}

/// Columns that come next, to be fetched meanwhile. They need not be valid.
#[derive(Clone, Copy)]
struct NextColumns {
    first: *const u8,
    /// In how many steps they are fetched.
    steps: usize,
    /// In bytes, as in [`Wide`].
    apart: usize,
    step: usize,
}

impl NextColumns {
    const NONE: NextColumns = NextColumns { first: std::ptr::null(), steps: 0, apart: 0, step: 0 };

    /// A stretch of panels that come packed, `apart` elements from each other.
    #[inline(always)]
    fn packed<const N: usize>(panel: &[bf16], apart: usize) -> NextColumns {
        let step = N * FETCHED;
        NextColumns {
            first: panel.as_ptr().cast(),
            steps: panel.len() / step,
            apart: apart * size_of::<bf16>(),
            step: step * size_of::<bf16>(),
        }
    }

    /// Two panels of some rows of bf16 that lie as they are, two of them in each step: a row of two panels is two cache lines, if it
    /// begins at one.
    #[inline(always)]
    fn rows<T>(b: Matrix<T>, column: usize, rows: Range<usize>) -> NextColumns {
        if b.transposed || size_of::<T>() != size_of::<bf16>() || rows.is_empty() {
            return NextColumns::NONE;
        }
        let width = b.cols * size_of::<T>();
        let first = b.data[rows.start * b.cols + column..].as_ptr().cast();
        NextColumns { first, steps: rows.len() / 2, apart: width, step: 2 * width }
    }

    /// Where to go on after some steps, or `here` if nothing is left: what a product reads itself.
    #[inline(always)]
    fn after(self, steps: usize, here: *const bf16) -> NextColumns {
        if steps < self.steps {
            let first = self.first.wrapping_add(steps * self.step);
            NextColumns { first, ..self }
        } else {
            NextColumns { first: here.cast(), ..NextColumns::NONE }
        }
    }
}

/// What a product of tiles is run with, beside its operands.
struct Run<'a> {
    tiles: &'a Tiles,
    /// For a product with two panels.
    wide: Wide,
}

impl Run<'_> {
    /// The product with `W` columns and numbers in `N` parts; one with two panels fetches rows if it is told to.
    ///
    /// # Safety
    /// As for [`Tiles::multiply_bf16`], or with two panels for [`Tiles::multiply_wide`].
    #[inline(always)]
    unsafe fn multiply<const N: usize, const W: usize, const FETCH_ROWS: bool>(
        &self,
        product: Product<bf16, f32>,
        between: impl FnMut(),
    ) {
        // Safety: the caller's promise.
        unsafe {
            match (W, N) {
                (PANEL, 1) => self.tiles.multiply_bf16(product, between),
                (PANEL, PARTS) => self.tiles.multiply_parts(product, between),
                (WIDE, 1) => self.tiles.multiply_wide::<FETCH_ROWS>(product, self.wide, between),
                _ => unreachable!("{W} columns with numbers in {N} parts"),
            }
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
    let at = |row, v| sum_at(first_row + row, column + v * S::LANES);
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
