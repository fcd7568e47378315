use super::*;
use crate::Threads;
use crate::testing::normal;

/// The product by its definition, in double precision.
fn reference(a: Matrix, b: Matrix, c: &[f32], epilogue: Epilogue) -> Vec<f64> {
    let at = |m: Matrix, i: usize, j: usize| {
        m.data[if m.transposed { j * m.rows + i } else { i * m.cols + j }] as f64
    };
    let mut out = vec![0.0; c.len()];
    for i in 0..a.rows {
        for j in 0..b.cols {
            let start = if epilogue.accumulate { c[i * b.cols + j] as f64 } else { 0.0 };
            let sum: f64 = start + (0..a.cols).map(|k| at(a, i, k) * at(b, k, j)).sum::<f64>();
            let sum = sum + epilogue.bias.map_or(0.0, |bias| bias[j] as f64);
            out[i * b.cols + j] =
                if epilogue.activation == Some(Activation::Relu) { sum.max(0.0) } else { sum };
        }
    }
    out
}

const SIZES: [[usize; 3]; 12] = [
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
];

#[test]
fn products_match_the_definition_in_every_transposition_on_every_instruction_set() {
    for isa in Isa::present() {
        let cpu = Cpu { isa, threads: Threads::new(2) };
        for [m, k, n] in SIZES {
            let (a, b, bias) = (normal(1, m * k), normal(2, k * n), normal(3, n));
            for variant in 0..16 {
                let a = if variant & 1 == 0 { Matrix::new(&a, m, k) } else { Matrix::new(&a, k, m).t() };
                let b = if variant & 2 == 0 { Matrix::new(&b, k, n) } else { Matrix::new(&b, n, k).t() };
                let epilogue = Epilogue {
                    accumulate: variant & 4 != 0,
                    bias: (variant & 8 != 0).then_some(&bias),
                    activation: (variant & 8 != 0).then_some(Activation::Relu),
                };
                let mut c = normal(4, m * n);
                let expected = reference(a, b, &c, epilogue);
                gemm(&cpu, a, b, &mut c, epilogue);
                for (c, expected) in c.iter().zip(&expected) {
                    let error = (*c as f64 - expected).abs();
                    assert!(error < 1e-6 * (k as f64 + 8.0), "{isa} {m} {k} {n} {variant}: {c} {expected}");
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_company_on_any_number_of_threads() {
    let [m, k, n] = [200, 600, 150];
    let (a, b, bias) = (normal(1, m * k), normal(2, k * n), normal(3, n));
    let epilogue = Epilogue { bias: Some(&bias), activation: Some(Activation::Gelu), ..Epilogue::default() };
    for isa in Isa::present() {
        let product = |threads, rows: std::ops::Range<usize>| {
            let mut c = vec![f32::NAN; rows.len() * n];
            let a = Matrix::new(&a[rows.start * k..rows.end * k], rows.len(), k);
            gemm(&Cpu { isa, threads: Threads::new(threads) }, a, Matrix::new(&b, k, n), &mut c, epilogue);
            c
        };
        let whole = product(1, 0..m);
        for threads in [2, 3, 7] {
            assert_eq!(product(threads, 0..m), whole, "{isa}, {threads} threads");
        }
        for rows in [0..1, 5..8, 17..50, 100..113, 199..200] {
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
    for isa in Isa::present() {
        let cpu = Cpu { isa, threads: Threads::new(3) };
        let mut c = vec![0.0; 7 * m * n];
        gemm_batched(&cpu, 7, [m, k, n], (&a, true), (&b, true), &mut c, false);
        for i in 0..7 {
            let a = Matrix::new(&a[i * m * k..][..m * k], k, m).t();
            let b = Matrix::new(&b[i * k * n..][..k * n], n, k).t();
            let mut one = vec![0.0; m * n];
            gemm(&cpu, a, b, &mut one, Epilogue::default());
            assert_eq!(one, c[i * m * n..][..m * n], "{isa} {i}");
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
