//! Products of attention on the tile unit, for heads in bf16 whose width is a multiple of 32.
//!
//! Left operands are tiles of 16 rows, right ones panels of 32 columns as [`pack_right`] makes them, and sums are blocks of
//! 16 × 32 ([`sum_at`]). Tiles that are not full end in zeros.

use super::{Attention, Rows};
use crate::Real;
use crate::amx::{PANEL, Product, TILE, Tiles, sum_at};
use crate::gemm::Matrix;
use crate::gemm::bf16::{STEP, pack_right};
use crate::simd::{Simd, prefetch};
use half::bf16;

/// Whether tiles can compute this attention.
pub(super) fn fits_tiles<T: Real>(attention: &Attention) -> bool {
    let steps = |width: usize| width > 0 && width.is_multiple_of(STEP);
    size_of::<T>() == size_of::<bf16>() && steps(attention.d_k) && steps(attention.d_v)
}

/// Elements of a tile of bf16.
pub(super) const IN_TILE: usize = TILE * STEP;

/// The index of a row and a column in a matrix that consists of blocks of sums.
#[inline(always)]
pub(super) fn in_blocks(width: usize) -> impl Fn(usize, usize) -> usize {
    #[inline(always)]
    move |row, column| {
        let block = row / TILE * (width / PANEL) + column / PANEL;
        block * TILE * PANEL + sum_at::<TILE>(row % TILE, column % PANEL)
    }
}

/// Copies the first `[rows, width]` of a matrix of bf16, padded with rows of zeros to a whole step. It prefetches what is beside them:
/// that is usually the next head of this thread.
#[inline(always)]
pub(super) fn copy<'a, S: Simd, T: Real>(
    s: S,
    from: Rows<T>,
    rows: usize,
    width: usize,
    to: &'a mut [bf16],
) -> Matrix<'a, bf16> {
    let all = rows.next_multiple_of(STEP);
    for i in 0..rows {
        let (from, to) = (from.row(i, width), &mut to[i * width..][..width]);
        for at in (0..width).step_by(STEP) {
            prefetch(from.as_ptr().wrapping_add(width + at));
        }
        for at in (0..width).step_by(2 * S::LANES) {
            // Safety: a row is as wide as whole steps, which are as wide as whole pairs of vectors.
            unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), T::load_row(s, from.as_ptr().add(at))) }
        }
    }
    to[rows * width..all * width].fill(bf16::ZERO);
    Matrix::new(&to[..all * width], all, width)
}

/// Packs all panels of a right operand.
#[inline(always)]
pub(super) fn pack<S: Simd>(s: S, from: Matrix<bf16>, to: &mut [bf16]) {
    let [rows, columns] = from.shape();
    for (panel, to) in to.chunks_exact_mut(rows * PANEL).take(columns / PANEL).enumerate() {
        pack_right::<_, _, 1>(s, from, panel * PANEL, 0, to);
    }
}

/// A left operand. `tile`, `stride` and `step` are the distances of tiles, rows and steps, in elements.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    data: &'a [bf16],
    parts: usize,
    tile: usize,
    stride: usize,
    step: usize,
}

impl<'a> Left<'a> {
    /// A row-major matrix.
    #[inline(always)]
    pub fn rows(data: &'a [bf16], width: usize) -> Left<'a> {
        Left { data, parts: 1, tile: TILE * width, stride: width, step: STEP }
    }

    /// Tiles, with numbers in `parts` parts, `steps` steps long.
    #[inline(always)]
    pub fn tiles(data: &'a [bf16], parts: usize, steps: usize) -> Left<'a> {
        let step = parts * IN_TILE;
        Left { data, parts, tile: steps * step, stride: STEP, step }
    }
}

/// The product of `shape`: tiles of rows, panels of columns, and steps. It is added to `c`, or stored there with `from_zero`.
#[inline(always)]
pub(super) fn multiply(
    tiles: &Tiles,
    shape: [usize; 3],
    a: Left,
    b: &[bf16],
    c: &mut [f32],
    from_zero: bool,
) {
    assert!(a.parts == 1);
    for_blocks(
        shape,
        a,
        b,
        c,
        from_zero,
        #[inline(always)]
        |product| {
            // Safety: a valid product, whose left operand is in one part.
            unsafe { tiles.multiply_bf16(product, || {}) }
        },
    );
}

/// The same with a left operand in two parts, added to `c`.
#[inline(always)]
pub(super) fn multiply_two_parts(tiles: &Tiles, shape: [usize; 3], a: Left, b: &[bf16], c: &mut [f32]) {
    assert!(a.parts == 2);
    for_blocks(
        shape,
        a,
        b,
        c,
        false,
        #[inline(always)]
        |product| {
            // Safety: a valid product, whose left operand is in two parts.
            unsafe { tiles.multiply_two_parts(product, || {}) }
        },
    );
}

/// Calls `multiply` with the product of each block. Each product is valid.
#[inline(always)]
fn for_blocks(
    [rows, panels, steps]: [usize; 3],
    a: Left,
    b: &[bf16],
    c: &mut [f32],
    from_zero: bool,
    multiply: impl Fn(Product<bf16, f32>),
) {
    assert!(steps > 0);
    let size = size_of::<bf16>();
    for row in 0..rows {
        // Up to the end of the last row of the last step, in the last part.
        let length = (a.parts - 1) * IN_TILE + (TILE - 1) * a.stride + (steps - 1) * a.step + STEP;
        let left = &a.data[row * a.tile..][..length];
        for panel in 0..panels {
            let right = &b[panel * steps * STEP * PANEL..][..steps * STEP * PANEL];
            let sums = &mut c[(row * panels + panel) * TILE * PANEL..][..TILE * PANEL];
            multiply(Product {
                a: left.as_ptr(),
                a_stride: a.stride * size,
                a_step: a.step * size,
                b: right.as_ptr(),
                steps,
                c: sums.as_mut_ptr(),
                from_zero,
                // Nothing to prefetch: the operands have just been written.
                next_columns: right.as_ptr().cast(),
                next_rows: left.as_ptr().cast(),
            });
        }
    }
}
