//! The parts of attention: small products in a cache, copies, masks, memory.
//!
//! Loops over vectors are written out here and in the kernels above; see [`Kernel`] for what closures may do.

use super::Rows;
use crate::isa::{Isa, Kernel};
use crate::simd::{Simd, load, store};
use crate::{Dropout, Real};
use std::ops::Range;

/// Queries, and keys, in a block of scores. The bits of a sum over keys depend on it.
pub(super) const BLOCK: usize = 64;

/// The largest number of lanes of a vector, to which rows are padded.
pub(super) const MOST_LANES: usize = 16;

/// Elements of a matrix with padded rows, on any instruction set.
pub(super) fn size(rows: usize, columns: usize) -> usize {
    rows.next_multiple_of(MOST_LANES) * columns.next_multiple_of(MOST_LANES)
}

/// Cuts memory into pieces of the given sizes, each of whole cache lines.
pub(super) fn cut<T, const N: usize>(mut memory: &mut [T], sizes: [usize; N]) -> [&mut [T]; N] {
    sizes.map(|size| memory.split_off_mut(..size).expect("the memory has the sum of the sizes"))
}

/// `C[m, n] = A[m, k] · B[k, n]`.
///
/// Rows and columns of `a` are `strides` apart; `b` and `c` are dense, and `n` is a multiple of the lanes.
/// Each element is one chain of multiply-adds in the order of `k`, so that its bits do not depend on `m` or
/// `n`.
#[inline(always)]
pub(super) fn multiply(
    isa: Isa,
    shape: [usize; 3],
    a: &[f32],
    strides: [usize; 2],
    b: &[f32],
    c: &mut [f32],
) {
    isa.dispatch(Product { add: false, shape, a, strides, b, c });
}

/// `C[m, n] += A[m, k] · B[k, n]`, else like [`multiply`].
#[inline(always)]
pub(super) fn multiply_add(
    isa: Isa,
    shape: [usize; 3],
    a: &[f32],
    strides: [usize; 2],
    b: &[f32],
    c: &mut [f32],
) {
    isa.dispatch(Product { add: true, shape, a, strides, b, c });
}

/// A kernel of its own that is not inlined into the others, because its tiles would be too much code in eight places.
struct Product<'a> {
    add: bool,
    shape: [usize; 3],
    a: &'a [f32],
    strides: [usize; 2],
    b: &'a [f32],
    c: &'a mut [f32],
}

impl Product<'_> {
    /// All rows of `V` vectors of columns, from column `j` on.
    #[inline(always)]
    fn strip<S: Simd, const V: usize>(&mut self, s: S, j: usize) {
        let m = self.shape[0];
        let mut i = 0;
        while i < m {
            let left = m - i;
            // Safety: `run` checked that rows up to `m` and columns up to `n` are inside the slices, and
            // `i + R <= m`, `j + V * LANES <= n`.
            i += unsafe {
                if const { most_rows::<S>(V) >= 8 } && left >= 8 {
                    self.tile::<S, 8, V>(s, i, j)
                } else if const { most_rows::<S>(V) >= 4 } && left >= 4 {
                    self.tile::<S, 4, V>(s, i, j)
                } else if const { most_rows::<S>(V) >= 2 } && left >= 2 {
                    self.tile::<S, 2, V>(s, i, j)
                } else {
                    self.tile::<S, 1, V>(s, i, j)
                }
            };
        }
    }

    /// `R` rows of `V` vectors, summed in registers; returns `R`.
    ///
    /// # Safety
    /// The tile must be inside the matrices.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&mut self, s: S, i: usize, j: usize) -> usize {
        let ([row, column], [_, n, k]) = (self.strides, self.shape);
        // Safety: the caller's promise.
        unsafe {
            let c = self.c.as_mut_ptr().add(i * n + j);
            let mut sums = [[s.splat(0.0); V]; R];
            if self.add {
                for r in 0..R {
                    for v in 0..V {
                        sums[r][v] = s.load(c.add(r * n + v * S::LANES));
                    }
                }
            }
            let mut a = self.a.as_ptr().add(i * row);
            let mut b = self.b.as_ptr().add(j);
            for _ in 0..k {
                let mut vectors = [s.splat(0.0); V];
                for v in 0..V {
                    vectors[v] = s.load(b.add(v * S::LANES));
                }
                for r in 0..R {
                    let factor = s.splat(*a.add(r * row));
                    for v in 0..V {
                        sums[r][v] = s.fma(factor, vectors[v], sums[r][v]);
                    }
                }
                // The last step may lead past the end. Nothing is read there.
                (a, b) = (a.wrapping_add(column), b.wrapping_add(n));
            }
            for r in 0..R {
                for v in 0..V {
                    s.store(c.add(r * n + v * S::LANES), sums[r][v]);
                }
            }
        }
        R
    }
}

