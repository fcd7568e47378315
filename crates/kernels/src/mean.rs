//! The mean of the rows of each sequence of a packed batch.
//!
//! `y[s] = 1/n · Σ x[r]` over the `n` rows of sequence `s`, and `dx[r] = dy[s] / n`. Sequence `s` has the rows from
//! `offsets[s]` up to `offsets[s + 1]`; the mean of no rows is zero. Rows are added in order and in f32, so that a sequence has
//! the same bits in any batch.

use crate::isa::Kernel;
use crate::pass::{add_rows, rows_of, rows_per_piece};
use crate::scratch::Scratch;
use crate::simd::{Simd, for_vectors, load, store};
use crate::{Cpu, Real};

/// `y[s] = mean of x[offsets[s]..offsets[s + 1]]`: `x: [rows, d]`, `offsets: [sequences + 1]`, `y: [sequences, d]`.
pub fn mean_rows<T: Real>(cpu: &Cpu, x: &[T], d: usize, offsets: &[i32], y: &mut [T]) {
    assert_offsets("mean_rows", offsets, rows_of("mean_rows", x, d), rows_of("mean_rows", y, d));
    cpu.threads.for_pieces(y, d, |i, y| {
        let rows = offsets[i] as usize..offsets[i + 1] as usize;
        cpu.isa.dispatch(Mean { x: &x[rows.start * d..rows.end * d], y });
    });
}

/// `dx[r] = dy[s] / n` for each row `r` of sequence `s`, which has `n`: `dy: [sequences, d]`, `dx: [rows, d]`.
pub fn mean_rows_backward<T: Real>(cpu: &Cpu, dy: &[T], d: usize, offsets: &[i32], dx: &mut [T]) {
    let op = "mean_rows_backward";
    assert_offsets(op, offsets, rows_of(op, dx, d), rows_of(op, dy, d));
    let block = rows_per_piece(d);
    cpu.threads.for_pieces(dx, block * d, |i, dx| {
        for (row, dx) in (i * block..).zip(dx.chunks_exact_mut(d)) {
            // The last sequence that begins at the row or before: those of no rows before it are passed over.
            let s = offsets.partition_point(|&start| start as usize <= row) - 1;
            let share = 1.0 / (offsets[s + 1] - offsets[s]) as f32;
            cpu.isa.dispatch(Share { dy: &dy[s * d..][..d], share, dx });
        }
    });
}

/// Refuses offsets that do not lead through all rows.
#[track_caller]
pub(crate) fn assert_offsets(op: &str, offsets: &[i32], rows: usize, sequences: usize) {
    let whole = offsets.first() == Some(&0) && offsets.last().is_some_and(|&end| end as usize == rows);
    assert!(
        offsets.len() == sequences + 1 && whole && offsets.is_sorted(),
        "{op}: {sequences} sequences of {rows} rows cannot begin at {offsets:?}"
    );
}

struct Mean<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Real> Kernel for Mean<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let d = self.y.len();
        let rows = self.x.len() / d;
        let mut sums = Scratch::<f32>::take(d);
        sums.fill(0.0);
        add_rows(
            s,
            rows,
            [&mut sums],
            #[inline(always)]
            |row, at, n| [load(s, self.x, row * d + at, n)],
        );
        let share = s.splat(1.0 / rows.max(1) as f32);
        for_vectors(
            s,
            d,
            #[inline(always)]
            |at, n| store(s, self.y, at, n, s.mul(load(s, &sums, at, n), share)),
        );
    }
}

struct Share<'a, T> {
    dy: &'a [T],
    share: f32,
    dx: &'a mut [T],
}

impl<T: Real> Kernel for Share<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let share = s.splat(self.share);
        for_vectors(
            s,
            self.dx.len(),
            #[inline(always)]
            |at, n| store(s, self.dx, at, n, s.mul(load(s, self.dy, at, n), share)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bits, check, cpus, normals, wide, written};
    use half::bf16;

    /// One sequence, some with sequences of no rows among them, none at all.
    const CASES: [(&[i32], usize); 5] =
        [(&[0, 1], 1), (&[0, 5, 5, 6, 40], 33), (&[0, 0, 300], 130), (&[0, 0], 4), (&[0], 7)];

    /// The rows of each sequence.
    fn ranges(offsets: &[i32]) -> impl Iterator<Item = std::ops::Range<usize>> {
        offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }

    #[test]
    fn means_and_their_gradients_match_the_scalar_formulas() {
        fn test<T: Real>() {
            for (offsets, d) in CASES {
                let (rows, sequences) = (offsets[offsets.len() - 1] as usize, offsets.len() - 1);
                let (x, dy) = (normals::<T>(1, rows * d), normals::<T>(2, sequences * d));
                let (wx, wdy) = (wide(&x), wide(&dy));
                let mean = |rows: std::ops::Range<usize>, j: usize| {
                    rows.clone().map(|r| wx[r * d + j]).sum::<f64>() / rows.len().max(1) as f64
                };
                let y: Vec<f64> = ranges(offsets)
                    .flat_map(|rows| (0..d).map(move |j| (rows.clone(), j)))
                    .map(|(rows, j)| mean(rows, j))
                    .collect();
                check(&y, 1e-6, |cpu| written(sequences * d, |y| mean_rows(cpu, &x, d, offsets, y)));
                let mut dx = vec![0.0; rows * d];
                for (s, rows) in ranges(offsets).enumerate() {
                    for (r, j) in rows.clone().flat_map(|r| (0..d).map(move |j| (r, j))) {
                        dx[r * d + j] = wdy[s * d + j] / rows.len() as f64;
                    }
                }
                check(&dx, 1e-6, |cpu| written(rows * d, |dx| mean_rows_backward(cpu, &dy, d, offsets, dx)));
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn a_sequence_has_the_same_bits_alone() {
        let (d, offsets) = (33, [0, 5, 6, 40]);
        let x = normals::<f32>(1, 40 * d);
        for cpu in cpus() {
            let together = written(3 * d, |y| mean_rows(&cpu, &x, d, &offsets, y));
            for (s, rows) in ranges(&offsets).enumerate() {
                let own = &x[rows.start * d..rows.end * d];
                let alone = written(d, |y| mean_rows(&cpu, own, d, &[0, rows.len() as i32], y));
                assert_eq!(bits(&alone), bits(&together[s * d..][..d]), "{}", cpu.isa);
            }
        }
    }

    #[test]
    #[should_panic(expected = "mean_rows: 1 sequences of 3 rows cannot begin at [0, 2]")]
    fn offsets_that_leave_out_rows_are_refused() {
        mean_rows(&cpus().next().unwrap(), &[0.0; 6], 2, &[0, 2], &mut [0.0; 2]);
    }
}
