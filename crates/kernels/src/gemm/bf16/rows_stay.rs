//! Blocks of 32 rows and 32 columns on the tile unit, two by two tiles: rows stay in the first cache, and columns stream past them
//! from the second.

use super::block::{Columns, Panel};
use super::finish::{Finish, InSteps, Squares, Whole};
use super::pack::{PackPanels, Right, Tile};
use super::{DEEP, STEP};
use crate::amx::{Ahead, PANEL, Pair, TILE, Tiles, TwoByTwo};
use crate::simd::{Real, Simd};
use half::bf16;
use std::ops::Range;

/// Rows of a block.
pub(super) const PAIR: usize = 2 * TILE;
/// Products that fetch the next 32 rows, each four of them. Where a task has fewer panels, a part of these rows is fetched.
const ROW_FETCHES: usize = PAIR / 4;
/// Passes that fetch a stretch of the columns that come next, each an eighth of every panel: four cache lines at a step of `k`,
/// where a panel has 32.
const COLUMN_FETCHES: usize = 8;

/// A stretch of the panels of a task, `apart` elements from each other.
struct Stretch<'a> {
    start: usize,
    depth: usize,
    panels: &'a [bf16],
    apart: usize,
}

impl<C: Real, const N: usize> Columns<'_, C, N> {
    /// Stretch by stretch of all columns, each with all rows.
    #[inline(always)]
    pub(super) fn rows_stay<S: Simd>(&mut self, s: S, tiles: &Tiles) {
        let (right, copied) = (std::mem::take(&mut self.right), std::mem::take(&mut self.copied));
        let (k, Range { start: begin, end }) = (self.left.length, self.rows.clone());
        // The last tile of rows may be alone.
        let middle = end.min(begin + (end - begin).div_ceil(TILE) / 2 * PAIR);
        for start in (0..k).step_by(DEEP) {
            let depth = self.left.depth(start);
            let size = depth * PANEL;
            let (panels, apart) = match self.b {
                Right::Packed(panels) => (&panels[self.columns.start * k + start * PANEL..], k * PANEL),
                Right::F32(b) => {
                    let columns = self.columns.clone();
                    s.call(PackPanels { b, columns, start, depth, to: &mut *right });
                    (&*right, size)
                }
                Right::Bf16(b) => {
                    let columns = self.columns.clone();
                    s.call(PackPanels { b, columns, start, depth, to: &mut *right });
                    (&*right, size)
                }
            };
            self.multiply_pairs(s, tiles, begin..middle, &Stretch { start, depth, panels, apart }, copied);
            if middle < end {
                for (column, panel) in self.columns.clone().step_by(PANEL).zip(panels.chunks(apart)) {
                    let (columns, rows, panel) = (&*self, middle..end, &panel[..size]);
                    s.call(Panel { columns, tiles: Some(tiles), rows, panel, column, start });
                }
            }
        }
    }

    /// A stretch of columns with pairs of tiles of rows.
    #[inline(always)]
    fn multiply_pairs<S: Simd>(
        &self,
        s: S,
        tiles: &Tiles,
        rows: Range<usize>,
        stretch: &Stretch,
        copied: &mut [bf16],
    ) {
        let Stretch { start, depth, panels, apart } = *stretch;
        let (first, last, steps) = (start == 0, start + depth == self.left.length, depth / STEP);
        let in_steps = if last { self.in_steps::<PAIR>(steps) } else { None };
        let (mut before, mut squares) = (None, Squares::new());
        let passes = rows.len().div_ceil(PAIR);
        // The first product of a pass copies long rows, which would be in each other's way in the first cache, for those after it.
        let room =
            (!copied.is_empty() && self.columns.len() > PANEL).then(|| copied[..PAIR * depth].as_mut_ptr());
        for (pass, row) in rows.clone().step_by(PAIR).enumerate() {
            let [Tile { data: upper, stride, step }, Tile { data: lower, .. }] =
                [row, row + TILE].map(|row| self.left.tile(row, start));
            for data in [upper, lower] {
                assert!(size_of_val(data) >= (TILE - 1) * stride + (steps - 1) * step + 64);
            }
            let mut a = Pair { upper: upper.as_ptr(), lower: lower.as_ptr(), stride, step };
            let next_pair = self.after(row, start, &rows);
            for (i, (column, panel)) in
                self.columns.clone().step_by(PANEL).zip(panels.chunks(apart)).enumerate()
            {
                assert!(panel.len() >= depth * PANEL);
                let copy = room.filter(|_| i == 0);
                let product = TwoByTwo {
                    a,
                    copy,
                    b: panel.as_ptr(),
                    steps,
                    c: self.sums_of::<PAIR>(row, column),
                    first,
                    before: before.map(|(row, column)| self.sums_of::<PAIR>(row, column)),
                };
                let next_rows =
                    next_pair.filter(|_| i < ROW_FETCHES).map(|[row, start]| self.rows_ahead(row, start, i));
                // The last passes fetch them.
                let next_columns = pass
                    .checked_sub(passes.saturating_sub(COLUMN_FETCHES))
                    .and_then(|pass| self.columns_ahead(start + depth, i, pass * steps));
                let finish = in_steps
                    .as_ref()
                    .zip(before)
                    .and_then(|(in_steps, (row, column))| Some((in_steps, self.whole::<PAIR>(row, column)?)));
                // Safety: both tiles have sixteen rows, as just checked, or were copied, all steps of them, by the first product of this
                // pass. The panel and the room for the copy have as many steps, sums are a whole block, and the places of blocks do not
                // overlap and belong to one task. Nobody writes to the sums of a complete block before the
                // block after this one, and nothing but these products uses the tiles.
                unsafe {
                    match (next_rows, next_columns) {
                        (None, None) => self.two_by_two(s, tiles, product, [], finish, &mut squares),
                        (Some(ahead), None) | (None, Some(ahead)) => {
                            self.two_by_two(s, tiles, product, [ahead], finish, &mut squares);
                        }
                        (Some(rows), Some(columns)) => {
                            self.two_by_two(s, tiles, product, [rows, columns], finish, &mut squares);
                        }
                    }
                }
                if let Some(copy) = copy {
                    a = Pair::copied(copy);
                }
                if let Some((row, column)) = before.replace((row, column))
                    && last
                    && finish.is_none()
                {
                    s.call(Finish::<C, N, PAIR> { columns: self, row, column });
                }
            }
        }
        if let Some((row, column)) = before {
            // Safety: the block of the last product.
            unsafe { tiles.store_two_by_two(self.sums_of::<PAIR>(row, column)) }
            if last {
                s.call(Finish::<C, N, PAIR> { columns: self, row, column });
            }
        }
    }

    /// A product, between the steps of which the block before it is finished, if it can be.
    ///
    /// # Safety
    /// As for [`Tiles::multiply_two_by_two`] and for the steps in which a block is finished.
    #[inline(always)]
    unsafe fn two_by_two<S: Simd, const FETCHES: usize>(
        &self,
        s: S,
        tiles: &Tiles,
        product: TwoByTwo<bf16, f32>,
        ahead: [Ahead; FETCHES],
        finish: Option<(&InSteps<C, PAIR>, Whole<C>)>,
        squares: &mut Squares,
    ) {
        // Safety: the caller's promise.
        unsafe {
            match finish {
                Some((InSteps::Plain(blocks), whole)) => {
                    let (mut block, bias) = (blocks.block(whole), whole.bias(s));
                    tiles.multiply_two_by_two(
                        product,
                        ahead,
                        #[inline(always)]
                        || block.step(s, tiles, &bias),
                    );
                }
                Some((InSteps::Turned(blocks), whole)) => {
                    let mut block = blocks.block(whole);
                    tiles.multiply_two_by_two(
                        product,
                        ahead,
                        #[inline(always)]
                        || block.step(s, squares),
                    );
                }
                None => tiles.multiply_two_by_two(product, ahead, || {}),
            }
        }
    }

    /// The row and the place in `k` where the pair begins that comes after another, if it is known.
    #[inline(always)]
    fn after(&self, row: usize, start: usize, rows: &Range<usize>) -> Option<[usize; 2]> {
        let next_start = start + self.left.depth(start);
        if row + PAIR < rows.end {
            Some([row + PAIR, start])
        } else if next_start < self.left.length {
            Some([rows.start, next_start])
        } else {
            self.next_task.map(|[row, _]| [row, 0]).filter(|[row, _]| row + PAIR <= self.left.m)
        }
    }

    /// The rows that the `i`th product of a pass fetches of the next pair.
    #[inline(always)]
    fn rows_ahead(&self, row: usize, start: usize, i: usize) -> Ahead {
        let row = row + i * PAIR / ROW_FETCHES;
        let Tile { data, stride, step } = self.left.tile(row / TILE * TILE, start);
        Ahead { first: data.as_ptr().wrapping_byte_add(row % TILE * stride).cast(), apart: stride, step }
    }

    /// The columns that are needed after those of the task up to `end` of `k`, if they are not the same and come packed: a part of
    /// the `i`th panel, of which so many steps have been fetched.
    #[inline(always)]
    fn columns_ahead(&self, end: usize, i: usize, steps: usize) -> Option<Ahead> {
        let k = self.left.length;
        let (column, start) = if end < k { (self.columns.start, end) } else { (self.next_task?[1], 0) };
        let (column, depth) = (column + i * PANEL, self.left.depth(start));
        if (column == self.columns.start + i * PANEL && k <= DEEP) || column >= self.n {
            return None;
        }
        let Right::Packed(panels) = self.b else { return None };
        let panel = &panels[column * k + start * PANEL..][..depth * PANEL];
        let step = PANEL * STEP / COLUMN_FETCHES;
        let rest = panel.get(steps * step..).filter(|rest| !rest.is_empty())?;
        Some(Ahead { first: rest.as_ptr().cast(), apart: 64, step: step * size_of::<bf16>() })
    }
}
