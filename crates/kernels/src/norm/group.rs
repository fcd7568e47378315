//! Group norm: channels of a picture are normalised in groups, over all of its pixels.
//!
//! A picture has the rows from `offsets[s]` up to `offsets[s + 1]`. For each of them and each group of channels, with `μ` and `σ²` the
//! mean and the variance (plus `ε`) of its `n` numbers:
//!
//! ```text
//! x̂ = (x - μ) / σ,    y = γ·x̂ + β
//! g = γ·dy,           dx = (g - mean(g) - x̂·mean(g·x̂)) / σ
//! dγ = Σ dy·x̂,        dβ = Σ dy          over pixels and then over pictures, in their order
//! ```
//!
//! A picture is a task. Sums go down its columns, [`RUN`] rows in single precision and then on in double precision.

use crate::isa::Kernel;
use crate::mean::assert_offsets;
use crate::pass::{add_rows, assert_same_length, rows_of};
use crate::scratch::Scratch;
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// Rows that are added in single precision.
const RUN: usize = 128;

/// What channels are normalised with.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// How many groups of channels there are.
    pub groups: usize,
    /// `γ: [channels]`
    pub gamma: &'a [f32],
    /// `β: [channels]`
    pub beta: &'a [f32],
    /// `ε`
    pub epsilon: f32,
}

impl Groups<'_> {
    #[track_caller]
    fn check(&self, op: &str) -> usize {
        let channels = self.gamma.len();
        assert!(
            self.groups > 0 && channels.is_multiple_of(self.groups) && self.beta.len() == channels,
            "{op}: {} groups of {channels} channels with {} shifts",
            self.groups,
            self.beta.len()
        );
        channels
    }
}

/// `y = norm(x)`: `x, y: [rows, channels]`, `offsets: [pictures + 1]`, `stats: [pictures, groups, 2]` (`μ` and `1/σ`).
pub fn group_norm<T: Real>(
    cpu: &Cpu,
    weights: Groups,
    offsets: &[i32],
    x: &[T],
    y: &mut [T],
    stats: &mut [f32],
) {
    let (channels, pictures) = (weights.check("group_norm"), offsets.len().saturating_sub(1));
    assert_offsets("group_norm", offsets, rows_of("group_norm", x, channels), pictures);
    assert_same_length("group_norm", x, y);
    assert_stats("group_norm", stats, pictures * weights.groups);
    let (y, stats) = (Shared::new(y), Shared::new(stats));
    cpu.threads.run(pictures, |picture| {
        let (start, end) = (offsets[picture] as usize * channels, offsets[picture + 1] as usize * channels);
        let numbers = 2 * weights.groups;
        // Safety: rows and statistics of a picture belong to one task.
        let (y, stats) = unsafe { (y.slice(start, end - start), stats.slice(picture * numbers, numbers)) };
        cpu.isa.dispatch(Forward { weights, x: &x[start..end], y, stats });
    });
}

/// The gradient of [`group_norm`], from what went in and its statistics. Those of `γ` and `β`, `[channels]` each, are added to.
pub fn group_norm_backward<T: Real>(
    cpu: &Cpu,
    weights: Groups,
    offsets: &[i32],
    (x, stats): (&[T], &[f32]),
    dy: &[T],
    dx: &mut [T],
    [dgamma, dbeta]: [&mut [f32]; 2],
) {
    const OP: &str = "group_norm_backward";
    let (channels, pictures) = (weights.check(OP), offsets.len().saturating_sub(1));
    assert_offsets(OP, offsets, rows_of(OP, x, channels), pictures);
    assert_same_length(OP, x, dx);
    assert_same_length(OP, dy, dx);
    assert_same_length(OP, dgamma, weights.gamma);
    assert_same_length(OP, dbeta, weights.gamma);
    assert_stats(OP, stats, pictures * weights.groups);
    let mut sums = Scratch::<f32>::take(pictures * 2 * channels);
    let (dx, shared) = (Shared::new(dx), Shared::new(&mut sums));
    cpu.threads.run(pictures, |picture| {
        let (start, end) = (offsets[picture] as usize * channels, offsets[picture + 1] as usize * channels);
        let numbers = 2 * weights.groups;
        let stats = &stats[picture * numbers..][..numbers];
        // Safety: rows and sums of a picture belong to one task.
        let (dx, sums) =
            unsafe { (dx.slice(start, end - start), shared.slice(picture * 2 * channels, 2 * channels)) };
        cpu.isa.dispatch(Backward { weights, x: &x[start..end], stats, dy: &dy[start..end], dx, sums });
    });
    for sums in sums.chunks_exact(2 * channels) {
        for (total, &sum) in dbeta.iter_mut().chain(dgamma.iter_mut()).zip(sums) {
            *total += sum;
        }
    }
}

