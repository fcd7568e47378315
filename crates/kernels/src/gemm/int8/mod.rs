//! Matrix products of int8 with sums in int32, for inference: weights have a scale for each output, activations one for
//! each row, both so that the largest magnitude becomes 127.
//!
//! The sums are exact, so that every instruction set and every order gives the same ones; what is left to rounding is
//! `sum · row scale · column scale + bias`, the same on all of them too.

mod block;
#[cfg(test)]
mod tests;

use super::{Epilogue, Matrix};
use crate::aligned::Aligned;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Real, Simd, load};
use crate::threads::Shared;
use crate::{Cpu, amx};
use block::Panels;

/// Elements of `k` in a row of a tile.
const STEP: usize = 64;
/// Rows and columns of a block of sums.
const BLOCK: usize = amx::BLOCK;
const TILE: usize = amx::TILE;
/// Panels of a task: enough that what it takes to begin one does not count.
const PANELS: usize = 4;
/// The largest magnitude of a quantised number.
const LARGEST: f32 = 127.0;

/// Weights `[n, k]` in int8, packed for products with rows of activations: `[panel][step][2][16 groups][16 columns][4]`.
#[derive(Debug)]
pub struct Int8Weights {
    packed: Aligned<i8>,
    scales: Vec<f32>,
    n: usize,
    k: usize,
}

impl Int8Weights {
    /// Quantises weights `[n, k]`: `n` outputs, each with a scale of its own.
    pub fn new(weights: &[f32], n: usize, k: usize) -> Int8Weights {
        assert_eq!(weights.len(), n * k, "int8: {} weights for [{n}, {k}]", weights.len());
        let mut rows = vec![0; n * k];
        let quantised = |j: usize| quantise(&weights[j * k..][..k], &mut rows[j * k..][..k]);
        let scales: Vec<f32> = (0..n).map(quantised).collect();
        Int8Weights::from_rows(&rows, &scales, n, k)
    }

    /// Weights `[n, k]` that were quantised before, each row with its scale.
    pub fn from_rows(rows: &[i8], scales: &[f32], n: usize, k: usize) -> Int8Weights {
        assert_eq!((rows.len(), scales.len()), (n * k, n), "int8: weights and scales for [{n}, {k}]");
        let steps = k.div_ceil(STEP);
        let mut packed = Aligned::zeros(n.next_multiple_of(BLOCK) * steps * STEP);
        for j in 0..n {
            let row = &rows[j * k..][..k];
            let (panel, tile, column) = (j / BLOCK, j % BLOCK / TILE, j % TILE);
            for (i, x) in row.iter().enumerate() {
                let (step, group, byte) = (i / STEP, i % STEP / 4, i % 4);
                let at = ((((panel * steps + step) * 2 + tile) * TILE + group) * TILE + column) * 4 + byte;
                packed[at] = *x;
            }
        }
        Int8Weights { packed, scales: scales.to_vec(), n, k }
    }

    fn panel(&self, panel: usize) -> &[i8] {
        let size = BLOCK * self.k.next_multiple_of(STEP);
        &self.packed[panel * size..][..size]
    }
}

/// Quantises a row of weights and returns its scale: the largest magnitude becomes 127, the others the nearest whole
/// number, of two as near the even one.
pub fn quantise(row: &[f32], to: &mut [i8]) -> f32 {
    assert_eq!(row.len(), to.len(), "int8: {} weights into {} places", row.len(), to.len());
    let scale = row.iter().fold(0f32, |most, x| most.max(x.abs())) / LARGEST;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for (to, x) in to.iter_mut().zip(row) {
        *to = (x * inverse).round_ties_even() as i8;
    }
    scale
}