/// Rows of a tile that is `vectors` wide: as many sums as leave registers for the operands, and enough to hide the time that a
/// multiply-add takes.
const fn most_rows<S: Simd>(vectors: usize) -> usize {
    S::TILE_ROWS.next_power_of_two() / vectors
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let [m, n, k] = self.shape;
        assert!(m > 0 && k > 0 && n.is_multiple_of(S::LANES));
        let (row, column) = ((m - 1).checked_mul(self.strides[0]), (k - 1).checked_mul(self.strides[1]));
        let last = row.zip(column).and_then(|(row, column)| row.checked_add(column));
        assert!(last.is_some_and(|last| last < self.a.len()));
        assert!(k.checked_mul(n).is_some_and(|size| size <= self.b.len()));
        assert!(m.checked_mul(n).is_some_and(|size| size <= self.c.len()));
        let mut j = 0;
        while j < n {
            let vectors = (n - j) / S::LANES;
            if vectors >= 4 {
                self.strip::<S, 4>(s, j);
                j += 4 * S::LANES;
            } else if vectors >= 2 {
                self.strip::<S, 2>(s, j);
                j += 2 * S::LANES;
            } else {
                self.strip::<S, 1>(s, j);
                j += S::LANES;
            }
        }
    }
}

/// `len` rounded up to whole vectors.
#[inline(always)]
pub(super) fn padded<S: Simd>(_: S, len: usize) -> usize {
    len.next_multiple_of(S::LANES)
}

/// Copies the first `[rows, columns]` of a matrix, times a factor, to rows of whole vectors with zeros at
/// their end.
#[inline(always)]
pub(super) fn copy<S: Simd, T: Real>(
    s: S,
    from: Rows<T>,
    rows: usize,
    columns: usize,
    factor: f32,
    to: &mut [f32],
) {
    let stride = padded(s, columns);
    for i in 0..rows {
        let row = from.row(i, columns);
        for at in (0..columns).step_by(S::LANES) {
            let x = s.mul(load(s, row, at, S::LANES.min(columns - at)), s.splat(factor));
            store(s, to, i * stride + at, S::LANES, x);
        }
    }
}

/// Copies the transpose of the first `[rows, columns]` of a matrix to rows of whole vectors with zeros at
/// their end.
#[inline(always)]
pub(super) fn transpose<S: Simd, T: Real>(s: S, from: Rows<T>, rows: usize, columns: usize, to: &mut [f32]) {
    let stride = padded(s, rows);
    assert!(stride.checked_mul(padded(s, columns)).is_some_and(|size| size <= to.len()));
    for i in (0..rows).step_by(S::LANES) {
        for j in (0..columns).step_by(S::LANES) {
            let (m, n) = (S::LANES.min(rows - i), S::LANES.min(columns - j));
            let block = from.at(i, j);
            let to = to[j * stride + i..].as_mut_ptr();
            // Safety: a whole block can be read, from the matrix, as its last element is inside, or from `edge`,
            // and written, as `to` has whole vectors of rows and of columns.
            unsafe {
                if m == S::LANES && n == S::LANES {
                    let last = (m - 1).checked_mul(block.stride).and_then(|row| row.checked_add(n - 1));
                    assert!(last.is_some_and(|last| last < block.data.len()));
                    s.transpose(block.data.as_ptr(), block.stride, to, stride);
                } else {
                    let mut edge = [0f32; MOST_LANES * MOST_LANES];
                    for r in 0..m {
                        store(s, &mut edge, r * S::LANES, S::LANES, load(s, block.row(r, n), 0, n));
                    }
                    s.transpose(edge.as_ptr(), S::LANES, to, stride);
                }
            }
        }
    }
}

/// The part of `seen` that lies among the `len` keys from `start` on, counted from there.
#[inline(always)]
pub(super) fn part(seen: Range<usize>, start: usize, len: usize) -> Range<usize> {
    let inside = |key: usize| key.saturating_sub(start).min(len);
    inside(seen.start)..inside(seen.end)
}

/// Scores from column `at` on with those outside of `seen` set to minus infinity, whose exponential is zero.
#[inline(always)]
pub(super) fn masked<S: Simd>(s: S, scores: S::F, at: usize, seen: &Range<usize>) -> S::F {
    let column = s.add_u(s.splat_u(at as u32), s.iota());
    let nothing = s.splat(f32::NEG_INFINITY);
    let scores = s.select(s.lt_u(column, s.splat_u(seen.end as u32)), scores, nothing);
    s.select(s.lt_u(column, s.splat_u(seen.start as u32)), nothing, scores)
}

/// What to subtract from scores of which `x` is the maximum or the `lse`: `x`, or zero where nothing is seen,
/// as the difference of two infinities is not a number.
#[inline(always)]
pub(super) fn base(x: f32) -> f32 {
    if x == f32::NEG_INFINITY { 0.0 } else { x }
}

/// What the weights from key `at` on are multiplied by.
#[inline(always)]
pub(super) fn factors<S: Simd>(s: S, dropout: Option<Dropout>, at: usize) -> S::F {
    match dropout {
        Some(dropout) => dropout.factors(s, at as u32),
        None => s.splat(1.0),
    }
}
