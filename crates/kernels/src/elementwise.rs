//! Sums, products, scaling, dropout and sums over rows.
//!
//! These run at the speed of memory, so each is one pass, cut into pieces that fit the L1 cache.
//! Activations are stored as [`Real`]s; sums over many of them, and rows of parameters, are `f32`.

use crate::isa::Kernel;
use crate::pass::{COLUMNS, Map, PIECE, add_rows, assert_same_length, map, rows_of, rows_per_piece};
use crate::simd::{Simd, for_vectors, load, store};
use crate::{Cpu, Dropout, Real};

/// `y = a + b`.
pub fn add<T: Real>(cpu: &Cpu, a: &[T], b: &[T], y: &mut [T]) {
    map(cpu, "add", AddDropout(None), [a, b], y);
}

/// `y = a · b`, element by element.
pub fn mul<T: Real>(cpu: &Cpu, a: &[T], b: &[T], y: &mut [T]) {
    map(cpu, "mul", Mul, [a, b], y);
}

/// `y = x` in another type: exact in a wider one, rounded to the nearest in a narrower one.
pub fn cast<A: Real, B: Real>(cpu: &Cpu, x: &[A], y: &mut [B]) {
    assert_same_length("cast", x, y);
    cpu.threads.for_pieces(y, PIECE, |i, y| {
        cpu.isa.dispatch(Cast { x: &x[i * PIECE..][..y.len()], y });
    });
}

/// `y += factor · x`.
pub fn add_assign<T: Real>(cpu: &Cpu, y: &mut [T], x: &[T], factor: f32) {
    assert_same_length("add_assign", x, y);
    cpu.threads.for_pieces(y, PIECE, |i, y| {
        cpu.isa.dispatch(AddAssign { x: &x[i * PIECE..][..y.len()], factor, y });
    });
}

/// `y += share · (x - y)`: of `y`, the share goes over to `x`. Means that move along, or grow, are made of it.
pub fn blend<T: Real>(cpu: &Cpu, y: &mut [T], x: &[T], share: f32) {
    assert_same_length("blend", x, y);
    cpu.threads.for_pieces(y, PIECE, |i, y| {
        cpu.isa.dispatch(Blend { x: &x[i * PIECE..][..y.len()], share, y });
    });
}

/// `y = factor · x`.
pub fn scale<T: Real>(cpu: &Cpu, x: &[T], factor: f32, y: &mut [T]) {
    map(cpu, "scale", Scale(factor), [x], y);
}

/// `y = x + row`, the same row added to each: `x, y: [rows, d]`, `row: [d]`.
pub fn add_row<T: Real>(cpu: &Cpu, x: &[T], row: &[f32], y: &mut [T]) {
    let d = row.len();
    rows_of("add_row", x, d);
    assert_same_length("add_row", x, y);
    let size = rows_per_piece(d) * d;
    cpu.threads.for_pieces(y, size, |i, y| {
        cpu.isa.dispatch(AddRow { x: &x[i * size..][..y.len()], row, y });
    });
}

/// `y[j] = Σ x[r][j]`, or `+=` with `accumulate`, in the order of rows: `x: [rows, d]`, `y: [d]`.
pub fn sum_rows<T: Real>(cpu: &Cpu, x: &[T], d: usize, y: &mut [f32], accumulate: bool) {
    rows_of("sum_rows", x, d);
    assert_eq!(y.len(), d, "sum_rows: y of {} elements for rows of {d}", y.len());
    cpu.threads.for_pieces(y, COLUMNS, |i, y| {
        if !accumulate {
            y.fill(0.0);
        }
        cpu.isa.dispatch(SumRows { x, d, column: i * COLUMNS, y });
    });
}

/// `y[i] = x[i] · factor(i)`, where `factor` is [`Dropout::factor`] of the flat index.
///
/// It is its own gradient: `dx = dropout(dy)`.
pub fn dropout<T: Real>(cpu: &Cpu, x: &[T], dropout: Dropout, y: &mut [T]) {
    map(cpu, "dropout", Drop(dropout), [x], y);
}

/// `y = x + dropout(r)`, the residual connection; without dropout just the sum.
pub fn add_dropout<T: Real>(cpu: &Cpu, x: &[T], r: &[T], dropout: Option<Dropout>, y: &mut [T]) {
    map(cpu, "add_dropout", AddDropout(dropout), [x, r], y);
}