/// `C = activation(A·Wᵀ + bias)` with `A: [m, k]` quantised row by row: `C: [m, n]`.
pub fn gemm_int8<A: Real, C: Real>(
    cpu: &Cpu,
    a: Matrix<A>,
    w: &Int8Weights,
    c: &mut [C],
    epilogue: Epilogue,
) {
    assert!(!a.transposed && !epilogue.accumulate, "int8: only plain products of rows");
    super::check((a.rows, a.cols), (w.k, w.n), c.len(), epilogue);
    let (m, length) = (a.rows, a.cols.next_multiple_of(STEP));
    let mut rows = Scratch::<i8>::take(m.next_multiple_of(BLOCK) * length);
    let mut scales = Scratch::<f32>::take(m);
    let to = Shared::new(&mut rows);
    cpu.threads.for_pieces(&mut scales, BLOCK, |i, scales| {
        // Safety: the rows of this piece, which no other task has.
        let to = unsafe { to.slice(i * BLOCK * length, BLOCK * length) };
        cpu.isa.dispatch(Quantise { a, first: i * BLOCK, scales, to, length });
    });
    let c = Shared::new(c);
    let panels = w.n.div_ceil(BLOCK);
    // Sums are exact, so that a thread that is alone need not begin anew for every few panels.
    let each = if cpu.threads.count() == 1 { panels } else { PANELS };
    cpu.threads.run(panels.div_ceil(each.max(1)), |task| {
        let (rows, scales) = (&*rows, &*scales);
        let panels = task * each..panels.min((task + 1) * each);
        cpu.isa.dispatch(Panels { isa: cpu.isa, rows, scales, length, w, panels, c, epilogue });
    });
}

/// Quantises a block of rows; missing rows and columns are zero.
struct Quantise<'a, T> {
    a: Matrix<'a, T>,
    first: usize,
    scales: &'a mut [f32],
    to: &'a mut [i8],
    length: usize,
}

impl<T: Real> Kernel for Quantise<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let k = self.a.cols;
        for (i, to) in self.to.chunks_exact_mut(self.length.max(1)).enumerate() {
            let Some(scale) = self.scales.get_mut(i) else {
                to.fill(0);
                continue;
            };
            let row = &self.a.data[(self.first + i) * k..][..k];
            *scale = s.greatest(greatest_magnitude(s, row)) / LARGEST;
            let inverse = s.splat(if *scale > 0.0 { 1.0 / *scale } else { 0.0 });
            // Rows are padded to whole tiles, so that the last vector has its place too: zeros after the end of the row.
            assert!(to.len() >= k.next_multiple_of(S::LANES));
            let whole = k - k % S::LANES;
            // Safety: whole vectors inside the row, and a place for each, as just checked.
            unsafe {
                for at in (0..whole).step_by(S::LANES) {
                    let x = T::load(s, row.as_ptr().add(at));
                    s.store_i8(to.as_mut_ptr().add(at), s.mul(x, inverse));
                }
                if whole < k {
                    let x = T::load_first(s, row.as_ptr().add(whole), k - whole);
                    s.store_i8(to.as_mut_ptr().add(whole), s.mul(x, inverse));
                }
            }
            to[k..].fill(0);
        }
    }
}

/// The greatest magnitudes of a row, lane by lane.
#[inline(always)]
fn greatest_magnitude<S: Simd, T: Real>(s: S, row: &[T]) -> S::F {
    // Four of them, since each takes some time to answer.
    let mut most = [s.splat(0.0); 4];
    let magnitude = |x| s.max(x, s.sub(s.splat(0.0), x));
    let mut at = 0;
    while at + 4 * S::LANES <= row.len() {
        for i in 0..4 {
            // Safety: four vectors inside the row.
            let x = unsafe { T::load(s, row.as_ptr().add(at + i * S::LANES)) };
            most[i] = s.max(most[i], magnitude(x));
        }
        at += 4 * S::LANES;
    }
    while at < row.len() {
        let x = load(s, row, at, S::LANES.min(row.len() - at));
        most[0] = s.max(most[0], magnitude(x));
        at += S::LANES;
    }
    s.max(s.max(most[0], most[1]), s.max(most[2], most[3]))
}
