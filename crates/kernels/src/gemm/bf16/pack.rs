//! Operands of a product of bf16 in the order in which tiles are loaded.

use super::{BLOCK, Matrix, STEP};
use crate::Cpu;
use crate::amx::TILE;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Real, Simd, load, prefetch};
use half::bf16;
use std::ops::Range;

/// The left operand: rows of bf16 that start at cache lines and are whole tile rows long.
pub(super) struct Left<'a> {
    rows: Rows<'a>,
    /// The length of a row: `k` rounded up.
    pub length: usize,
    /// From row to row.
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
        if a.transposed {
            return Left::turned(cpu, a);
        }
        let (m, k) = (a.rows, a.cols);
        let (length, stride) = padded(k);
        if k != length || !a.data.as_ptr().addr().is_multiple_of(64) {
            return Left { rows: Rows::Copied(copy(cpu, a, stride)), length, stride, m };
        }
        let rest = m % BLOCK;
        let last = (rest > 0).then(|| copy(cpu, Matrix::new(&a.data[(m - rest) * k..], rest, k), length));
        Left { rows: Rows::Given(a.data, last), length, stride: length, m }
    }

    /// Rows that lie in columns: they are turned.
    pub(super) fn turned<T: Real>(cpu: &Cpu, a: Matrix<T>) -> Left<'a> {
        let (length, stride) = padded(a.cols);
        let mut copy = Scratch::take(a.rows.next_multiple_of(BLOCK) * stride);
        cpu.threads.for_pieces(&mut copy, COPIED * stride, |i, to| {
            cpu.isa.dispatch(Turn { a, rows: i * COPIED..a.rows.min((i + 1) * COPIED), to, stride });
        });
        Left { rows: Rows::Copied(copy), length, stride, m: a.rows }
    }

    /// Where the block of rows from `row` on begins; it is whole.
    #[inline(always)]
    pub(super) fn block(&self, row: usize) -> &[bf16] {
        match &self.rows {
            Rows::Given(_, Some(last)) if row + BLOCK > self.m => last,
            Rows::Given(rows, _) => &rows[row * self.stride..(row + BLOCK) * self.stride],
            Rows::Copied(rows) => &rows[row * self.stride..(row + BLOCK) * self.stride],
        }
    }

    /// Whether rows lie so that many of them would share few places in the first cache: then a stretch of them is
    /// better copied together.
    pub(super) fn collides(&self) -> bool {
        (self.stride * size_of::<bf16>()).is_multiple_of(2048)
    }
}

/// The length of rows of `k` in whole tile rows, and how far they lie from each other in a copy: an odd number of cache lines.
fn padded(k: usize) -> (usize, usize) {
    let length = k.next_multiple_of(STEP).max(STEP);
    (length, length + if (length / STEP).is_multiple_of(2) { STEP } else { 0 })
}

/// Rows in whole blocks, with zeros at their end and below them.
fn copy(cpu: &Cpu, a: Matrix<bf16>, stride: usize) -> Scratch<bf16> {
    let mut copy = Scratch::take(a.rows.next_multiple_of(BLOCK) * stride);
    cpu.threads.for_pieces(&mut copy, COPIED * stride, |i, to| {
        for (row, to) in (i * COPIED..).zip(to.chunks_exact_mut(stride)) {
            let from = if row < a.rows { &a.data[row * a.cols..][..a.cols] } else { &[] };
            to[..from.len()].copy_from_slice(from);
            to[from.len()..].fill(bf16::ZERO);
        }
    });
    copy
}

/// Rows copied by one task: from columns, as many as lie in four cache lines.
const COPIED: usize = 4 * BLOCK;

/// Turns columns into some rows, with zeros up to whole tile rows and as many rows as `to` has.
struct Turn<'a, T> {
    a: Matrix<'a, T>,
    rows: Range<usize>,
    to: &'a mut [bf16],
    stride: usize,
}

impl<T: Real> Kernel for Turn<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Turn { a, rows, to, stride } = self;
        let k = a.cols;
        // Pairs along `k` of sixteen rows, turned so that each row's lie side by side.
        let mut pairs = Pairs::new();
        for step in (0..k.next_multiple_of(STEP)).step_by(STEP) {
            for first in (0..to.len() / stride).step_by(TILE) {
                merge_tile(s, a.data, a.rows, step..k, rows.start + first, rows.end, &mut pairs.0);
                // Safety: sixteen rows of `to` from `first` on have sixteen pairs each from `step` on.
                unsafe { pairs.transpose(s, to.as_mut_ptr().add(first * stride + step).cast(), stride / 2) }
            }
        }
    }
}

