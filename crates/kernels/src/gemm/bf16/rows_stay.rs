//! Blocks of 32 rows and 32 columns on the tile unit, two by two tiles: rows stay in the L1 cache, and columns stream past them from
//! the L2 cache.

use super::block::{RowsTimesPanel, Task};
use super::finish::{BetweenSteps, Finish, Squares, WholeBlock};
use super::pack::{PackPanels, Right, Tile};
use super::{DEPTH_ROWS_STAY, STEP};
use crate::amx::{PANEL, Pair, Prefetch, TILE, Tiles, TwoByTwo};
use crate::simd::{Real, Simd};
use half::bf16;
use std::ops::Range;

/// Rows of a block.
pub(super) const PAIR: usize = 2 * TILE;
/// How many products prefetch the next 32 rows, four rows each. A task with fewer panels prefetches only some of these rows.
const ROW_PREFETCHES: usize = PAIR / 4;
/// How many passes prefetch the next columns, an eighth of every panel each: four cache lines in each step, where a panel has 32.
const COLUMN_PREFETCHES: usize = 8;

/// A stretch of `k` of the panels of a task. Each panel begins `panel_stride` elements behind the one before.
struct Stretch<'a> {
    start: usize,
    depth: usize,
    panels: &'a [bf16],
    panel_stride: usize,
}

