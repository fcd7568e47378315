use super::*;
use crate::activation::Activation;
use crate::aligned::Aligned;
use crate::testing::{bits, normal, rounded};
use crate::{Isa, Threads};

fn at<T: Real>(m: Matrix<T>, i: usize, j: usize) -> f64 {
    let x = m.data[if m.transposed { j * m.rows + i } else { i * m.cols + j }];
    bf16::from_f32(x.to_f32()).to_f64()
}

/// The product by its definition, of operands rounded to bf16, in double precision.
fn reference<B: Real>(a: Matrix<bf16>, b: Matrix<B>) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = (0..a.rows).map(|i| (0..a.cols).map(|k| at(a, i, k)).collect()).collect();
    let columns: Vec<Vec<f64>> = (0..b.cols).map(|j| (0..b.rows).map(|k| at(b, k, j)).collect()).collect();
    let element = |i: usize, j: usize| rows[i].iter().zip(&columns[j]).map(|(a, b)| a * b).sum();
    (0..a.rows * b.cols).map(|at| element(at / b.cols, at % b.cols)).collect()
}

/// The last ones have several blocks below each other, and a last one of one tile or of two; one stretch of `k` and more, with many
/// steps in the last of them and with one; and rows as they lie, rows that are copied, and rows that each task copies.
const SIZES: [[usize; 3]; 26] = [
    [1, 1, 1],
    [1, 300, 70],
    [70, 1, 33],
    [33, 5, 1],
    [0, 4, 4],
    [3, 0, 5],
    [3, 0, 200],
    [4, 7, 0],
    [32, 512, 32],
    [65, 544, 50],
    [31, 1100, 45],
    [40, 64, 257],
    [70, 2100, 40],
    [80, 1024, 96],
    [50, 1300, 64],
    [96, 1024, 64],
    [112, 352, 48],
    [100, 96, 64],
    [96, 1024, 160],
    [70, 288, 160],
    [100, 96, 200],
    [250, 1056, 40],
    [250, 1100, 40],
    [40, 1056, 70],
    [40, 544, 70],
    [112, 608, 48],
];

/// Holds products of `b` against their definition, which is computed once for all instruction sets, results and epilogues.
fn products_match<'b, B: Real>([m, k, n]: [usize; 3], b: &'b [B])
where
    Right<'b>: From<Matrix<'b, B>>,
{
    let a = rounded(1, m * k);
    for transposed in 0..4 {
        let a = if transposed & 1 == 0 { Matrix::new(&a, m, k) } else { Matrix::new(&a, k, m).t() };
        let b = if transposed & 2 == 0 { Matrix::new(b, k, n) } else { Matrix::new(b, n, k).t() };
        let product = reference(a, b);
        for isa in Isa::present() {
            product_matches::<B, f32>(isa, a, b, &product, 0.0);
            product_matches::<B, bf16>(isa, a, b, &product, 1.0 / 256.0);
        }
    }
}

/// With and without what is added to and what is done at the end.
fn product_matches<'b, B: Real, C: Real>(
    isa: Isa,
    a: Matrix<bf16>,
    b: Matrix<'b, B>,
    product: &[f64],
    tolerance: f64,
) where
    Right<'b>: From<Matrix<'b, B>>,
{
    let (m, k, n) = (a.rows, a.cols, b.cols);
    let (bias, before) = (normal(3, n), normal(4, m * n));
    let cpu = Cpu { isa, threads: Threads::new(2) };
    for (accumulate, finish) in [(false, false), (false, true), (true, false), (true, true)] {
        let epilogue = Epilogue {
            accumulate,
            bias: finish.then_some(&bias),
            activation: finish.then_some(Activation::Relu),
            streamed: !accumulate,
        };
        let mut c = Aligned::<C>::zeros(m * n);
        c.iter_mut().zip(&before).for_each(|(c, x)| *c = C::from_f32(*x));
        let expected: Vec<f64> = (0..m * n)
            .map(|i| {
                let sum = product[i] + if accumulate { c[i].to_f32() as f64 } else { 0.0 };
                if finish { (sum + bias[i % n] as f64).max(0.0) } else { sum }
            })
            .collect();
        gemm_bf16(&cpu, a, b, &mut c, epilogue);
        for (c, expected) in c.iter().zip(&expected) {
            let error = (c.to_f32() as f64 - expected).abs();
            let near = tolerance * expected.abs() + 1e-6 * (k as f64 + 8.0);
            let types = [size_of::<B>(), size_of::<C>()];
            assert!(
                error < near,
                "{isa} {types:?} {m} {k} {n} {accumulate} {finish}: {} {expected}",
                c.to_f32()
            );
        }
    }
}

#[test]
fn products_match_the_definition_in_every_transposition_and_type_on_every_instruction_set() {
    for size in SIZES {
        products_match(size, &normal(2, size[1] * size[2]));
        products_match(size, &rounded(2, size[1] * size[2]));
    }
}

