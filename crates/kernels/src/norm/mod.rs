//! Layer norm and RMS norm, with residual and dropout.
//!
//! For each row `z` of width `d`, with `μ` its mean, or zero in RMS norm, and `σ² = Σ (z - μ)² / d + ε`:
//!
//! ```text
//! ẑ = (z - μ) / σ,    y = γ·ẑ + β
//! g = γ·dy,           dz = (g - mean(g) - ẑ·mean(g·ẑ)) / σ
//! dγ = Σ dy·ẑ,        dβ = Σ dy          over the rows, in their order
//! ```
//!
//! RMS norm takes no mean from `g` either, and as a rule it has no `β`.
//!
//! The variance is the mean of the squared differences from the mean, which loses no digits. It takes a second pass over the row, but the
//! row is in the L1 cache then, so memory is read once. `μ` and `1/σ` are kept for the backward pass.
//!
//! Activations are stored as [`Real`]s, parameters, their gradients and statistics as `f32`. Everything is computed from `z` as it is
//! stored, so that the backward pass reads the same `z`; likewise `dr` from `dz` as it is stored.

mod group;

pub use group::{Groups, group_norm, group_norm_backward};

use crate::elementwise::{AddDropout, Drop};
use crate::isa::Kernel;
use crate::pass::{COLUMNS, add_rows, assert_same_length, map_vectors, rows_of, rows_per_piece, sum_of};
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Dropout, Real};

/// Which norm is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NormKind {
    /// Layer norm: `μ` is the mean of the row.
    #[default]
    Layer,
    /// RMS norm: `μ` is zero.
    Rms,
}

/// What rows are normalised with.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// Which norm it is.
    pub kind: NormKind,
    /// `γ: [d]`
    pub gamma: &'a [f32],
    /// `β: [d]`; none adds nothing.
    pub beta: Option<&'a [f32]>,
    /// `ε`
    pub epsilon: f32,
}

/// What is added to the input before it is normalised, and where the sum goes.
#[derive(Debug)]
pub struct Residual<'a, T> {
    /// `r: [rows, d]`
    pub r: &'a [T],
    /// What `r` goes through. The element index is the flat one.
    pub dropout: Option<Dropout>,
    /// `z = x + dropout(r)`, `[rows, d]`.
    pub z: &'a mut [T],
}

/// Where the gradient of what was dropped from goes.
#[derive(Debug)]
pub struct Dropped<'a, T> {
    /// What `r` went through.
    pub dropout: Dropout,
    /// `dr = dropout(dz)`, `[rows, d]`.
    pub dr: &'a mut [T],
}

/// `y = norm(x)`, or `y = norm(x + dropout(r))` in one pass: `x, y: [rows, d]`, `stats: [rows, 2]` (`μ` and `1/σ`).
pub fn norm<T: Real>(
    cpu: &Cpu,
    weights: Weights,
    x: &[T],
    residual: Option<Residual<T>>,
    y: &mut [T],
    stats: &mut [f32],
) {
    let d = weights.gamma.len();
    let rows = rows_of("norm", x, d);
    if let Some(beta) = weights.beta {
        assert_same_length("norm", beta, weights.gamma);
    }
    assert_same_length("norm", x, y);
    assert_stats("norm", stats, rows);
    let residual = residual.map(|Residual { r, dropout, z }| {
        assert_same_length("norm", r, y);
        assert_same_length("norm", z, y);
        (r, dropout, Shared::new(z))
    });
    let stats = Shared::new(stats);
    let size = rows_per_piece(d) * d;
    cpu.threads.for_pieces(y, size, |i, y| {
        let (start, len) = (i * size, y.len());
        let residual = residual.map(|(r, dropout, z)| {
            // Safety: the same elements as `y` has, which no other task has.
            Residual { r: &r[start..][..len], dropout, z: unsafe { z.slice(start, len) } }
        });
        // Safety: two for each row of this piece.
        let stats = unsafe { stats.slice(2 * start / d, 2 * len / d) };
        cpu.isa.dispatch(Forward { start, x: &x[start..][..len], residual, weights, y, stats });
    });
}