/// Packs a panel of `BLOCK` columns of `B`, from row `start` on: `[step][2][16 pairs][16 columns]`.
#[inline(always)]
pub(super) fn pack_right<S: Simd, T: Real>(s: S, b: Matrix<T>, column: usize, start: usize, to: &mut [bf16]) {
    let (k, n) = (b.rows, b.cols);
    let mut pairs = Pairs::new();
    for (i, to) in to.chunks_exact_mut(2 * TILE * TILE).enumerate() {
        let (step, first) = (start + i / 2 * STEP, column + i % 2 * TILE);
        assert!(to.as_ptr().addr().is_multiple_of(64));
        // Safety: a tile is sixteen rows of sixteen pairs, aligned as just checked, and any bits are an f32.
        let to = unsafe { &mut *to.as_mut_ptr().cast::<[[f32; TILE]; TILE]>() };
        if b.transposed {
            for i in 0..TILE {
                row_pairs(s, part(b.data, k, first + i..n, step..k.min(step + STEP)), pairs.row(i));
            }
            // Safety: `to` has sixteen rows of sixteen.
            unsafe { pairs.transpose(s, to.as_mut_ptr().cast(), TILE) }
        } else {
            merge_tile(s, b.data, n, step..k, first, n, to);
        }
    }
}

/// The columns `columns` of row `rows.start`, or nothing if that is not below `rows.end`.
#[inline(always)]
fn part<T>(data: &[T], stride: usize, rows: Range<usize>, columns: Range<usize>) -> &[T] {
    if rows.is_empty() || columns.is_empty() { &[] } else { &data[rows.start * stride..][columns] }
}

/// Up to 32 numbers as sixteen pairs, in order, with zeros behind them.
#[inline(always)]
fn row_pairs<S: Simd, T: Real>(s: S, from: &[T], to: &mut [f32; TILE]) {
    if let Some(from) = from.first_chunk::<STEP>() {
        for at in (0..TILE).step_by(S::LANES) {
            let (x, y) = (load(s, from, 2 * at, S::LANES), load(s, from, 2 * at + S::LANES, S::LANES));
            // Safety: LANES pairs from `at` on lie inside the row.
            unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), s.row(x, y)) }
        }
        return;
    }
    for at in (0..TILE).step_by(S::LANES) {
        let (x, y) = (vector(s, from, 2 * at), vector(s, from, 2 * at + S::LANES));
        // Safety: LANES pairs from `at` on lie inside the row.
        unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), s.row(x, y)) }
    }
}

/// How many rows below those that are read the next ones are fetched: neighbours in a column are too far from each other for the
/// processor to guess.
const AHEAD: usize = 4 * STEP;

/// Sixteen columns from `column` on, below `end`, of sixteen pairs of rows from `rows.start` on, below `rows.end`.
#[inline(always)]
fn merge_tile<S: Simd, T: Real>(
    s: S,
    data: &[T],
    stride: usize,
    rows: Range<usize>,
    column: usize,
    end: usize,
    to: &mut [[f32; TILE]; TILE],
) {
    if rows.len() < STEP || column + TILE > end {
        for (p, to) in to.iter_mut().enumerate() {
            merge_rows(s, data, stride, rows.start + 2 * p..rows.end, column, end, to);
        }
        return;
    }
    // The common case: all of them are there.
    let from = &data[rows.start * stride + column..][..(STEP - 1) * stride + TILE];
    for (p, to) in to.iter_mut().enumerate() {
        // Safety: thirty-two rows of sixteen columns, as just checked; prefetching needs no valid place.
        unsafe {
            let (low, high) = (from.as_ptr().add(2 * p * stride), from.as_ptr().add((2 * p + 1) * stride));
            prefetch(low.wrapping_add(AHEAD * stride));
            prefetch(high.wrapping_add(AHEAD * stride));
            for at in (0..TILE).step_by(S::LANES) {
                s.store_u(to.as_mut_ptr().add(at).cast(), T::load_pair(s, low.add(at), high.add(at)));
            }
        }
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
    let columns = column..end.min(column + TILE);
    let low = part(data, stride, rows.clone(), columns.clone());
    let high = part(data, stride, rows.start + 1..rows.end, columns);
    for at in (0..TILE).step_by(S::LANES) {
        let pair = s.pair(vector(s, low, at), vector(s, high, at));
        // Safety: LANES pairs from `at` on lie inside the row.
        unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), pair) }
    }
}

/// The vector from `at` on, with zeros for what is past the end.
#[inline(always)]
fn vector<S: Simd, T: Real>(s: S, from: &[T], at: usize) -> S::F {
    if at + S::LANES <= from.len() {
        load(s, from, at, S::LANES)
    } else if at < from.len() {
        load(s, from, at, from.len() - at)
    } else {
        s.splat(0.0)
    }
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