#[track_caller]
fn assert_stats(op: &str, stats: &[f32], groups: usize) {
    assert!(stats.len() == 2 * groups, "{op}: stats of {} elements for {groups} groups", stats.len());
}

/// `Σ term` over the rows for each of `N` sums of a column.
#[inline(always)]
fn sum_columns<S: Simd, const N: usize>(
    s: S,
    (rows, columns): (usize, usize),
    term: impl Fn(usize, usize, usize) -> [S::F; N] + Copy,
) -> [Vec<f64>; N] {
    let mut totals = [const { Vec::new() }; N];
    totals.iter_mut().for_each(|total| total.resize(columns, 0.0));
    let mut runs = [const { Vec::new() }; N];
    for first in (0..rows).step_by(RUN) {
        for run in &mut runs {
            run.clear();
            run.resize(columns, 0f32);
        }
        add_rows(
            s,
            RUN.min(rows - first),
            runs.each_mut().map(Vec::as_mut_slice),
            #[inline(always)]
            |row, at, n| term(first + row, at, n),
        );
        for (total, run) in totals.iter_mut().zip(&runs) {
            total.iter_mut().zip(run).for_each(|(total, &sum)| *total += f64::from(sum));
        }
    }
    totals
}

/// The mean over each group, for each channel of it.
fn mean_of_groups(sums: &[f64], groups: usize, rows: usize) -> Vec<f32> {
    let size = sums.len() / groups;
    let mean = |group: &[f64]| (group.iter().sum::<f64>() / (size * rows).max(1) as f64) as f32;
    sums.chunks_exact(size).flat_map(|group| std::iter::repeat_n(mean(group), size)).collect()
}

struct Forward<'a, T> {
    weights: Groups<'a>,
    x: &'a [T],
    y: &'a mut [T],
    stats: &'a mut [f32],
}

impl<T: Real> Kernel for Forward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Groups { groups, gamma, beta, epsilon } = self.weights;
        let channels = gamma.len();
        let (rows, size) = (self.x.len() / channels, channels / groups);
        let [sums] = sum_columns(
            s,
            (rows, channels),
            #[inline(always)]
            |row, at, n| [load(s, self.x, row * channels + at, n)],
        );
        let means = mean_of_groups(&sums, groups, rows);
        let [squares] = sum_columns(
            s,
            (rows, channels),
            #[inline(always)]
            |row, at, n| {
                let x = s.sub(load(s, self.x, row * channels + at, n), load(s, &means, at, n));
                [s.mul(x, x)]
            },
        );
        let variances = mean_of_groups(&squares, groups, rows);
        // y = scale · x + shift
        let (mut scale, mut shift) = (vec![0.0; channels], vec![0.0; channels]);
        for channel in 0..channels {
            let inverse = 1.0 / (variances[channel] + epsilon).sqrt();
            scale[channel] = gamma[channel] * inverse;
            shift[channel] = beta[channel];
            self.stats[channel / size * 2] = means[channel];
            self.stats[channel / size * 2 + 1] = inverse;
        }
        for (x, y) in self.x.chunks_exact(channels).zip(self.y.chunks_exact_mut(channels)) {
            for_vectors(
                s,
                channels,
                #[inline(always)]
                |at, n| {
                    let centred = s.sub(load(s, x, at, n), load(s, &means, at, n));
                    let moved = s.fma(centred, load(s, &scale, at, n), load(s, &shift, at, n));
                    store(s, y, at, n, moved);
                },
            );
        }
    }
}

