//! Embedding lookup and its gradient, and rows written to chosen places.
//!
//! `y[t] = scale · table[ids[t]]`, and `dtable[ids[t]] += scale · dy[t]`. Several tokens may share a row, so
//! the gradient is cut by columns, and each task takes the tokens in order.

use crate::gemm::quantise_row;
use crate::isa::Kernel;
use crate::pass::{COLUMNS, rows_of, rows_per_piece};
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// `y[t] = scale · table[ids[t]]`: `table: [rows, d]`, `y: [ids, d]`. With a scale of 1 it gathers rows of
/// anything.
pub fn embedding<W: Real, T: Real>(cpu: &Cpu, table: &[W], d: usize, ids: &[i32], scale: f32, y: &mut [T]) {
    let rows = rows_of("embedding", table, d);
    assert_rows("embedding", y, d, ids);
    ids.iter().for_each(|&id| assert_id("embedding", id, rows));
    let block = rows_per_piece(d);
    cpu.threads.for_pieces(y, block * d, |i, y| {
        cpu.isa.dispatch(Lookup { table, d, ids: &ids[i * block..][..y.len() / d], scale, y });
    });
}

/// `dtable[ids[t]] += scale · dy[t]`, but for tokens that are `padding`: `dy: [ids, d]`, `dtable: [rows, d]`.
pub fn embedding_backward<T: Real>(
    cpu: &Cpu,
    ids: &[i32],
    scale: f32,
    padding: Option<i32>,
    dy: &[T],
    d: usize,
    dtable: &mut [f32],
) {
    let rows = rows_of("embedding_backward", dtable, d);
    assert_rows("embedding_backward", dy, d, ids);
    ids.iter().filter(|&&id| Some(id) != padding).for_each(|&id| assert_id("embedding_backward", id, rows));
    let dtable = Shared::new(dtable);
    cpu.threads.run(d.div_ceil(COLUMNS), |i| {
        cpu.isa.dispatch(Scatter { ids, scale, padding, dy, d, column: i * COLUMNS, dtable });
    });
}

/// `y[rows[i]] = x[i]`: `x: [rows, d]`, `y: [_, d]`. If a row is named twice, the last value stays.
pub fn write_rows<T: Copy>(x: &[T], d: usize, rows: &[i32], y: &mut [T]) {
    let height = rows_of("write_rows", y, d);
    assert_rows("write_rows", x, d, rows);
    for (x, &row) in x.chunks_exact(d).zip(rows) {
        assert_id("write_rows", row, height);
        y[row as usize * d..][..d].copy_from_slice(x);
    }
}

/// The same in int8, each row with a scale of its own: that of row `i` goes to `scales[i][column]`. A row must
/// be whole vectors on every instruction set.
///
/// # Shapes
/// `x: [rows, d]`, `y: [height, d]`, `scales: [height, 2]`
pub fn write_int8_rows<T: Real>(
    cpu: &Cpu,
    x: &[T],
    d: usize,
    rows: &[i32],
    y: &mut [i8],
    scales: &mut [f32],
    column: usize,
) {
    let height = rows_of("write_int8_rows", y, d);
    assert_rows("write_int8_rows", x, d, rows);
    assert!(
        d.is_multiple_of(64) && column < 2 && scales.len() == 2 * height,
        "write_int8_rows: {d} and {column}"
    );
    rows.iter().for_each(|&row| assert_id("write_int8_rows", row, height));
    // On the calling thread alone: decoding has a thread for each copy of the model, and most steps write few rows.
    cpu.isa.dispatch(WriteInt8 { x, d, rows, y, scales, column });
}

struct WriteInt8<'a, T> {
    x: &'a [T],
    d: usize,
    rows: &'a [i32],
    y: &'a mut [i8],
    scales: &'a mut [f32],
    column: usize,
}

impl<T: Real> Kernel for WriteInt8<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (x, &row) in self.x.chunks_exact(self.d).zip(self.rows) {
            let row = row as usize;
            let scale = quantise_row(s, x, &mut self.y[row * self.d..][..self.d]);
            self.scales[2 * row + self.column] = scale;
        }
    }
}

fn assert_rows<T>(op: &str, x: &[T], d: usize, ids: &[i32]) {
    assert!(x.len() == ids.len() * d, "{op}: {} elements for {} rows of {d}", x.len(), ids.len());
}

fn assert_id(op: &str, id: i32, rows: usize) {
    assert!((0..rows as i64).contains(&i64::from(id)), "{op}: there is no row {id} among {rows}");
}

struct Lookup<'a, W, T> {
    table: &'a [W],
    d: usize,
    ids: &'a [i32],
    scale: f32,
    y: &'a mut [T],
}

impl<W: Real, T: Real> Kernel for Lookup<'_, W, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let scale = s.splat(self.scale);
        for (y, &id) in self.y.chunks_exact_mut(self.d).zip(self.ids) {
            let row = &self.table[id as usize * self.d..][..self.d];
            for_vectors(
                s,
                self.d,
                #[inline(always)]
                |at, n| store(s, y, at, n, s.mul(load(s, row, at, n), scale)),
            );
        }
    }
}

struct Scatter<'a, T> {
    ids: &'a [i32],
    scale: f32,
    padding: Option<i32>,
    dy: &'a [T],
    d: usize,
    /// The first of the [`COLUMNS`] columns that belong to this task.
    column: usize,
    dtable: Shared<'a, f32>,
}

