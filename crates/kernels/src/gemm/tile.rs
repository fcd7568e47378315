//! The tile kernel: a tile of some rows × two vectors of `C`, whose sums stay in registers along a block of `k`.

use super::pack::Left;
use super::{DEPTH, DEPTH_STRIDE, Epilogue};
use crate::isa::Kernel;
use crate::simd::{Simd, load};
use crate::threads::Shared;
use std::ops::Range;

/// Vectors in a row of a tile.
pub(super) const VECTORS: usize = 2;
/// Room for the tile of any instruction set.
const BUFFER_ROWS: usize = 14;
const BUFFER_COLS: usize = 64;

/// The size of the product, without padding.
#[derive(Clone, Copy)]
pub(super) struct Edges {
    pub m: usize,
    pub k: usize,
    pub n: usize,
}

/// The product of some panels of `A` with some panels of `B`.
pub(super) struct Panels<'a> {
    pub left: &'a [f32],
    pub left_kind: Left,
    /// Numbers in a panel.
    pub left_panel: usize,
    pub right: &'a [f32],
    /// Numbers in a panel.
    pub right_panel: usize,
    pub left_panels: Range<usize>,
    pub right_panels: Range<usize>,
    pub edges: Edges,
    pub c: Shared<'a, f32>,
    pub epilogue: Epilogue<'a>,
}

impl Kernel for Panels<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = VECTORS * S::LANES;
        let k = self.edges.k;
        // If `k` is zero, bias and activation are still applied.
        for block in 0..k.div_ceil(DEPTH).max(1) {
            let depth = DEPTH.min(k - block * DEPTH);
            let first = block == 0 && !self.epilogue.accumulate;
            let last = (block + 1) * DEPTH >= k;
            for j in self.right_panels.clone() {
                let right = &self.right[j * self.right_panel + block * DEPTH * width..][..depth * width];
                for i in self.left_panels.clone() {
                    let left = &self.left[i * self.left_panel..][..self.left_panel];
                    let left = match self.left_kind {
                        Left::Rows => &left[block * S::TILE_ROWS * DEPTH_STRIDE..],
                        Left::Columns => &left[block * DEPTH * S::TILE_ROWS..],
                    };
                    self.tile(s, left, right, depth, i * S::TILE_ROWS, j * width, first, last);
                }
            }
        }
    }
}

impl Panels<'_> {
    /// The tile at row `i` and column `j` of `C`, for one block of `k`.
    #[inline(always)]
    fn tile<S: Simd>(
        &self,
        s: S,
        left: &[f32],
        right: &[f32],
        depth: usize,
        i: usize,
        j: usize,
        first: bool,
        last: bool,
    ) {
        const { assert!(S::TILE_ROWS <= BUFFER_ROWS && VECTORS * S::LANES <= BUFFER_COLS) };
        let width = VECTORS * S::LANES;
        let Edges { m, n, .. } = self.edges;
        let (rows, cols) = (S::TILE_ROWS.min(m - i), width.min(n - j));
        let finish = if last { self.epilogue } else { Epilogue::default() };
        let bias = finish.bias.map(|bias| &bias[j..j + cols]);
        let finish = Epilogue { bias, ..finish };
        if cols == width {
            let _end = self.c.at((i + rows - 1) * n + j + width);
            // Safety: the tile is inside `C`, as its end was just checked, and belongs to this task alone.
            unsafe { self.rows(s, left, right, depth, rows, self.c.at(i * n + j), n, first, finish) }
            return;
        }
        // At the right edge the tile is computed in a buffer of full width.
        let mut buffer = [0.0; BUFFER_ROWS * BUFFER_COLS];
        let mut wide_bias = [0.0; BUFFER_COLS];
        if let Some(bias) = bias {
            wide_bias[..cols].copy_from_slice(bias);
        }
        let finish = Epilogue { bias: bias.map(|_| &wide_bias[..width]), ..finish };
        for row in 0..rows {
            // Safety: this part of `C` belongs to this task alone.
            let c = unsafe { self.c.slice((i + row) * n + j, cols) };
            buffer[row * width..][..cols].copy_from_slice(c);
        }
        // Safety: the buffer holds TILE_ROWS × width numbers.
        unsafe { self.rows(s, left, right, depth, rows, buffer.as_mut_ptr(), width, first, finish) }
        for row in 0..rows {
            // Safety: as above.
            let c = unsafe { self.c.slice((i + row) * n + j, cols) };
            c.copy_from_slice(&buffer[row * width..][..cols]);
        }
    }

    /// Calls the kernel for `rows` rows, or the next larger one that is compiled.
    ///
    /// # Safety
    /// `c` must be valid for `rows` rows of `VECTORS · LANES` numbers with the given stride.
    #[inline(always)]
    unsafe fn rows<S: Simd>(
        &self,
        s: S,
        left: &[f32],
        right: &[f32],
        depth: usize,
        rows: usize,
        c: *mut f32,
        stride: usize,
        first: bool,
        finish: Epilogue,
    ) {
        // There is a kernel for each size of a whole tile. So no kernel reads past the end of a panel.
        const { assert!(matches!(S::TILE_ROWS, 1 | 2 | 4 | 6 | 10 | 14)) };
        assert!(right.len() >= depth * VECTORS * S::LANES);
        macro_rules! kernel {
            ($rows:literal) => {{
                // Safety: `right` was checked; each variant checks `left`; `c` is the caller's promise.
                unsafe {
                    match self.left_kind {
                        Left::Rows => {
                            assert!(depth == 0 || left.len() >= (S::TILE_ROWS - 1) * DEPTH_STRIDE + depth);
                            multiply::<S, $rows, DEPTH_STRIDE>(
                                s, left, 1, right, depth, rows, c, stride, first,
                            )
                        }
                        Left::Columns => {
                            assert!(left.len() >= depth * S::TILE_ROWS);
                            multiply::<S, $rows, 1>(
                                s,
                                left,
                                S::TILE_ROWS,
                                right,
                                depth,
                                rows,
                                c,
                                stride,
                                first,
                            )
                        }
                    }
                }
            }};
        }
        // The conditions are constants: kernels taller than the tile of the set are not compiled.
        match rows {
            1 => kernel!(1),
            2 => kernel!(2),
            3 | 4 => kernel!(4),
            5 | 6 if const { S::TILE_ROWS >= 6 } => kernel!(6),
            7..=10 if const { S::TILE_ROWS >= 10 } => kernel!(10),
            _ if const { S::TILE_ROWS >= 14 } => kernel!(14),
            _ => unreachable!("a tile of {rows} rows"),
        }
        if finish.bias.is_some() || finish.activation.is_some() {
            // Safety: the caller's promise.
            unsafe { finish_tile(s, rows, c, stride, finish) }
        }
    }
}