/// The gradient of [`norm`], from the rows `z` that were normalised: `z, dy, dz: [rows, d]`, `stats: [rows, 2]`. `dz` is that of
/// `x`, and without dropout that of `r` as well.
///
/// The gradients of `γ` and `β`, `[d]` each, are added to with `accumulate`, and else overwritten.
pub fn norm_backward<T: Real>(
    cpu: &Cpu,
    (kind, gamma): (NormKind, &[f32]),
    z: &[T],
    stats: &[f32],
    dy: &[T],
    dz: &mut [T],
    dropped: Option<Dropped<T>>,
    (dgamma, dbeta): (&mut [f32], Option<&mut [f32]>),
    accumulate: bool,
) {
    const OP: &str = "norm_backward";
    let d = gamma.len();
    let rows = rows_of(OP, z, d);
    assert_same_length(OP, z, dz);
    assert_same_length(OP, dy, dz);
    assert_stats(OP, stats, rows);
    let dropped = dropped.map(|Dropped { dropout, dr }| {
        assert_same_length(OP, dr, dz);
        (dropout, Shared::new(dr))
    });
    let size = rows_per_piece(d) * d;
    cpu.threads.for_pieces(dz, size, |i, dz| {
        let (start, len) = (i * size, dz.len());
        let dropped = dropped.map(|(dropout, dr)| {
            // Safety: the same elements as `dz` has, which no other task has.
            Dropped { dropout, dr: unsafe { dr.slice(start, len) } }
        });
        let stats = &stats[2 * start / d..][..2 * len / d];
        let (z, dy) = (&z[start..][..len], &dy[start..][..len]);
        cpu.isa.dispatch(Backward { start, kind, z, gamma, stats, dy, dz, dropped });
    });
    sum_backward(cpu, z, stats, dy, dgamma, dbeta, accumulate);
}

/// The gradients of `gamma` and `beta`: down the columns, so that sums are in the order of rows without
/// scratch.
fn sum_backward<T: Real>(
    cpu: &Cpu,
    z: &[T],
    stats: &[f32],
    dy: &[T],
    dgamma: &mut [f32],
    dbeta: Option<&mut [f32]>,
    accumulate: bool,
) {
    let d = dgamma.len();
    let of_beta = dbeta.as_ref().map_or(d, |dbeta| dbeta.len());
    assert!(
        of_beta == d && d * stats.len() == 2 * z.len(),
        "norm_backward: dgamma of {d} and dbeta of {of_beta} elements for {} rows in {} elements",
        stats.len() / 2,
        z.len(),
    );
    let dbeta = dbeta.map(Shared::new);
    cpu.threads.for_pieces(dgamma, COLUMNS, |i, dgamma| {
        let column = i * COLUMNS;
        // Safety: the same elements as `dgamma` has, which no other task has.
        let mut dbeta = dbeta.map(|dbeta| unsafe { dbeta.slice(column, dgamma.len()) });
        if !accumulate {
            dgamma.fill(0.0);
            if let Some(dbeta) = &mut dbeta {
                dbeta.fill(0.0);
            }
        }
        cpu.isa.dispatch(SumBackward { z, stats, dy, d, column, dgamma, dbeta });
    });
}

fn assert_stats(op: &str, stats: &[f32], rows: usize) {
    assert!(stats.len() == 2 * rows, "{op}: stats of {} elements for {rows} rows", stats.len());
}

struct Forward<'a, T> {
    /// The flat index of the first element.
    start: usize,
    x: &'a [T],
    residual: Option<Residual<'a, T>>,
    weights: Weights<'a>,
    y: &'a mut [T],
    stats: &'a mut [f32],
}

impl<T: Real> Kernel for Forward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let Weights { kind, gamma, beta, epsilon } = self.weights;
        let d = gamma.len();
        for (row, (y, stats)) in self.y.chunks_exact_mut(d).zip(self.stats.chunks_exact_mut(2)).enumerate() {
            let at = row * d..(row + 1) * d;
            let x = &self.x[at.clone()];
            let z = match &mut self.residual {
                Some(Residual { r, dropout, z }) => {
                    let z = &mut z[at.clone()];
                    map_vectors(s, AddDropout(*dropout), self.start + at.start, [x, &r[at]], z);
                    &*z
                }
                None => x,
            };
            let mean = match kind {
                NormKind::Rms => 0.0,
                NormKind::Layer => {
                    let [sum] = sum_of(
                        s,
                        d,
                        #[inline(always)]
                        |at, n| [load(s, z, at, n)],
                    );
                    sum / d as f32
                }
            };
            let wide_mean = s.splat(mean);
            let [squares] = sum_of(
                s,
                d,
                #[inline(always)]
                |at, n| {
                    let difference = s.sub(load(s, z, at, n), wide_mean);
                    [s.mul(difference, difference)]
                },
            );
            let inverse = 1.0 / (squares / d as f32 + epsilon).sqrt();
            let wide_inverse = s.splat(inverse);
            match beta {
                Some(beta) => for_vectors(
                    s,
                    d,
                    #[inline(always)]
                    |at, n| {
                        let unit = s.mul(s.sub(load(s, z, at, n), wide_mean), wide_inverse);
                        store(s, y, at, n, s.fma(unit, load(s, gamma, at, n), load(s, beta, at, n)));
                    },
                ),
                None => for_vectors(
                    s,
                    d,
                    #[inline(always)]
                    |at, n| {
                        let unit = s.mul(s.sub(load(s, z, at, n), wide_mean), wide_inverse);
                        store(s, y, at, n, s.mul(unit, load(s, gamma, at, n)));
                    },
                ),
            }
            (stats[0], stats[1]) = (mean, inverse);
        }
    }
}

