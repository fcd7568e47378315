//! Blocks of 16 × 32 sums of int8: on the tile unit, or as dot products of four on vectors.

use super::finish::Finish;
use super::{Int8Weights, STEP};
use crate::amx::{PANEL, Product, TILE, Tiles, sum_at};
use crate::isa::{Isa, Kernel};
use crate::simd::{Real, Simd};
use std::ops::Range;

/// A task: some rows, beginning with a tile, with some panels of columns. Each panel stays in the L1 cache while rows stream past it.
pub(super) struct Panels<'a, T> {
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
struct Sums([i32; TILE * PANEL]);

impl<T: Real> Kernel for Panels<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let tiles = self.isa.tiles::<S>();
        let mut sums = Sums([0; TILE * PANEL]);
        for panel in self.panels.clone() {
            self.multiply(s, tiles.as_ref(), panel, &mut sums);
        }
    }
}

impl<T: Real> Panels<'_, T> {
    #[inline(always)]
    fn multiply<S: Simd>(&self, s: S, tiles: Option<&Tiles>, panel: usize, sums: &mut Sums) {
        let (length, right) = (self.length, self.w.panel(panel));
        for row in self.rows.clone().step_by(TILE) {
            let left = &self.left[row * length..][..TILE * length];
            let rows = TILE.min(self.rows.end - row);
            match tiles {
                // Safety: `left` has 16 rows of `length`, `right` as many columns, `sums` is a whole block.
                Some(tiles) if length > 0 => unsafe {
                    let (n, size) = (self.finish.columns.len(), size_of::<T>());
                    let c = self.finish.c.at(self.finish.first(row, panel)).cast();
                    tiles.prefetch_to_write(c, n * size, rows, PANEL * size);
                    let (a, b, steps) = (left.as_ptr(), right.as_ptr(), length / STEP);
                    let product = Product {
                        a,
                        a_stride: length,
                        a_step: STEP,
                        b,
                        steps,
                        c: sums.0.as_mut_ptr(),
                        from_zero: true,
                        // Each tile of rows prefetches a share of the next panel.
                        next_columns: b.wrapping_add(PANEL * length + row / TILE * steps * 2 * STEP).cast(),
                        next_rows: a.cast(),
                    };
                    tiles.multiply_int8(product, || {});
                },
                _ => {
                    // Rows are padded to whole tiles, so that a few rows too many do no harm.
                    for i in (0..rows).step_by(ROWS) {
                        dot_rows(s, &left[i * length..][..ROWS * length], right, i, sums);
                    }
                }
            }
            self.finish.block::<S, TILE>(s, panel, row, rows, &sums.0);
        }
    }
}

/// Rows that are multiplied at a time on vectors: a column is loaded and prepared once for all of them.
const ROWS: usize = 4;
/// Vectors of columns that are multiplied at a time: a row is loaded and prepared once for both.
const VECTORS: usize = 2;

/// [`ROWS`] rows with a panel, as dot products of four. They become the rows from `i` on of the block.
#[inline(always)]
fn dot_rows<S: Simd>(s: S, left: &[i8], right: &[i8], i: usize, sums: &mut Sums) {
    let length = left.len() / ROWS;
    assert!(right.len() == length * PANEL && i + ROWS <= TILE);
    let left: [&[i8]; ROWS] = std::array::from_fn(|row| &left[row * length..][..length]);
    for column in (0..PANEL).step_by(VECTORS * S::LANES) {
        let mut dots = [[s.splat_u(0); VECTORS]; ROWS];
        for group in 0..length / 4 {
            let mut columns = [s.splat_u(0); VECTORS];
            for v in 0..VECTORS {
                let column = column + v * S::LANES;
                let tile = (group / TILE * 2 + column / TILE) * TILE + group % TILE;
                let at = (tile * TILE + column % TILE) * 4;
                // Safety: the panel has `length / 64` steps of two tiles, and the columns lie inside a row of one.
                columns[v] = unsafe { s.load_u(right.as_ptr().add(at).cast()) };
            }
            for row in 0..ROWS {
                let four = &left[row][group * 4..][..4];
                let four = u32::from_ne_bytes([four[0] as u8, four[1] as u8, four[2] as u8, four[3] as u8]);
                let four = s.splat_u(four);
                for v in 0..VECTORS {
                    dots[row][v] = s.dot4(dots[row][v], four, columns[v]);
                }
            }
        }
        for row in 0..ROWS {
            for v in 0..VECTORS {
                let at = sum_at::<TILE>(i + row, column + v * S::LANES);
                // Safety: LANES sums of a row of a tile.
                unsafe { s.store_u(sums.0.as_mut_ptr().add(at).cast(), dots[row][v]) }
            }
        }
    }
}