/// Adds `depth` products to `ROWS × VECTORS` sums; the first `rows` rows of `C` are read and written.
///
/// # Safety
/// `left` must reach `ROWS` rows and `depth` steps of `k`, `right` `depth` rows, and `c` be valid for `rows` rows of
/// `VECTORS · LANES` numbers.
#[inline(always)]
unsafe fn multiply<S: Simd, const ROWS: usize, const APART: usize>(
    s: S,
    left: &[f32],
    a_step: usize,
    right: &[f32],
    depth: usize,
    rows: usize,
    c: *mut f32,
    stride: usize,
    first: bool,
) {
    let mut sums = [[s.splat(0.0); VECTORS]; ROWS];
    // Loops over rows have fixed bounds, because sums stay in registers only if the compiler knows every index.
    if !first {
        for row in 0..ROWS {
            for v in 0..VECTORS {
                if row < rows {
                    // Safety: inside the tile of `C`.
                    sums[row][v] = unsafe { s.load(c.add(row * stride + v * S::LANES)) };
                }
            }
        }
    }
    // Safety: `left` and `right` reach so far, as the caller promises.
    unsafe { s.multiply_rows::<ROWS, APART>(left.as_ptr(), a_step, right.as_ptr(), depth, &mut sums) };
    for row in 0..ROWS {
        for v in 0..VECTORS {
            if row < rows {
                // Safety: inside the tile of `C`.
                unsafe { s.store(c.add(row * stride + v * S::LANES), sums[row][v]) }
            }
        }
    }
}

/// Adds the bias and applies the activation to a tile that has just been written and is still in the L1 cache. (In registers this was
/// not faster. Its code is too long to unroll, and without unrolling sums do not stay in registers.)
///
/// # Safety
/// `c` must be valid for `rows` rows of `VECTORS · LANES` numbers.
#[inline(always)]
unsafe fn finish_tile<S: Simd>(s: S, rows: usize, c: *mut f32, stride: usize, finish: Epilogue) {
    let zeros = [0.0; BUFFER_COLS];
    let bias = finish.bias.unwrap_or(&zeros);
    for v in 0..VECTORS {
        let bias = load(s, bias, v * S::LANES, S::LANES);
        for row in 0..rows {
            // Safety: inside the tile of `C`.
            unsafe {
                let at = c.add(row * stride + v * S::LANES);
                let mut sum = s.add(s.load(at), bias);
                if let Some(activation) = finish.activation {
                    sum = activation.apply(s, sum);
                }
                s.store(at, sum);
            }
        }
    }
}