impl<T: Real> Kernel for Scatter<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let scale = s.splat(self.scale);
        let width = COLUMNS.min(self.d - self.column);
        for (dy, &id) in self.dy.chunks_exact(self.d).zip(self.ids) {
            if Some(id) == self.padding {
                continue;
            }
            let dy = &dy[self.column..][..width];
            // Safety: these columns of all rows belong to this task.
            let row = unsafe { self.dtable.slice(id as usize * self.d + self.column, width) };
            for_vectors(
                s,
                width,
                #[inline(always)]
                |at, n| {
                    let sum = s.fma(load(s, dy, at, n), scale, load(s, row, at, n));
                    store(s, row, at, n, sum);
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use crate::gemm::quantise;
    use crate::testing::{bits, check, cpus, normal, normals, wide, written};
    use half::bf16;

    /// Rows of the table, its width (one column, a tail, several blocks), and tokens.
    const CASES: [(usize, usize, usize); 5] =
        [(1, 1, 1), (7, 1, 20), (7, 37, 0), (11, 37, 400), (5, 300, 50)];

    fn some_ids(rows: usize, len: usize) -> Vec<i32> {
        (0..len as u32).map(|i| (Random::new(5).bits(i) % rows as u32) as i32).collect()
    }

    #[test]
    fn tokens_get_the_scaled_row_of_their_id() {
        fn test<T: Real>() {
            for (rows, d, tokens) in CASES {
                let (table, ids) = (normal(1, rows * d), some_ids(rows, tokens));
                let element = |t: usize, j: usize| 2.5 * table[ids[t] as usize * d + j] as f64;
                let expected: Vec<f64> = (0..tokens * d).map(|i| element(i / d, i % d)).collect();
                check(&expected, 1e-6, |cpu| {
                    written::<T>(tokens * d, |y| embedding(cpu, &table, d, &ids, 2.5, y))
                });
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn the_gradient_is_the_transpose_of_the_lookup_but_for_padding() {
        fn test<T: Real>() {
            for (rows, d, tokens) in CASES {
                for padding in [None, Some(0), Some(-1)] {
                    let mut ids = some_ids(rows, tokens);
                    if padding == Some(-1) && tokens > 3 {
                        ids[3] = -1;
                    }
                    let (dy, before) = (normals::<T>(1, tokens * d), normal(2, rows * d));
                    let (wide_dy, mut expected) = (wide(&dy), wide(&before));
                    for t in (0..tokens).filter(|&t| Some(ids[t]) != padding) {
                        for j in 0..d {
                            expected[ids[t] as usize * d + j] += 0.7f32 as f64 * wide_dy[t * d + j];
                        }
                    }
                    check(&expected, 1e-5, |cpu| {
                        let mut dtable = before.clone();
                        embedding_backward(cpu, &ids, 0.7, padding, &dy, d, &mut dtable);
                        dtable
                    });
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn written_rows_are_read_back_and_the_others_stay() {
        fn test<T: Real>() {
            let (d, rows) = (150, [4, 0, 7]);
            let (x, before) = (normals::<T>(1, 3 * d), normals::<T>(2, 9 * d));
            let mut expected = before.clone();
            for (i, row) in rows.iter().enumerate() {
                expected[*row as usize * d..][..d].copy_from_slice(&x[i * d..][..d]);
            }
            check(&wide(&expected), 0.0, |cpu| {
                let mut y = before.clone();
                write_rows(&x, d, &rows, &mut y);
                let back = written::<T>(3 * d, |back| embedding(cpu, &y, d, &rows, 1.0, back));
                assert_eq!(bits(&back), bits(&x));
                y
            });
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn rows_written_in_int8_are_those_of_quantise_and_the_others_stay() {
        let (d, rows) = (128, [4, 0, 7]);
        let x = normal(1, 3 * d);
        for cpu in cpus() {
            let (mut y, mut scales) = (vec![99i8; 9 * d], vec![0.5; 9 * 2]);
            write_int8_rows(&cpu, &x, d, &rows, &mut y, &mut scales, 1);
            let (mut expected, mut expected_scales) = (vec![99i8; 9 * d], vec![0.5; 9 * 2]);
            for (x, &row) in x.chunks_exact(d).zip(&rows) {
                let row = row as usize;
                expected_scales[row * 2 + 1] = quantise(x, &mut expected[row * d..][..d]);
            }
            assert_eq!((y, scales), (expected, expected_scales), "{:?}", cpu.isa);
        }
    }

    #[test]
    fn an_id_outside_the_table_is_refused_by_name() {
        let cpu = cpus().next().unwrap();
        for id in [-1, 3, i32::MAX, i32::MIN] {
            let lookup = || embedding(&cpu, &[0.0; 6], 2, &[0, id], 1.0, &mut [0f32; 4]);
            let scatter = || embedding_backward(&cpu, &[0, id], 1.0, None, &[0.0; 4], 2, &mut [0.0; 6]);
            let write = || write_rows(&[0.0; 4], 2, &[0, id], &mut [0.0; 6]);
            let write_int8 =
                || write_int8_rows(&cpu, &[0.0; 128], 64, &[0, id], &mut [0; 192], &mut [0.0; 6], 0);
            for attempt in [&lookup as &dyn Fn(), &scatter, &write, &write_int8] {
                let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)).unwrap_err();
                let message = panic.downcast_ref::<String>().unwrap();
                assert!(message.contains(&format!("no row {id} among 3")), "{message}");
            }
        }
    }
}
