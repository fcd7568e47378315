//! Matrix products of int8 with sums in int32, for inference. Weights have a scale for each output, so that the largest
//! magnitude becomes 127. Activations have a scale and a centre for each row: its smallest number, or zero, becomes -127, and its
//! largest number, or zero, becomes 127. Results of GELU or ReLU are nearly all on one side of zero: without a centre they would use
//! only half of int8.
//!
//! With `a = centre + row scale · qₐ` and `w = column scale · q`, a product is
//! `(Σ qₐ·q) · row scale · column scale + (centre · total + bias)`, where `total = column scale · Σ q` belongs to the weights.
//! The sums are exact, so every instruction set and every order gives the same ones. The rest is rounded in the same order on all
//! sets.

mod block;
mod finish;
mod rows_stay;
#[cfg(test)]
mod tests;

use super::{Epilogue, Matrix};
use crate::Cpu;
use crate::aligned::Aligned;
use crate::amx::{PANEL, TILE};
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Real, Simd, load};
use crate::threads::Shared;
use block::Panels;
use finish::Finish;
use rows_stay::{PAIR, Pairs};
use std::ops::Range;

/// Elements of `k` in a row of a tile.
const STEP: usize = 64;
/// Panels in a task of few rows: enough that the cost of starting a task does not matter.
const TASK_PANELS_OF_FEW_ROWS: usize = 4;
/// From so many rows on, rows stay in the L1 cache, and not columns. Fewer rows are a step of decoding, whose weights come from
/// further away than its rows.
const ROWS_STAY_FROM: usize = 4 * PAIR;
/// Rows and panels in a task if rows stay.
const TASK_ROWS: usize = 8 * PAIR;
const TASK_PANELS: usize = 8;
/// Rows of weights that are quantised at a time, before they are packed: whole panels.
const ROWS_QUANTISED_AT_ONCE: usize = 8 * PANEL;
/// Rows that a task quantises: whole tiles.
const QUANTISING_TASK_ROWS: usize = 2 * TILE;
/// The largest magnitude of a quantised number.
const LARGEST: f32 = 127.0;

/// Weights `[n, k]` in int8, packed for products with rows of activations: `[panel][step][2][16 groups][16 columns][4]`.
#[derive(Debug)]
pub struct Int8Weights {
    packed: Aligned<i8>,
    scales: Vec<f32>,
    /// The sum of each output's weights.
    totals: Vec<f32>,
    n: usize,
    k: usize,
}

impl Int8Weights {
    /// Quantises weights `[n, k]`: `n` outputs, each with a scale of its own, to the numbers of [`quantise`].
    pub fn new(cpu: &Cpu, weights: &[f32], n: usize, k: usize) -> Int8Weights {
        assert_eq!(weights.len(), n * k, "int8: {} weights for [{n}, {k}]", weights.len());
        let length = k.next_multiple_of(STEP);
        let (mut packed, mut scales) = (Int8Weights::room(n, k), Vec::with_capacity(n));
        let mut totals = Vec::with_capacity(n);
        // Some rows at a time, so that no large part of the weights is in memory twice.
        for first in (0..n).step_by(ROWS_QUANTISED_AT_ONCE) {
            let count = ROWS_QUANTISED_AT_ONCE.min(n - first);
            let rows = Int8Rows::of_weights(cpu, Matrix::new(&weights[first * k..][..count * k], count, k));
            scales.extend_from_slice(&rows.scales);
            totals.extend((0..count).map(|i| total(&rows.rows[i * length..][..k], rows.scales[i])));
            pack(&rows.rows, length, count, k, &mut packed[first * length..]);
        }
        Int8Weights { packed, scales, totals, n, k }
    }

    /// Weights `[n, k]` that were quantised before, each row with its scale.
    pub fn from_rows(rows: &[i8], scales: &[f32], n: usize, k: usize) -> Int8Weights {
        assert_eq!((rows.len(), scales.len()), (n * k, n), "int8: weights and scales for [{n}, {k}]");
        let mut packed = Int8Weights::room(n, k);
        pack(rows, k, n, k, &mut packed);
        let totals = (0..n).map(|i| total(&rows[i * k..][..k], scales[i])).collect();
        Int8Weights { packed, scales: scales.to_vec(), totals, n, k }
    }