#[derive(Clone, Copy)]
struct Mul;

impl Map<2> for Mul {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, _: usize, [a, b]: [S::F; 2]) -> S::F {
        s.mul(a, b)
    }
}

#[derive(Clone, Copy)]
struct Scale(f32);

impl Map<1> for Scale {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, _: usize, [x]: [S::F; 1]) -> S::F {
        s.mul(x, s.splat(self.0))
    }
}

/// `dropout(x)`.
#[derive(Clone, Copy)]
pub(crate) struct Drop(pub(crate) Dropout);

impl Map<1> for Drop {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, index: usize, [x]: [S::F; 1]) -> S::F {
        s.mul(x, self.0.factors(s, index as u32))
    }
}

/// `x + dropout(r)`.
#[derive(Clone, Copy)]
pub(crate) struct AddDropout(pub(crate) Option<Dropout>);

impl Map<2> for AddDropout {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, index: usize, [x, r]: [S::F; 2]) -> S::F {
        match self.0 {
            Some(dropout) => s.fma(r, dropout.factors(s, index as u32), x),
            None => s.add(x, r),
        }
    }
}

struct Cast<'a, A, B> {
    x: &'a [A],
    y: &'a mut [B],
}

impl<A: Real, B: Real> Kernel for Cast<'_, A, B> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for_vectors(
            s,
            self.y.len(),
            #[inline(always)]
            |at, n| store(s, self.y, at, n, load(s, self.x, at, n)),
        );
    }
}

struct AddAssign<'a, T> {
    x: &'a [T],
    factor: f32,
    y: &'a mut [T],
}

impl<T: Real> Kernel for AddAssign<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let factor = s.splat(self.factor);
        for_vectors(
            s,
            self.y.len(),
            #[inline(always)]
            |at, n| {
                let y = s.fma(load(s, self.x, at, n), factor, load(s, self.y, at, n));
                store(s, self.y, at, n, y);
            },
        );
    }
}

struct Blend<'a, T> {
    x: &'a [T],
    share: f32,
    y: &'a mut [T],
}

impl<T: Real> Kernel for Blend<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let share = s.splat(self.share);
        for_vectors(
            s,
            self.y.len(),
            #[inline(always)]
            |at, n| {
                let y = load(s, self.y, at, n);
                let blended = s.fma(s.sub(load(s, self.x, at, n), y), share, y);
                store(s, self.y, at, n, blended);
            },
        );
    }
}

struct AddRow<'a, T> {
    x: &'a [T],
    row: &'a [f32],
    y: &'a mut [T],
}

impl<T: Real> Kernel for AddRow<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let d = self.row.len();
        for (x, y) in self.x.chunks_exact(d).zip(self.y.chunks_exact_mut(d)) {
            for_vectors(
                s,
                d,
                #[inline(always)]
                |at, n| store(s, y, at, n, s.add(load(s, x, at, n), load(s, self.row, at, n))),
            );
        }
    }
}

struct SumRows<'a, T> {
    x: &'a [T],
    d: usize,
    column: usize,
    y: &'a mut [f32],
}

