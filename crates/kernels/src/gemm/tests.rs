use super::*;
use crate::Threads;
use crate::testing::{normal, normals};

/// The product by its definition, in double precision.
fn reference(a: Matrix, b: Matrix) -> Vec<f64> {
    let at = |m: Matrix, i: usize, j: usize| {
        m.data[if m.transposed { j * m.rows + i } else { i * m.cols + j }] as f64
    };
    let mut out = vec![0.0; a.rows * b.cols];
    for i in 0..a.rows {
        for k in 0..a.cols {
            for j in 0..b.cols {
                out[i * b.cols + j] += at(a, i, k) * at(b, k, j);
            }
        }
    }
    out
}

/// The last one has several tasks in each direction, and `k` in more than one block.
const SIZES: [[usize; 3]; 13] = [
    [1, 1, 1],
    [1, 300, 70],
    [70, 1, 33],
    [33, 5, 1],
    [0, 4, 4],
    [3, 0, 5],
    [4, 7, 0],
    [14, 256, 32],
    [15, 257, 33],
    [31, 600, 95],
    [200, 64, 130],
    [2, 513, 64],
    [700, 300, 300],
];

#[test]
fn products_match_the_definition_in_every_transposition_on_every_instruction_set() {
    let cpus: Vec<Cpu> =
        Isa::present().into_iter().map(|isa| Cpu { isa, threads: Threads::new(2) }).collect();
    for [m, k, n] in SIZES {
        let (a, b, before, bias) = (normal(1, m * k), normal(2, k * n), normal(4, m * n), normal(3, n));
        for transposed in 0..4 {
            let a = if transposed & 1 == 0 { Matrix::new(&a, m, k) } else { Matrix::new(&a, k, m).t() };
            let b = if transposed & 2 == 0 { Matrix::new(&b, k, n) } else { Matrix::new(&b, n, k).t() };
            let product = reference(a, b);
            for (accumulate, finish) in [(false, false), (false, true), (true, false), (true, true)] {
                let (bias, activation) = (finish.then_some(&bias[..]), finish.then_some(Activation::Relu));
                let expected = |i: usize| {
                    let sum = product[i] + if accumulate { before[i] as f64 } else { 0.0 };
                    bias.map_or(sum, |bias| (sum + bias[i % n] as f64).max(0.0))
                };
                for cpu in &cpus {
                    let mut c = before.clone();
                    gemm(cpu, a, b, &mut c, Epilogue { accumulate, bias, activation, streamed: false });
                    for (i, c) in c.iter().enumerate() {
                        let error = (*c as f64 - expected(i)).abs();
                        assert!(
                            error < 1e-6 * (k as f64 + 8.0),
                            "{} {m} {k} {n}, transposed {transposed}, {accumulate} {finish}: {c} {}",
                            cpu.isa,
                            expected(i)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_company_on_any_number_of_threads() {
    let [m, k, n] = [700, 300, 300];
    let (a, b, bias) = (normal(1, m * k), normal(2, k * n), normal(3, n));
    let epilogue = Epilogue { bias: Some(&bias), activation: Some(Activation::Gelu), ..Epilogue::default() };
    for isa in Isa::present() {
        let product = |threads, rows: Range<usize>| {
            let mut c = vec![f32::NAN; rows.len() * n];
            let a = Matrix::new(&a[rows.start * k..rows.end * k], rows.len(), k);
            gemm(&Cpu { isa, threads: Threads::new(threads) }, a, Matrix::new(&b, k, n), &mut c, epilogue);
            c
        };
        let whole = product(1, 0..m);
        for threads in [2, 3, 7] {
            assert_eq!(product(threads, 0..m), whole, "{isa}, {threads} threads");
        }
        for rows in [0..1, 5..8, 17..50, 100..113, 330..350, 699..700] {
            assert_eq!(product(2, rows.clone()), whole[rows.start * n..rows.end * n], "{isa}, rows {rows:?}");
        }
    }
}

#[test]
fn an_accumulated_product_goes_on_from_the_stored_sum_exactly() {
    let [m, k, n] = [30, 700, 40];
    let (a, b) = (normal(1, k * m), normal(2, k * n));
    for isa in Isa::present() {
        let cpu = Cpu { isa, threads: Threads::new(1) };
        let mut whole = vec![0.0; m * n];
        gemm(&cpu, Matrix::new(&a, k, m).t(), Matrix::new(&b, k, n), &mut whole, Epilogue::default());
        let mut parts = vec![0.0; m * n];
        for part in [0..100, 100..101, 101..700] {
            let a = Matrix::new(&a[part.start * m..part.end * m], part.len(), m).t();
            let b = Matrix::new(&b[part.start * n..part.end * n], part.len(), n);
            gemm(&cpu, a, b, &mut parts, Epilogue { accumulate: true, ..Epilogue::default() });
        }
        assert_eq!(whole, parts, "{isa}");
    }
}

#[test]
fn a_batch_of_products_is_each_product() {
    let [m, k, n] = [5, 9, 20];
    let (a, b) = (normal(1, 7 * m * k), normal(2, 7 * k * n));
    for (isa, batch) in Isa::present().into_iter().flat_map(|isa| [0, 1, 7].map(|batch| (isa, batch))) {
        let cpu = Cpu { isa, threads: Threads::new(3) };
        let (a, b) = (&a[..batch * m * k], &b[..batch * k * n]);
        let mut c = vec![f32::NAN; batch * m * n];
        gemm_batched(&cpu, batch, [m, k, n], (a, true), (b, true), &mut c);
        for i in 0..batch {
            let a = Matrix::new(&a[i * m * k..][..m * k], k, m).t();
            let b = Matrix::new(&b[i * k * n..][..k * n], n, k).t();
            let mut one = vec![0.0; m * n];
            gemm(&cpu, a, b, &mut one, Epilogue::default());
            assert_eq!(one, c[i * m * n..][..m * n], "{isa} {i}");
        }
    }
}

#[test]
fn a_batch_in_bf16_is_near_to_one_in_f32() {
    let (batch, [m, k, n]) = (3, [21, 70, 37]);
    let (a, b) = (normals::<half::bf16>(1, batch * m * k), normals::<half::bf16>(2, batch * k * n));
    let [wide_a, wide_b]: [Vec<f32>; 2] = [&a, &b].map(|x| x.iter().map(|x| x.to_f32()).collect());
    for isa in Isa::present() {
        for (a_transposed, b_transposed) in [(false, false), (true, false), (false, true), (true, true)] {
            let cpu = Cpu { isa, threads: Threads::new(2) };
            let (mut c, mut expected) = (normals::<half::bf16>(3, batch * m * n), vec![0.0; batch * m * n]);
            gemm_batched(&cpu, batch, [m, k, n], (&a, a_transposed), (&b, b_transposed), &mut c);
            gemm_batched(
                &cpu,
                batch,
                [m, k, n],
                (&wide_a, a_transposed),
                (&wide_b, b_transposed),
                &mut expected,
            );
            for (c, expected) in c.iter().zip(&expected) {
                // Operands are exact, sums are in f32: what is left is the rounding of the result.
                let near = (c.to_f32() - expected).abs() < 1e-4 + expected.abs() / 256.0;
                assert!(near, "{isa}: {c}, not {expected}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "[3, 4] · [5, 6] does not fit")]
fn shapes_that_do_not_fit_are_named() {
    let cpu = Cpu { isa: Isa::best(), threads: Threads::new(1) };
    gemm(
        &cpu,
        Matrix::new(&[0.0; 12], 3, 4),
        Matrix::new(&[0.0; 30], 5, 6),
        &mut [0.0; 18],
        Epilogue::default(),
    );
}

#[test]
#[should_panic(expected = "gemm: 0 numbers for a matrix of")]
fn a_size_that_wraps_around_to_the_right_one_is_refused() {
    let half = 1 << (usize::BITS / 2);
    Matrix::<f32>::new(&[], half, half);
}