    /// Memory for packed weights, filled with zeros.
    fn room(n: usize, k: usize) -> Aligned<i8> {
        Aligned::lasting(n.next_multiple_of(PANEL) * k.next_multiple_of(STEP))
    }

    /// How many outputs there are.
    pub fn outputs(&self) -> usize {
        self.n
    }

    fn panel(&self, panel: usize) -> &[i8] {
        let size = PANEL * self.k.next_multiple_of(STEP);
        &self.packed[panel * size..][..size]
    }
}

/// The sum of quantised weights.
fn total(row: &[i8], scale: f32) -> f32 {
    row.iter().map(|&q| i32::from(q)).sum::<i32>() as f32 * scale
}

/// Packs `n` rows of `k` numbers, which lie `stride` apart. `to` must be zero.
fn pack(rows: &[i8], stride: usize, n: usize, k: usize, to: &mut [i8]) {
    let steps = k.div_ceil(STEP);
    // For each group of four, column by column of a tile: the order in which they lie there.
    let tiles = to.chunks_exact_mut(TILE * TILE * 4).take(n.div_ceil(PANEL) * 2 * steps);
    for (number, tile) in tiles.enumerate() {
        let (panel, step, half) = (number / 2 / steps, number / 2 % steps, number % 2);
        let first = panel * PANEL + half * TILE;
        for (group, to) in tile.chunks_exact_mut(TILE * 4).enumerate() {
            let from = k.min(step * STEP + group * 4);
            for (j, to) in (first..n).zip(to.as_chunks_mut::<4>().0) {
                let row = &rows[j * stride..][from..k];
                match row.first_chunk() {
                    Some(four) => *to = *four,
                    None => to[..row.len()].copy_from_slice(row),
                }
            }
        }
    }
}

/// Quantises a row of weights and returns its scale. The largest magnitude becomes 127; other numbers are rounded to the nearest whole
/// number, and halves to the even one.
pub fn quantise(row: &[f32], to: &mut [i8]) -> f32 {
    assert_eq!(row.len(), to.len(), "int8: {} weights into {} places", row.len(), to.len());
    // Sixteen maxima, so that the compiler can use vectors.
    let mut most = [0f32; 16];
    for part in row.chunks(16) {
        for (most, x) in most.iter_mut().zip(part) {
            *most = if x.abs() > *most { x.abs() } else { *most };
        }
    }
    let scale = most.into_iter().fold(0f32, f32::max) / LARGEST;
    let inverse = inverse(scale);
    // Near this number floats are whole. So adding it rounds, halves to even, without a function call for each number.
    const WHOLE: f32 = 12_582_912.0;
    for (to, x) in to.iter_mut().zip(row) {
        *to = (x * inverse + WHOLE - WHOLE) as i8;
    }
    scale
}

/// The factor that quantises a row: `1 / scale`, or zero if the scale is too small to divide by.
fn inverse(scale: f32) -> f32 {
    if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 }
}

/// Quantised rows `[m, k]`, each with its scale and its centre: of activations, or of weights before they are packed.
#[derive(Debug)]
pub struct Int8Rows {
    /// Padded with zeros to whole tiles.
    rows: Scratch<i8>,
    scales: Scratch<f32>,
    centres: Scratch<f32>,
    k: usize,
}

impl Int8Rows {
    /// Quantises rows of activations.
    pub fn new<A: Real>(cpu: &Cpu, a: Matrix<A>) -> Int8Rows {
        Int8Rows::quantise::<A, true>(cpu, a)
    }

    /// Quantises rows of weights, whose centre is zero, to the numbers of [`quantise`].
    fn of_weights(cpu: &Cpu, a: Matrix<f32>) -> Int8Rows {
        Int8Rows::quantise::<f32, false>(cpu, a)
    }

