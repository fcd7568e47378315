//! The operands of a product, copied into the order in which the tile kernel reads them.

use super::{DEPTH, DEPTH_STRIDE, Matrix, tile};
use crate::isa::Kernel;
use crate::simd::Simd;
use std::ops::Range;

/// The layout of a panel of the left operand. There is one for each layout of the operand, so that packing never transposes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// `[blocks of k][row][DEPTH_STRIDE]`, of a row-major operand.
    Rows,
    /// `[k][row]`, of a column-major operand.
    Columns,
}

impl Left {
    pub(super) fn of(a: Matrix) -> Left {
        if a.transposed { Left::Columns } else { Left::Rows }
    }
}

/// Packs some panels of `A` of `TILE_ROWS` rows each. Rows past the last one are left as they are, since their sums are not used.
pub(super) struct PackLeft<'a> {
    pub a: Matrix<'a>,
    pub panels: Range<usize>,
    pub to: &'a mut [f32],
}

impl Kernel for PackLeft<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (a, k) = (self.a, self.a.cols);
        let size = self.to.len() / self.panels.len().max(1);
        for (panel, to) in self.panels.zip(self.to.chunks_exact_mut(size.max(1))) {
            let first = panel * S::TILE_ROWS;
            let rows = S::TILE_ROWS.min(a.rows - first);
            match Left::of(a) {
                Left::Rows => {
                    for (block, to) in to.chunks_exact_mut(S::TILE_ROWS * DEPTH_STRIDE).enumerate() {
                        let depth = block * DEPTH..k.min((block + 1) * DEPTH);
                        for row in 0..rows {
                            let from = &a.data[(first + row) * k..][depth.clone()];
                            to[row * DEPTH_STRIDE..][..from.len()].copy_from_slice(from);
                        }
                    }
                }
                Left::Columns => {
                    for (column, to) in a.data.chunks_exact(a.rows).zip(to.chunks_exact_mut(S::TILE_ROWS)) {
                        // A whole panel is the common case, and a copy of fixed length.
                        if rows == S::TILE_ROWS {
                            to.copy_from_slice(&column[first..first + S::TILE_ROWS]);
                        } else {
                            to[..rows].copy_from_slice(&column[first..]);
                        }
                    }
                }
            }
        }
    }
}

/// Packs some panels of `B` as `[k][VECTORS · LANES]`. Columns past the last one become zero.
pub(super) struct PackRight<'a> {
    pub b: Matrix<'a>,
    pub panels: Range<usize>,
    pub to: &'a mut [f32],
}

impl Kernel for PackRight<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (b, k) = (self.b, self.b.rows);
        let width = tile::VECTORS * S::LANES;
        for (panel, to) in self.panels.zip(self.to.chunks_exact_mut((k * width).max(1))) {
            let first = panel * width;
            let cols = width.min(b.cols - first);
            if b.transposed {
                transpose(s, &b.data[first * k..][..cols * k], k, to, width);
                continue;
            }
            for (row, to) in b.data.chunks_exact(b.cols).zip(to.chunks_exact_mut(width)) {
                if cols == width {
                    to.copy_from_slice(&row[first..first + width]);
                } else {
                    to[..cols].copy_from_slice(&row[first..]);
                    to[cols..].fill(0.0);
                }
            }
        }
    }
}

/// Writes rows of length `k` as the columns of `to: [k, width]`. Further columns become zero.
#[inline(always)]
fn transpose<S: Simd>(s: S, from: &[f32], k: usize, to: &mut [f32], width: usize) {
    let rows = from.len() / k.max(1);
    assert!(rows <= width && to.len() == k * width);
    let (whole_rows, whole_k) = (rows - rows % S::LANES, k - k % S::LANES);
    for row in (0..whole_rows).step_by(S::LANES) {
        for at in (0..whole_k).step_by(S::LANES) {
            // Safety: a block of LANES rows from `row` and LANES columns from `at` lies inside `from`, its transpose
            // inside `to`, as the bounds of the loops and the assertion say.
            unsafe {
                s.transpose(from.as_ptr().add(row * k + at), k, to.as_mut_ptr().add(at * width + row), width)
            }
        }
        for at in whole_k..k {
            for row in row..row + S::LANES {
                to[at * width + row] = from[row * k + at];
            }
        }
    }
    for at in 0..k {
        for row in whole_rows..rows {
            to[at * width + row] = from[row * k + at];
        }
        to[at * width + rows..][..width - rows].fill(0.0);
    }
}