impl<C: Real, const N: usize> Task<'_, C, N> {
    /// All rows with all columns, one stretch of `k` after the other.
    #[inline(always)]
    pub(super) fn rows_stay<S: Simd>(&mut self, s: S, tiles: &Tiles) {
        let (right, copied) = (std::mem::take(&mut self.right), std::mem::take(&mut self.copied));
        let (k, Range { start: begin, end }) = (self.left.length, self.rows.clone());
        // A single tile of rows may be left over.
        let middle = end.min(begin + (end - begin).div_ceil(TILE) / 2 * PAIR);
        for start in (0..k).step_by(DEPTH_ROWS_STAY) {
            let depth = self.left.depth(start);
            let size = depth * PANEL;
            let (panels, panel_stride) = match self.b {
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
            self.multiply_pairs(
                s,
                tiles,
                begin..middle,
                &Stretch { start, depth, panels, panel_stride },
                copied,
            );
            if middle < end {
                for (column, panel) in self.columns.clone().step_by(PANEL).zip(panels.chunks(panel_stride)) {
                    let (task, rows, panel) = (&*self, middle..end, &panel[..size]);
                    s.call(RowsTimesPanel { task, tiles: Some(tiles), rows, panel, column, start });
                }
            }
        }
    }

    /// A stretch of the columns with all pairs of tiles of rows. A pass takes one pair through all columns.
    #[inline(always)]
    fn multiply_pairs<S: Simd>(
        &self,
        s: S,
        tiles: &Tiles,
        rows: Range<usize>,
        stretch: &Stretch,
        copied: &mut [bf16],
    ) {
        let Stretch { start, depth, panels, panel_stride } = *stretch;
        let (from_zero, last, steps) = (start == 0, start + depth == self.left.length, depth / STEP);
        let between_steps = if last { self.between_steps::<PAIR>(steps) } else { None };
        let (mut before, mut squares) = (None, Squares::new());
        let passes = rows.len().div_ceil(PAIR);
        // Long rows share few sets of the L1 cache. So the first product of a pass copies them for the products after it.
        let room =
            (!copied.is_empty() && self.columns.len() > PANEL).then(|| copied[..PAIR * depth].as_mut_ptr());
        for (pass, row) in rows.clone().step_by(PAIR).enumerate() {
            let [Tile { data: upper, stride, step }, Tile { data: lower, .. }] =
                [row, row + TILE].map(|row| self.left.tile(row, start));
            for data in [upper, lower] {
                assert!(size_of_val(data) >= (TILE - 1) * stride + (steps - 1) * step + 64);
            }
            let mut a = Pair { upper: upper.as_ptr(), lower: lower.as_ptr(), stride, step };
            let next_pair = self.next_pair(row, start, &rows);
            for (i, (column, panel)) in
                self.columns.clone().step_by(PANEL).zip(panels.chunks(panel_stride)).enumerate()
            {
                assert!(panel.len() >= depth * PANEL);
                let copy = room.filter(|_| i == 0);
                let product = TwoByTwo {
                    a,
                    copy,
                    b: panel.as_ptr(),
                    steps,
                    c: self.sums_of::<PAIR>(row, column),
                    from_zero,
                    before: before.map(|(row, column)| self.sums_of::<PAIR>(row, column)),
                };
                let next_rows = next_pair
                    .filter(|_| i < ROW_PREFETCHES)
                    .map(|[row, start]| self.prefetch_of_rows(row, start, i));
                // The last passes prefetch them.
                let next_columns = pass
                    .checked_sub(passes.saturating_sub(COLUMN_PREFETCHES))
                    .and_then(|pass| self.prefetch_of_columns(start + depth, i, pass * steps));
                let finish = between_steps.as_ref().zip(before).and_then(|(between_steps, (row, column))| {
                    Some((between_steps, self.whole::<PAIR>(row, column)?))
                });
                // Safety: both tiles have sixteen rows, as just checked, or the first product of this pass has copied all their steps.
                // The panel and the room for the copy have as many steps, and sums are a whole block. Blocks of `C` do not overlap and
                // belong to one task. The sums of a complete block are not written before the block after this one begins, and only
                // these products use the tiles.
                unsafe {
                    match (next_rows, next_columns) {
                        (None, None) => self.two_by_two(s, tiles, product, [], finish, &mut squares),
                        (Some(next), None) | (None, Some(next)) => {
                            self.two_by_two(s, tiles, product, [next], finish, &mut squares);
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
                    s.call(Finish::<C, N, PAIR> { task: self, row, column });
                }
            }
        }
        if let Some((row, column)) = before {
            // Safety: the block of the last product.
            unsafe { tiles.store_two_by_two(self.sums_of::<PAIR>(row, column)) }
            if last {
                s.call(Finish::<C, N, PAIR> { task: self, row, column });
            }
        }
    }

    /// A product. Between its steps, the block before it is finished if `finish` is given.
    ///
    /// # Safety
    /// As for [`Tiles::multiply_two_by_two`] and for finishing a block in steps.
    #[inline(always)]
    unsafe fn two_by_two<S: Simd, const PREFETCHES: usize>(
        &self,
        s: S,
        tiles: &Tiles,
        product: TwoByTwo<bf16, f32>,
        prefetches: [Prefetch; PREFETCHES],
        finish: Option<(&BetweenSteps<C, PAIR>, WholeBlock<C>)>,
        squares: &mut Squares,
    ) {
        // Safety: the caller's promise.
        unsafe {
            match finish {
                Some((BetweenSteps::Plain(blocks), whole)) => {
                    let (mut block, bias) = (blocks.block(whole), whole.bias(s));
                    tiles.multiply_two_by_two(
                        product,
                        prefetches,
                        #[inline(always)]
                        || block.step(s, tiles, &bias),
                    );
                }
                Some((BetweenSteps::Transposed(blocks), whole)) => {
                    let mut block = blocks.block(whole);
                    tiles.multiply_two_by_two(
                        product,
                        prefetches,
                        #[inline(always)]
                        || block.step(s, squares),
                    );
                }
                None => tiles.multiply_two_by_two(product, prefetches, || {}),
            }
        }
    }

    /// Where the pair after this one begins, as a row and an element of `k`, if that is known.
    #[inline(always)]
    fn next_pair(&self, row: usize, start: usize, rows: &Range<usize>) -> Option<[usize; 2]> {
        let next_start = start + self.left.depth(start);
        if row + PAIR < rows.end {
            Some([row + PAIR, start])
        } else if next_start < self.left.length {
            Some([rows.start, next_start])
        } else {
            self.next_task.map(|[row, _]| [row, 0]).filter(|[row, _]| row + PAIR <= self.left.m)
        }
    }

    /// What the `i`th product of a pass prefetches of the next pair of row tiles.
    #[inline(always)]
    fn prefetch_of_rows(&self, row: usize, start: usize, i: usize) -> Prefetch {
        let row = row + i * PAIR / ROW_PREFETCHES;
        let Tile { data, stride, step } = self.left.tile(row / TILE * TILE, start);
        Prefetch {
            first: data.as_ptr().wrapping_byte_add(row % TILE * stride).cast(),
            line_stride: stride,
            step,
        }
    }

    /// What the `i`th product of a pass prefetches of the columns that come next: those of the stretch that begins at `end`, or of the
    /// next task. None if they are the columns of this stretch, or do not come packed. `steps` steps of each panel have been
    /// prefetched before.
    #[inline(always)]
    fn prefetch_of_columns(&self, end: usize, i: usize, steps: usize) -> Option<Prefetch> {
        let k = self.left.length;
        let (column, start) = if end < k { (self.columns.start, end) } else { (self.next_task?[1], 0) };
        let (column, depth) = (column + i * PANEL, self.left.depth(start));
        if (column == self.columns.start + i * PANEL && k <= DEPTH_ROWS_STAY) || column >= self.n {
            return None;
        }
        let Right::Packed(panels) = self.b else { return None };
        let panel = &panels[column * k + start * PANEL..][..depth * PANEL];
        let step = PANEL * STEP / COLUMN_PREFETCHES;
        let rest = panel.get(steps * step..).filter(|rest| !rest.is_empty())?;
        Some(Prefetch { first: rest.as_ptr().cast(), line_stride: 64, step: step * size_of::<bf16>() })
    }
}