    fn quantise<A: Real, const CENTRED: bool>(cpu: &Cpu, a: Matrix<A>) -> Int8Rows {
        assert!(!a.transposed, "int8: only plain products of rows");
        let (m, length) = (a.rows, a.cols.next_multiple_of(STEP));
        let mut rows = Scratch::<i8>::take(m.next_multiple_of(TILE) * length);
        let mut scales = Scratch::<f32>::take(m);
        let mut centres = Scratch::<f32>::take(m);
        let (to, all_centres) = (Shared::new(&mut rows), Shared::new(&mut centres));
        cpu.threads.for_pieces(&mut scales, QUANTISING_TASK_ROWS, |i, scales| {
            let first = i * QUANTISING_TASK_ROWS;
            // Safety: the rows of this piece, which no other task has.
            let (to, centres) = unsafe {
                let to = to.slice(first * length, scales.len().next_multiple_of(TILE) * length);
                (to, all_centres.slice(first, scales.len()))
            };
            cpu.isa.dispatch(Quantise::<_, CENTRED> { a, first, scales, centres, to, length });
        });
        Int8Rows { rows, scales, centres, k: a.cols }
    }

    /// The length of a row.
    pub fn width(&self) -> usize {
        self.k
    }
}

/// `C = activation(A·Wᵀ + bias)` with `A: [m, k]` quantised row by row: `C: [m, n]`.
pub fn gemm_int8<A: Real, C: Real>(
    cpu: &Cpu,
    a: Matrix<A>,
    w: &Int8Weights,
    c: &mut [C],
    epilogue: Epilogue,
) {
    gemm_int8_columns(cpu, &Int8Rows::new(cpu, a), w, 0..w.n, c, epilogue);
}

/// Some columns of [`gemm_int8`]: `C: [m, columns]`. The bias is that of all columns.
///
/// # Panics
/// If the first column is no multiple of 32.
pub fn gemm_int8_columns<C: Real>(
    cpu: &Cpu,
    a: &Int8Rows,
    w: &Int8Weights,
    columns: Range<usize>,
    c: &mut [C],
    epilogue: Epilogue,
) {
    let Int8Rows { rows, scales, centres, k } = a;
    assert!(!epilogue.accumulate, "int8: only plain products of rows");
    assert!(
        columns.start.is_multiple_of(PANEL) && columns.end <= w.n,
        "int8: columns {columns:?} of {}",
        w.n
    );
    super::check((scales.len(), *k), (w.k, w.n), scales.len() * w.n, epilogue);
    assert_eq!(c.len(), scales.len() * columns.len(), "int8: {} numbers for {columns:?}", c.len());
    let finish = Finish { scales, centres, w, columns: &columns, c: Shared::new(c), epilogue };
    let (isa, left, length) = (cpu.isa, &rows[..], k.next_multiple_of(STEP));
    let panels = columns.start / PANEL..columns.end.div_ceil(PANEL);
    let columns_stay = |rows: Range<usize>, panels| {
        cpu.isa.dispatch(Panels { isa, left, length, w, rows, panels, finish });
    };
    if scales.len() >= ROWS_STAY_FROM && length > 0 && cpu.isa.amx().is_some() {
        let tasks = panels.len().div_ceil(TASK_PANELS);
        cpu.threads.run(scales.len().div_ceil(TASK_ROWS) * tasks, |task| {
            let first = panels.start + task % tasks * TASK_PANELS;
            let panels = first..panels.end.min(first + TASK_PANELS);
            let start = task / tasks * TASK_ROWS;
            let end = scales.len().min(start + TASK_ROWS);
            // A single tile of rows may be left over.
            let middle = end.min(start + (end - start).div_ceil(TILE) / 2 * PAIR);
            cpu.isa.dispatch(Pairs {
                isa,
                left,
                length,
                w,
                rows: start..middle,
                panels: panels.clone(),
                finish,
            });
            if middle < end {
                columns_stay(middle..end, panels);
            }
        });
        return;
    }
    // Sums are exact, so the work may be cut in any way: a single thread takes all panels in one task.
    let each = if cpu.threads.count() == 1 { panels.len().max(1) } else { TASK_PANELS_OF_FEW_ROWS };
    cpu.threads.run(panels.len().div_ceil(each), |task| {
        let first = panels.start + task * each;
        columns_stay(0..scales.len(), first..panels.end.min(first + each));
    });
}