struct Backward<'a, T> {
    /// The flat index of the first element.
    start: usize,
    kind: NormKind,
    z: &'a [T],
    gamma: &'a [f32],
    stats: &'a [f32],
    dy: &'a [T],
    dz: &'a mut [T],
    dropped: Option<Dropped<'a, T>>,
}

impl<T: Real> Kernel for Backward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let d = self.gamma.len();
        for (row, (dz, stats)) in self.dz.chunks_exact_mut(d).zip(self.stats.chunks_exact(2)).enumerate() {
            let at = row * d..(row + 1) * d;
            let (z, dy) = (&self.z[at.clone()], &self.dy[at.clone()]);
            let (mean, inverse) = (s.splat(stats[0]), s.splat(stats[1]));
            let sums = sum_of(
                s,
                d,
                #[inline(always)]
                |at, n| {
                    let g = s.mul(load(s, self.gamma, at, n), load(s, dy, at, n));
                    let unit = s.mul(s.sub(load(s, z, at, n), mean), inverse);
                    [g, s.mul(g, unit)]
                },
            );
            // A mean that was not taken from the row takes nothing from its gradient.
            let mean_g = if self.kind == NormKind::Rms { 0.0 } else { sums[0] / d as f32 };
            let [mean_g, mean_g_unit] = [s.splat(mean_g), s.splat(sums[1] / d as f32)];
            for_vectors(
                s,
                d,
                #[inline(always)]
                |at, n| {
                    let g = s.mul(load(s, self.gamma, at, n), load(s, dy, at, n));
                    let unit = s.mul(s.sub(load(s, z, at, n), mean), inverse);
                    let rest = s.sub(s.sub(g, mean_g), s.mul(unit, mean_g_unit));
                    store(s, dz, at, n, s.mul(rest, inverse));
                },
            );
            if let Some(Dropped { dropout, dr }) = &mut self.dropped {
                let start = self.start + at.start;
                map_vectors(s, Drop(*dropout), start, [&*dz], &mut dr[at]);
            }
        }
    }
}

struct SumBackward<'a, T> {
    z: &'a [T],
    stats: &'a [f32],
    dy: &'a [T],
    d: usize,
    column: usize,
    dgamma: &'a mut [f32],
    dbeta: Option<&'a mut [f32]>,
}

impl<T: Real> Kernel for SumBackward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let SumBackward { z, stats, dy, d, column, dgamma, dbeta } = self;
        let rows = stats.len() / 2;
        match dbeta {
            Some(dbeta) => add_rows(
                s,
                rows,
                [dgamma, dbeta],
                #[inline(always)]
                |row, at, n| terms(s, z, &stats[2 * row..][..2], dy, row * d + column + at, n),
            ),
            None => add_rows(
                s,
                rows,
                [dgamma],
                #[inline(always)]
                |row, at, n| {
                    let [of_gamma, _] = terms(s, z, &stats[2 * row..][..2], dy, row * d + column + at, n);
                    [of_gamma]
                },
            ),
        }
    }
}

/// What the `n` elements from `at` on, of a row with these statistics, add to the gradients of `γ` and `β`.
#[inline(always)]
fn terms<S: Simd, T: Real>(s: S, z: &[T], stats: &[f32], dy: &[T], at: usize, n: usize) -> [S::F; 2] {
    let unit = s.mul(s.sub(load(s, z, at, n), s.splat(stats[0])), s.splat(stats[1]));
    let dy = load(s, dy, at, n);
    [s.mul(dy, unit), dy]
}

#[cfg(test)]
mod tests;
