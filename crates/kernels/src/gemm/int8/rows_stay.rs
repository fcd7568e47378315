//! Blocks of 32 rows and 32 columns on the tile unit, two by two tiles: rows stay in the L1 cache, and columns stream past them from
//! the L2 cache. For many rows, as an encoder or a long prompt has them.

use super::finish::Finish;
use super::{Int8Weights, STEP};
use crate::amx::{PANEL, Pair, Prefetch, TILE, Tiles, TwoByTwo};
use crate::isa::{Isa, Kernel};
use crate::simd::{Real, Simd};
use std::ops::Range;

/// Rows of a block.
pub(super) const PAIR: usize = 2 * TILE;
/// How many products prefetch the next rows.
const ROW_PREFETCHES: usize = 8;

/// A task: some pairs of tiles of rows with some panels of columns.
pub(super) struct Pairs<'a, T> {
    pub isa: Isa,
    /// All rows, quantised, in whole tiles.
    pub left: &'a [i8],
    pub length: usize,
    pub w: &'a Int8Weights,
    pub rows: Range<usize>,
    pub panels: Range<usize>,
    pub finish: Finish<'a, T>,
}

/// A block of sums, aligned for storing tiles.
#[repr(C, align(64))]
struct Sums([i32; PAIR * PANEL]);

impl<T: Real> Kernel for Pairs<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let tiles = self.isa.tiles::<S>();
        if S::BESIDE_TILES
            && let Some(tiles) = &tiles
        {
            self.multiply(s, tiles);
        }
    }
}

impl<T: Real> Pairs<'_, T> {
    #[inline(always)]
    fn multiply<S: Simd>(&self, s: S, tiles: &Tiles) {
        let (length, steps) = (self.length, self.length / STEP);
        // The first step of the next product stores the sums of a block, the other steps finish it.
        let rows_each = PAIR.div_ceil(steps.saturating_sub(1).max(1));
        let mut sums = [Sums([0; PAIR * PANEL]), Sums([0; PAIR * PANEL])];
        let places = [(); 2].map({
            let mut sums = sums.iter_mut();
            move |()| sums.next().expect("two blocks").0.as_mut_ptr()
        });
        let mut before: Option<(usize, usize, *mut i32)> = None;
        let mut number = 0;
        for row in self.rows.clone().step_by(PAIR) {
            let left = &self.left[row * length..][..PAIR * length];
            let a = Pair {
                upper: left.as_ptr(),
                lower: left[TILE * length..].as_ptr(),
                stride: length,
                step: STEP,
            };
            for (i, panel) in self.panels.clone().enumerate() {
                let c = places[number % 2];
                number += 1;
                let product = TwoByTwo {
                    a,
                    copy: None,
                    b: self.w.panel(panel).as_ptr(),
                    steps,
                    c,
                    from_zero: true,
                    before: before.map(|(.., sums)| sums),
                };
                // Each product prefetches a share of the next rows. There need not be any.
                let share = PAIR / ROW_PREFETCHES;
                let next = left.as_ptr().wrapping_add((PAIR + i % ROW_PREFETCHES * share) * length);
                let prefetches = [Prefetch { first: next.cast(), line_stride: length, step: STEP }];
                let finish = before
                    .filter(|_| steps > 1)
                    .and_then(|(row, panel, sums)| self.finish.between_steps::<S, PAIR>(s, panel, row, sums));
                let is_finished = finish.is_some();
                // Safety: `left` has 32 rows of `length`, the panel has as many steps, the blocks of sums are whole, and only these
                // products use the tiles. The block before is complete after the first step, and its rows belong to this task.
                unsafe {
                    match finish {
                        Some(mut block) => tiles.multiply_two_by_two_int8(
                            product,
                            prefetches,
                            #[inline(always)]
                            || block.step::<PAIR>(s, rows_each, &self.finish.epilogue),
                        ),
                        None => tiles.multiply_two_by_two_int8(product, prefetches, || {}),
                    }
                }
                if let Some(before) = before.replace((row, panel, c))
                    && !is_finished
                {
                    self.finish_behind(s, before);
                }
            }
        }
        if let Some(last) = before {
            // Safety: the block of the last product.
            unsafe { tiles.store_two_by_two(last.2) }
            self.finish_behind(s, last);
        }
    }

    /// Finishes a block in one go.
    #[inline(always)]
    fn finish_behind<S: Simd>(&self, s: S, (row, panel, sums): (usize, usize, *mut i32)) {
        // Safety: a whole block, which the tiles have stored and which is not written to any more.
        let sums = unsafe { std::slice::from_raw_parts(sums, PAIR * PANEL) };
        self.finish.block::<S, PAIR>(s, panel, row, PAIR.min(self.rows.end - row), sums);
    }
}