/// Quantises some rows. Rows and columns that pad them to whole tiles become zero.
struct Quantise<'a, T, const CENTRED: bool> {
    a: Matrix<'a, T>,
    first: usize,
    scales: &'a mut [f32],
    centres: &'a mut [f32],
    to: &'a mut [i8],
    length: usize,
}

impl<T: Real, const CENTRED: bool> Kernel for Quantise<'_, T, CENTRED> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let k = self.a.cols;
        self.scales.fill(0.0);
        self.centres.fill(0.0);
        for (i, to) in self.to.chunks_exact_mut(self.length.max(1)).enumerate() {
            if i >= self.scales.len() {
                to.fill(0);
                continue;
            }
            let row = &self.a.data[(self.first + i) * k..][..k];
            if CENTRED {
                (self.scales[i], self.centres[i]) = quantise_centred(s, row, to);
            } else {
                self.scales[i] = quantise_row(s, row, to);
            }
            to[k..].fill(0);
        }
    }
}

/// [`quantise`] in vectors.
#[inline(always)]
pub(crate) fn quantise_row<S: Simd, T: Real>(s: S, row: &[T], to: &mut [i8]) -> f32 {
    let (least, greatest) = range(s, row);
    let scale = s.greatest(s.max(greatest, s.sub(s.splat(0.0), least))) / LARGEST;
    write_row(s, row, to, 0.0, inverse(scale));
    scale
}

/// Quantises a row so that its smallest number becomes -127 and its largest 127. Returns its scale and its centre.
#[inline(always)]
fn quantise_centred<S: Simd, T: Real>(s: S, row: &[T], to: &mut [i8]) -> (f32, f32) {
    let (least, greatest) = range(s, row);
    let (least, greatest) = (-s.greatest(s.sub(s.splat(0.0), least)), s.greatest(greatest));
    // Halves, whose sum and difference are finite.
    let (least, greatest) = (0.5 * least, 0.5 * greatest);
    let (scale, centre) = ((greatest - least) / LARGEST, greatest + least);
    write_row(s, row, to, centre, inverse(scale));
    (scale, centre)
}

/// Writes the quantised numbers of a row in whole vectors. `to` must have room for whole vectors; what is written behind the end of the
/// row is the quantised zero.
#[inline(always)]
fn write_row<S: Simd, T: Real>(s: S, row: &[T], to: &mut [i8], centre: f32, inverse: f32) {
    let k = row.len();
    let (centre, inverse) = (s.splat(centre), s.splat(inverse));
    assert!(to.len() >= k.next_multiple_of(S::LANES));
    let whole = k - k % S::LANES;
    // Safety: whole vectors inside the row, and a place for each, as just checked.
    unsafe {
        for at in (0..whole).step_by(S::LANES) {
            let x = T::load(s, row.as_ptr().add(at));
            s.store_i8(to.as_mut_ptr().add(at), s.mul(s.sub(x, centre), inverse));
        }
        if whole < k {
            let x = T::load_first(s, row.as_ptr().add(whole), k - whole);
            s.store_i8(to.as_mut_ptr().add(whole), s.mul(s.sub(x, centre), inverse));
        }
    }
}

/// For each lane, the smallest and the largest of its numbers and zero.
#[inline(always)]
fn range<S: Simd, T: Real>(s: S, row: &[T]) -> (S::F, S::F) {
    // Two of each, so that one comparison need not wait for the one before.
    let (mut least, mut greatest) = ([s.splat(0.0); 2], [s.splat(0.0); 2]);
    let mut at = 0;
    while at + 2 * S::LANES <= row.len() {
        for i in 0..2 {
            // Safety: two vectors inside the row.
            let x = unsafe { T::load(s, row.as_ptr().add(at + i * S::LANES)) };
            least[i] = s.min(least[i], x);
            greatest[i] = s.max(greatest[i], x);
        }
        at += 2 * S::LANES;
    }
    while at < row.len() {
        let x = load(s, row, at, S::LANES.min(row.len() - at));
        least[0] = s.min(least[0], x);
        greatest[0] = s.max(greatest[0], x);
        at += S::LANES;
    }
    (s.min(least[0], least[1]), s.max(greatest[0], greatest[1]))
}