impl<T: Real> Kernel for SumRows<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        add_rows(
            s,
            self.x.len() / self.d,
            [self.y],
            #[inline(always)]
            |row, at, n| [load(s, self.x, row * self.d + self.column + at, n)],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        LENGTHS, SHAPES, a_dropout, bits, check, cpus, normal, normals, stored, wide, written,
    };
    use half::bf16;

    fn from_indices(len: usize, f: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..len).map(f).collect()
    }

    #[test]
    fn sums_products_and_multiples_match_the_scalar_formulas() {
        fn test<T: Real>() {
            for len in LENGTHS {
                let (x, r) = (normals::<T>(1, len), normals(2, len));
                let (wx, wr) = (wide(&x), wide(&r));
                check(&from_indices(len, |i| wx[i] + wr[i]), 1e-6, |cpu| {
                    written(len, |y| add(cpu, &x, &r, y))
                });
                check(&from_indices(len, |i| wx[i] * wr[i]), 1e-6, |cpu| {
                    written(len, |y| mul(cpu, &x, &r, y))
                });
                check(&from_indices(len, |i| wx[i] * -1.7), 1e-6, |cpu| {
                    written(len, |y| scale(cpu, &x, -1.7, y))
                });
                check(&wx, 0.0, |cpu| written(len, |y: &mut [f32]| cast(cpu, &x, y)));
                check(&wx, 0.0, |cpu| written(len, |y: &mut [bf16]| cast(cpu, &x, y)));
                check(&from_indices(len, |i| wx[i] + 0.3 * wr[i]), 1e-6, |cpu| {
                    let mut y = x.clone();
                    add_assign(cpu, &mut y, &r, 0.3);
                    y
                });
                check(&from_indices(len, |i| 0.75 * wx[i] + 0.25 * wr[i]), 1e-6, |cpu| {
                    let mut y = x.clone();
                    blend(cpu, &mut y, &r, 0.25);
                    y
                });
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn dropout_follows_the_factor_of_the_flat_index() {
        fn test<T: Real>() {
            for len in LENGTHS {
                let (x, r) = (normals::<T>(1, len), normals(2, len));
                let (wx, wr) = (wide(&x), wide(&r));
                let dropped = from_indices(len, |i| wr[i] * a_dropout().factor(i as u32) as f64);
                let added = from_indices(len, |i| wx[i] + dropped[i]);
                check(&dropped, 1e-6, |cpu| written(len, |y| dropout(cpu, &r, a_dropout(), y)));
                check(&added, 1e-6, |cpu| written(len, |y| add_dropout(cpu, &x, &r, Some(a_dropout()), y)));
                let added = from_indices(len, |i| wx[i] + wr[i]);
                check(&added, 1e-6, |cpu| written(len, |y| add_dropout(cpu, &x, &r, None, y)));
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn a_row_is_added_to_every_row_and_rows_are_summed() {
        fn test<T: Real>() {
            for (rows, d) in SHAPES {
                let (x, row) = (normals::<T>(1, rows * d), normal(2, d));
                let wx = wide(&x);
                let added = from_indices(rows * d, |i| wx[i] + row[i % d] as f64);
                check(&added, 1e-6, |cpu| written(rows * d, |y| add_row(cpu, &x, &row, y)));
                let summed = from_indices(d, |j| (0..rows).map(|r| wx[r * d + j]).sum());
                check(&summed, 1e-5, |cpu| written(d, |y| sum_rows(cpu, &x, d, y, false)));
                let onto = from_indices(d, |j| summed[j] + row[j] as f64);
                check(&onto, 1e-5, |cpu| {
                    let mut y = row.clone();
                    sum_rows(cpu, &x, d, &mut y, true);
                    y
                });
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn rows_summed_in_two_calls_give_the_bits_of_one() {
        let (rows, d) = (23, 133);
        let x = normal(1, rows * d);
        for cpu in cpus() {
            let once = written(d, |y| sum_rows(&cpu, &x, d, y, false));
            let twice = written(d, |y| {
                sum_rows(&cpu, &x[..10 * d], d, y, false);
                sum_rows(&cpu, &x[10 * d..], d, y, true);
            });
            assert_eq!(bits(&once), bits(&twice), "{}", cpu.isa);
        }
    }

    #[test]
    fn what_is_not_a_number_comes_through() {
        fn test<T: Real>() {
            for cpu in cpus() {
                for at in [0, 20, 36] {
                    let (mut x, ones) = (stored::<T>(&[1.0; 37]), stored(&[1.0; 37]));
                    x[at] = T::from_f32(f32::NAN);
                    assert!(written(37, |y| dropout(&cpu, &x, a_dropout(), y))[at].to_f32().is_nan());
                    let sum_of_both = written(37, |y| add_dropout(&cpu, &ones, &x, Some(a_dropout()), y));
                    assert!(sum_of_both[at].to_f32().is_nan());
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    #[should_panic(expected = "sum_rows: 10 elements are not rows of 3")]
    fn a_slice_that_is_no_whole_number_of_rows_is_refused() {
        sum_rows(&cpus().next().unwrap(), &[0.0; 10], 3, &mut [0.0; 3], false);
    }

    #[test]
    #[should_panic(expected = "mul: an input of 2 elements for an output of 3")]
    fn lengths_that_differ_are_refused() {
        mul(&cpus().next().unwrap(), &[0.0; 3], &[0.0; 2], &mut [0.0; 3]);
    }
}
