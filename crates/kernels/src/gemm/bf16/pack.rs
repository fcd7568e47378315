//! Operands of a product of bf16 in the order in which tiles are loaded.

use super::{BLOCK, Matrix, STEP};
use crate::Cpu;
use crate::amx::TILE;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Real, Simd, load};
use half::bf16;
use std::ops::Range;

/// The left operand: rows of bf16 that start at cache lines and are whole tile rows long.
pub(super) struct Left<'a> {
    rows: Rows<'a>,
    /// From row to row, which is also their length: `k` rounded up.
    pub stride: usize,
    pub m: usize,
}

enum Rows<'a> {
    /// As they are, but for the last ones: where they do not fill a block, they are copied, with zeros behind them.
    Given(&'a [bf16], Option<Scratch<bf16>>),
    /// A copy, filled up to whole blocks with zeros.
    Copied(Scratch<bf16>),
}

impl<'a> Left<'a> {
    pub(super) fn new(cpu: &Cpu, a: Matrix<'a, bf16>) -> Left<'a> {
        let (m, k) = (a.rows, a.cols);
        let stride = k.next_multiple_of(STEP).max(STEP);
        let fits = !a.transposed && k == stride && a.data.as_ptr().addr().is_multiple_of(64);
        let rows = if fits {
            let rest = m % BLOCK;
            let copy = (rest > 0).then(|| copy(cpu, Matrix::new(&a.data[(m - rest) * k..], rest, k), stride));
            Rows::Given(a.data, copy)
        } else {
            Rows::Copied(copy(cpu, a, stride))
        };
        Left { rows, stride, m }
    }

    /// Where the block of rows from `row` on begins; it is whole.
    #[inline(always)]
    pub(super) fn block(&self, row: usize) -> *const bf16 {
        let whole = |rows: &[bf16], row: usize| rows[row * self.stride..(row + BLOCK) * self.stride].as_ptr();
        match &self.rows {
            Rows::Given(_, Some(rest)) if row + BLOCK > self.m => whole(rest, 0),
            Rows::Given(rows, _) => whole(rows, row),
            Rows::Copied(rows) => whole(rows, row),
        }
    }
}

fn copy(cpu: &Cpu, a: Matrix<bf16>, stride: usize) -> Scratch<bf16> {
    let rows = a.rows.next_multiple_of(BLOCK);
    let mut copy = Scratch::take(rows * stride);
    cpu.threads.for_pieces(&mut copy, BLOCK * stride, |i, to| {
        cpu.isa.dispatch(PackLeft { a, rows: i * BLOCK..a.rows.min((i + 1) * BLOCK), to, stride });
    });
    copy
}

/// Copies a block of rows of `A`, with zeros up to `stride` columns and `BLOCK` rows.
struct PackLeft<'a> {
    a: Matrix<'a, bf16>,
    rows: Range<usize>,
    to: &'a mut [bf16],
    stride: usize,
}

impl Kernel for PackLeft<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let PackLeft { a, rows, to, stride } = self;
        let k = a.cols;
        if !a.transposed {
            for (i, to) in to.chunks_exact_mut(stride).enumerate() {
                let from = if i < rows.len() { &a.data[(rows.start + i) * k..][..k] } else { &[] };
                to[..from.len()].copy_from_slice(from);
                to[from.len()..].fill(bf16::ZERO);
            }
            return;
        }
        // Pairs along `k` of sixteen rows, turned so that each row's lie side by side.
        let mut pairs = Pairs::new();
        for first in (0..BLOCK).step_by(TILE) {
            for step in (0..stride).step_by(STEP) {
                for p in 0..TILE {
                    merge_rows(
                        s,
                        a.data,
                        a.rows,
                        step + 2 * p..k,
                        rows.start + first,
                        rows.end,
                        pairs.row(p),
                    );
                }
                // Safety: sixteen rows of `to` from `first` on have sixteen pairs each from `step` on.
                unsafe { pairs.transpose(s, to.as_mut_ptr().add(first * stride + step).cast(), stride / 2) }
            }
        }
    }
}