/// `k` in one stretch, two and more; the operands give sums of both signs, and a row of `A` is zero.
fn rows_have_the_same_bits<C: Real>(
    isa: Isa,
    [m, k, n]: [usize; 3],
    activation: Option<Activation>,
    accumulate: bool,
) {
    let (mut a, b, bias) = (rounded(1, m * k), normal(2, k * n), normal(3, n));
    a[20 * k..21 * k].fill(bf16::ZERO);
    let epilogue = Epilogue { bias: Some(&bias), activation, accumulate, ..Epilogue::default() };
    let product = |threads, rows: std::ops::Range<usize>| {
        let mut c = vec![C::from_f32(0.5); rows.len() * n];
        let a = Matrix::new(&a[rows.start * k..rows.end * k], rows.len(), k);
        let cpu = Cpu { isa, threads: Threads::new(threads) };
        gemm_bf16(&cpu, a, Matrix::new(&b, k, n), &mut c, epilogue);
        bits(&c)
    };
    let whole = product(1, 0..m);
    let what = format!("{isa}, {m} {k} {n}, {activation:?}, {accumulate}");
    for threads in [2, 3, 7] {
        assert!(product(threads, 0..m) == whole, "{what}, {threads} threads");
    }
    for rows in [0..1, 5..8, 17..50, 100..164, 199..200] {
        let part = product(2, rows.clone());
        assert!(part == whole[rows.start * n..rows.end * n], "{what}, rows {rows:?}");
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_company_and_place_on_any_number_of_threads() {
    for isa in Isa::present() {
        for (k, accumulate) in [(1056, false), (1056, true), (352, false), (96, false)] {
            for activation in [None, Some(Activation::Relu), Some(Activation::Gelu)] {
                rows_have_the_same_bits::<f32>(isa, [200, k, 150], activation, accumulate);
                rows_have_the_same_bits::<bf16>(isa, [200, k, 150], activation, accumulate);
            }
        }
        // On tiles, long rows that the L2 cache does not hold are copied once if there are so many columns, otherwise by each task.
        if isa.amx().is_some() {
            rows_have_the_same_bits::<bf16>(isa, [1040, 1024, 2048], None, false);
        }
    }
}

/// The numbers are so small that many sums are taken for zero, of either sign, where a sum's bits are not kept below the least
/// normal number.
#[test]
fn gradients_of_weights_have_the_same_bits_however_they_are_written_and_transposed() {
    gradients_have_the_same_bits::<f32>([176, 144]);
    gradients_have_the_same_bits::<bf16>([192, 160]);
}

fn gradients_have_the_same_bits<C: Real>([m, n]: [usize; 2]) {
    let small = |seed, len| {
        let mut x = rounded(seed, len);
        x.iter_mut().for_each(|x| *x = bf16::from_f32(x.to_f32() * 2e-19));
        x
    };
    for (isa, k) in Isa::present().into_iter().flat_map(|isa| [(isa, 352), (isa, 1600)]) {
        let (a, b) = (small(1, m * k), small(2, k * n));
        let product = |threads, a: &[bf16], m, b: &[bf16], n, streamed| {
            let mut c = Aligned::<C>::zeros(m * n);
            let (a, b) = (Matrix::new(a, k, m).t(), Matrix::new(b, k, n));
            let cpu = Cpu { isa, threads: Threads::new(threads) };
            gemm_bf16(&cpu, a, b, &mut c, Epilogue { streamed, ..Epilogue::default() });
            bits(&c)
        };
        // The first result is transposed, unless rows stay and `k` is short; the second is not.
        let expected = product(1, &a, m, &b, n, false);
        let transposed = product(1, &b, n, &a, m, false);
        assert!((0..m * n).all(|i| expected[i] == transposed[i % n * m + i / n]), "{isa}, {k}");
        for threads in [1, 3] {
            assert!(product(threads, &a, m, &b, n, true) == expected, "{isa}, {k}, {threads} threads");
            assert!(product(threads, &b, n, &a, m, true) == transposed, "{isa}, {k}, {threads} threads");
        }
    }
}

#[test]
fn what_is_not_a_number_stays_so_and_infinity_is_held_against_zero() {
    let (m, n) = (64, 64);
    for isa in Isa::present() {
        let cpu = Cpu { isa, threads: Threads::new(1) };
        for activation in [None, Some(Activation::Relu)] {
            let mut a = vec![bf16::ZERO; m * 32];
            (a[3 * 32], a[5 * 32]) = (bf16::NAN, bf16::NEG_INFINITY);
            let mut c = vec![bf16::ONE; m * n];
            let (b, epilogue) = (vec![1.0; 32 * n], Epilogue { activation, ..Epilogue::default() });
            gemm_bf16(&cpu, Matrix::new(&a, m, 32), Matrix::new(&b, 32, n), &mut c, epilogue);
            let least = if activation.is_none() { bf16::NEG_INFINITY } else { bf16::ZERO };
            for (row, c) in c.chunks(n).enumerate() {
                let fits = |c: &bf16| match row {
                    3 => c.is_nan(),
                    5 => *c == least,
                    _ => *c == bf16::ZERO,
                };
                assert!(c.iter().all(fits), "{isa}, {activation:?}, row {row}: {c:?}");
            }
        }
    }
}