/// `x̂` from `at` on, which is in this column.
#[inline(always)]
fn normed<S: Simd, T: Real>(
    s: S,
    x: &[T],
    (means, inverses): (&[f32], &[f32]),
    (at, column): (usize, usize),
    n: usize,
) -> S::F {
    s.mul(s.sub(load(s, x, at, n), load(s, means, column, n)), load(s, inverses, column, n))
}

struct Backward<'a, T> {
    weights: Groups<'a>,
    x: &'a [T],
    stats: &'a [f32],
    dy: &'a [T],
    dx: &'a mut [T],
    /// Those of `dβ` and `dγ`.
    sums: &'a mut [f32],
}

impl<T: Real> Kernel for Backward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Groups { groups, gamma, .. } = self.weights;
        let channels = gamma.len();
        let (rows, size) = (self.x.len() / channels, channels / groups);
        let of_channel = |which: usize| -> Vec<f32> {
            (0..channels).map(|channel| self.stats[channel / size * 2 + which]).collect()
        };
        let (means, inverses) = (of_channel(0), of_channel(1));
        let stats = (&means[..], &inverses[..]);
        let [of_dy, of_both] = sum_columns(
            s,
            (rows, channels),
            #[inline(always)]
            |row, at, n| {
                let dy = load(s, self.dy, row * channels + at, n);
                [dy, s.mul(dy, normed(s, self.x, stats, (row * channels + at, at), n))]
            },
        );
        let (dbeta, dgamma) = self.sums.split_at_mut(channels);
        dbeta.iter_mut().zip(&of_dy).for_each(|(to, &sum)| *to = sum as f32);
        dgamma.iter_mut().zip(&of_both).for_each(|(to, &sum)| *to = sum as f32);
        let weighted = |sums: &[f64]| -> Vec<f64> {
            sums.iter().zip(gamma).map(|(sum, &gamma)| sum * f64::from(gamma)).collect()
        };
        let mean = mean_of_groups(&weighted(&of_dy), groups, rows);
        let mean_with = mean_of_groups(&weighted(&of_both), groups, rows);
        for row in 0..rows {
            let start = row * channels;
            let dx = &mut self.dx[start..start + channels];
            for_vectors(
                s,
                channels,
                #[inline(always)]
                |at, n| {
                    let g = s.mul(load(s, self.dy, start + at, n), load(s, gamma, at, n));
                    let along =
                        s.mul(normed(s, self.x, stats, (start + at, at), n), load(s, &mean_with, at, n));
                    let rest = s.sub(s.sub(g, load(s, &mean, at, n)), along);
                    store(s, dx, at, n, s.mul(rest, load(s, &inverses, at, n)));
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bits, check, cpus, dot, gradient, normal, normals, wide, written};
    use half::bf16;

    const OFFSETS: [i32; 5] = [0, 5, 5, 6, 306];

    /// The norm as its formula says, in double precision.
    fn plain(
        groups: usize,
        channels: usize,
        offsets: &[i32],
        x: &[f64],
        gamma: &[f64],
        beta: &[f64],
    ) -> Vec<f64> {
        let (mut y, size) = (vec![0.0; x.len()], channels / groups);
        for rows in offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize) {
            for group in 0..groups {
                let places: Vec<usize> = rows
                    .clone()
                    .flat_map(|row| (0..size).map(move |c| row * channels + group * size + c))
                    .collect();
                let mean = places.iter().map(|&i| x[i]).sum::<f64>() / places.len() as f64;
                let variance =
                    places.iter().map(|&i| (x[i] - mean).powi(2)).sum::<f64>() / places.len() as f64;
                for &i in &places {
                    let c = i % channels;
                    y[i] = gamma[c] * (x[i] - mean) / (variance + 1e-5).sqrt() + beta[c];
                }
            }
        }
        y
    }

    fn forward<T: Real>(groups: usize, channels: usize) {
        let (gamma, beta) = (normal(1, channels), normal(2, channels));
        let x = normals::<T>(3, 306 * channels);
        let expected = plain(groups, channels, &OFFSETS, &wide(&x), &wide(&gamma), &wide(&beta));
        let weights = Groups { groups, gamma: &gamma, beta: &beta, epsilon: 1e-5 };
        check(&expected, 1e-5, |cpu| {
            let mut stats = vec![0.0; 4 * groups * 2];
            written(x.len(), |y| group_norm(cpu, weights, &OFFSETS, &x, y, &mut stats))
        });
    }

    #[test]
    fn it_matches_the_formula() {
        for (groups, channels) in [(1, 3), (4, 24), (32, 64), (5, 75)] {
            forward::<f32>(groups, channels);
            forward::<bf16>(groups, channels);
        }
    }

    #[test]
    fn gradients_match_differences() {
        let (groups, channels, offsets) = (2, 6, [0, 3, 5]);
        let [x, dy] = [3, 4].map(|seed| normal(seed, 5 * channels));
        let (gamma, beta) = (normal(1, channels), normal(2, channels));
        let value = |x: &[f64], gamma: &[f64], beta: &[f64]| {
            dot(&plain(groups, channels, &offsets, x, gamma, beta), &wide(&dy))
        };
        let (wx, wgamma, wbeta) = (wide(&x), wide(&gamma), wide(&beta));
        let expected = [
            gradient(&wx, |x| value(x, &wgamma, &wbeta)),
            gradient(&wgamma, |gamma| value(&wx, gamma, &wbeta)).iter().map(|g| g + 1.0).collect(),
            gradient(&wbeta, |beta| value(&wx, &wgamma, beta)).iter().map(|g| g + 1.0).collect(),
        ]
        .concat();
        let weights = Groups { groups, gamma: &gamma, beta: &beta, epsilon: 1e-5 };
        check(&expected, 1e-4, |cpu| {
            let (mut stats, mut y) = (vec![0.0; 2 * groups * 2], vec![0.0; x.len()]);
            group_norm(cpu, weights, &offsets, &x, &mut y, &mut stats);
            let (mut dx, mut dgamma, mut dbeta) = (y.clone(), vec![1.0; channels], vec![1.0; channels]);
            let into = [&mut dgamma[..], &mut dbeta[..]];
            group_norm_backward(cpu, weights, &offsets, (&x, &stats), &dy, &mut dx, into);
            [dx, dgamma, dbeta].concat()
        });
    }

    #[test]
    fn a_picture_has_the_same_bits_alone() {
        let (channels, weights) = (24, [1.5; 24]);
        let x = normals::<f32>(3, 306 * channels);
        let norm = |cpu: &Cpu, offsets: &[i32], x: &[f32]| {
            let groups = Groups { groups: 4, gamma: &weights, beta: &weights, epsilon: 1e-5 };
            let mut stats = vec![0.0; (offsets.len() - 1) * 8];
            written(x.len(), |y| group_norm(cpu, groups, offsets, x, y, &mut stats))
        };
        for cpu in cpus() {
            let together = norm(&cpu, &OFFSETS, &x);
            let alone = norm(&cpu, &[0, 300], &x[6 * channels..]);
            assert_eq!(bits(&alone), bits(&together[6 * channels..]), "{}", cpu.isa);
        }
    }
}