/// Packs a panel of `BLOCK` columns of `B` for some steps of `k`: `[step][2][16 pairs][16 columns]`.
#[inline(always)]
pub(super) fn pack_right<S: Simd, T: Real>(
    s: S,
    b: Matrix<T>,
    column: usize,
    depth: Range<usize>,
    to: &mut [f32],
) {
    let (k, n) = (b.rows, b.cols);
    let mut pairs = Pairs::new();
    for (i, to) in to.chunks_exact_mut(TILE * TILE).enumerate() {
        let (step, first) = (depth.start + i / 2 * STEP, column + i % 2 * TILE);
        if !b.transposed {
            for p in 0..TILE {
                let row: &mut [f32; TILE] =
                    (&mut to[p * TILE..][..TILE]).try_into().expect("a row of a tile");
                merge_rows(s, b.data, n, step + 2 * p..k, first, n, row);
            }
            continue;
        }
        for column in 0..TILE {
            let row = pairs.row(column);
            for at in (0..TILE).step_by(S::LANES) {
                let from = step + 2 * at;
                let lanes =
                    |from: usize| if first + column < n { k.saturating_sub(from).min(S::LANES) } else { 0 };
                let start = (first + column) * k;
                let x = load_or_zeros(s, b.data, start + from, lanes(from));
                let y = load_or_zeros(s, b.data, start + from + S::LANES, lanes(from + S::LANES));
                // Safety: LANES pairs from `at` on lie inside the row.
                unsafe { s.store_u(row.as_mut_ptr().add(at).cast(), s.row(x, y)) }
            }
        }
        // Safety: `to` has sixteen rows of sixteen.
        unsafe { pairs.transpose(s, to.as_mut_ptr(), TILE) }
    }
}

/// Sixteen columns from `column` on, below `end`, of the rows `rows.start` and the next, below `rows.end`, as pairs.
#[inline(always)]
fn merge_rows<S: Simd, T: Real>(
    s: S,
    data: &[T],
    stride: usize,
    rows: Range<usize>,
    column: usize,
    end: usize,
    to: &mut [f32; TILE],
) {
    for at in (0..TILE).step_by(S::LANES) {
        let first = column + at;
        let lanes = |row: usize| if row < rows.end { end.saturating_sub(first).min(S::LANES) } else { 0 };
        let low = load_or_zeros(s, data, rows.start * stride + first, lanes(rows.start));
        let high = load_or_zeros(s, data, (rows.start + 1) * stride + first, lanes(rows.start + 1));
        // Safety: LANES pairs from `at` on lie inside the row.
        unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), s.pair(low, high)) }
    }
}

#[inline(always)]
fn load_or_zeros<S: Simd, T: Real>(s: S, data: &[T], at: usize, lanes: usize) -> S::F {
    if lanes == 0 { s.splat(0.0) } else { load(s, data, at, lanes) }
}

/// Sixteen rows of sixteen pairs of bf16, about to be turned.
#[repr(C, align(64))]
struct Pairs([[f32; TILE]; TILE]);

impl Pairs {
    #[inline(always)]
    fn new() -> Pairs {
        Pairs([[0.0; TILE]; TILE])
    }

    #[inline(always)]
    fn row(&mut self, row: usize) -> &mut [f32; TILE] {
        &mut self.0[row]
    }

    /// # Safety
    /// `to` must be valid for writing sixteen rows of sixteen, `stride` apart.
    #[inline(always)]
    unsafe fn transpose<S: Simd>(&self, s: S, to: *mut f32, stride: usize) {
        for i in (0..TILE).step_by(S::LANES) {
            for j in (0..TILE).step_by(S::LANES) {
                // Safety: blocks of LANES × LANES inside of both.
                unsafe { s.transpose(self.0[i].as_ptr().add(j), TILE, to.add(j * stride + i), stride) }
            }
        }
    }
}
