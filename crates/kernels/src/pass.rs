//! The parts of kernels that pass over memory once: pieces of work, maps, sums along a row, sums over the rows.
//!
//! Closures in a kernel are `#[inline(always)]`. Otherwise a closure that is called in two places would be compiled without the
//! instructions of the set, and each instruction would be a call.

use crate::Cpu;
use crate::isa::Kernel;
use crate::simd::{Real, Simd, for_vectors, load, store};

/// Elements of a task: 32 KiB of each operand.
pub(crate) const PIECE: usize = 8192;
/// Columns of a task that goes down all rows: eight cache lines of each.
pub(crate) const COLUMNS: usize = 128;
/// Elements that are summed in single precision; sums of so many are then added in double precision.
pub(crate) const SUMMED: usize = 4096;

/// How many rows of width `d` the slice holds.
#[track_caller]
pub(crate) fn rows_of<T>(op: &str, x: &[T], d: usize) -> usize {
    assert!(d > 0 && x.len().is_multiple_of(d), "{op}: {} elements are not rows of {d}", x.len());
    x.len() / d
}

/// Panics if an input does not have the shape of the output.
#[track_caller]
pub(crate) fn assert_same_length<A, B>(op: &str, x: &[A], y: &[B]) {
    assert!(x.len() == y.len(), "{op}: an input of {} elements for an output of {}", x.len(), y.len());
}

/// How many rows of width `d` a task has. It depends on the width alone.
pub(crate) fn rows_per_piece(d: usize) -> usize {
    (PIECE / d).max(1)
}

/// A function from `N` vectors to one, together with the flat index of their first element.
pub(crate) trait Map<const N: usize>: Copy + Sync {
    /// The function. Lanes past the end of the data are zero, and their results are not used.
    fn apply<S: Simd>(self, s: S, index: usize, x: [S::F; N]) -> S::F;
}

/// `y = f(x)` over slices of one length, on all threads.
pub(crate) fn map<T: Real, const N: usize>(cpu: &Cpu, op: &str, f: impl Map<N>, x: [&[T]; N], y: &mut [T]) {
    for x in x {
        assert_same_length(op, x, y);
    }
    cpu.threads.for_pieces(y, PIECE, |i, y| {
        let start = i * PIECE;
        cpu.isa.dispatch(MapPiece { f, start, x: x.map(|x| &x[start..][..y.len()]), y });
    });
}

/// `y = f(x)` inside a kernel; the first element has the flat index `start`.
#[inline(always)]
pub(crate) fn map_vectors<S: Simd, T: Real, const N: usize>(
    s: S,
    f: impl Map<N>,
    start: usize,
    x: [&[T]; N],
    y: &mut [T],
) {
    for_vectors(
        s,
        y.len(),
        #[inline(always)]
        |at, n| {
            let mut vectors = [s.splat(0.0); N];
            for i in 0..N {
                vectors[i] = load(s, x[i], at, n);
            }
            store(s, y, at, n, f.apply(s, start + at, vectors));
        },
    );
}

/// `Σ f(x)`: runs of [`SUMMED`] elements in single precision, their sums in double precision, both in order.
pub(crate) fn reduce<T: Real>(cpu: &Cpu, f: impl Map<1>, x: &[T]) -> f64 {
    const TASKS: usize = 256;
    let mut sums = [0.0; TASKS];
    let size = x.len().div_ceil(TASKS).next_multiple_of(SUMMED).max(SUMMED);
    cpu.threads.for_pieces(&mut sums[..x.len().div_ceil(size)], 1, |i, sum| {
        let x = &x[i * size..];
        sum[0] = cpu.isa.dispatch(Reduce { f, x: &x[..size.min(x.len())] });
    });
    sums.iter().sum()
}

/// The first `n` lanes of `x`, and `other` in the rest.
#[inline(always)]
pub(crate) fn first_lanes<S: Simd>(s: S, n: usize, x: S::F, other: f32) -> S::F {
    if n == S::LANES { x } else { s.select(s.lt_u(s.iota(), s.splat_u(n as u32)), x, s.splat(other)) }
}

/// `N` sums over a row at once: `term(at, n)` gives what the `n` elements from `at` on add to each.
///
/// Even and odd vectors have sums of their own, because an addition has to wait for the one before it.
#[inline(always)]
pub(crate) fn sum_of<S: Simd, const N: usize>(
    s: S,
    len: usize,
    mut term: impl FnMut(usize, usize) -> [S::F; N],
) -> [f32; N] {
    let (mut even, mut odd) = ([s.splat(0.0); N], [s.splat(0.0); N]);
    let paired = len - len % (2 * S::LANES);
    let mut at = 0;
    while at < paired {
        let (first, second) = (term(at, S::LANES), term(at + S::LANES, S::LANES));
        for i in 0..N {
            even[i] = s.add(even[i], first[i]);
            odd[i] = s.add(odd[i], second[i]);
        }
        at += 2 * S::LANES;
    }
    for_vectors(
        s,
        len - paired,
        #[inline(always)]
        |at, n| {
            let last = term(paired + at, n);
            for i in 0..N {
                even[i] = s.add(even[i], first_lanes(s, n, last[i], 0.0));
            }
        },
    );
    let mut sums = [0.0; N];
    for i in 0..N {
        sums[i] = s.sum(s.add(even[i], odd[i]));
    }
    sums
}

/// `y[i] += term(r, …)[i]` for each row `r` in order, where `term(r, at, n)` gives the `n` columns from `at`
/// on.
///
/// Eight rows are added between a load and a store of `y`.
#[inline(always)]
pub(crate) fn add_rows<S: Simd, const N: usize>(
    s: S,
    rows: usize,
    y: [&mut [f32]; N],
    term: impl Fn(usize, usize, usize) -> [S::F; N],
) {
    for first in (0..rows).step_by(8) {
        for_vectors(
            s,
            y[0].len(),
            #[inline(always)]
            |at, n| {
                let mut sums = [s.splat(0.0); N];
                for i in 0..N {
                    sums[i] = load(s, y[i], at, n);
                }
                for row in first..rows.min(first + 8) {
                    let terms = term(row, at, n);
                    for i in 0..N {
                        sums[i] = s.add(sums[i], terms[i]);
                    }
                }
                for i in 0..N {
                    store(s, y[i], at, n, sums[i]);
                }
            },
        );
    }
}

struct MapPiece<'a, F, T, const N: usize> {
    f: F,
    start: usize,
    x: [&'a [T]; N],
    y: &'a mut [T],
}

impl<F: Map<N>, T: Real, const N: usize> Kernel for MapPiece<'_, F, T, N> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        map_vectors(s, self.f, self.start, self.x, self.y);
    }
}

struct Reduce<'a, F, T> {
    f: F,
    x: &'a [T],
}

impl<F: Map<1>, T: Real> Kernel for Reduce<'_, F, T> {
    type Output = f64;
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f64 {
        let mut total = 0.0;
        for x in self.x.chunks(SUMMED) {
            let [sum] = sum_of(
                s,
                x.len(),
                #[inline(always)]
                |at, n| [self.f.apply(s, at, [load(s, x, at, n)])],
            );
            total += sum as f64;
        }
        total
    }
}
