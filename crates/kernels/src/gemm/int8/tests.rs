use super::*;
use crate::activation::Activation;
use crate::testing::normal;
use crate::{Isa, Threads};

fn quantised(row: &[f32]) -> (Vec<i32>, f32) {
    let scale = row.iter().fold(0f32, |most, x| most.max(x.abs())) / LARGEST;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    (row.iter().map(|x| (x * inverse).round_ties_even() as i32).collect(), scale)
}

fn centred(row: &[f32]) -> (Vec<i32>, f32, f32) {
    let least = row.iter().fold(0f32, |least, &x| least.min(x));
    let greatest = row.iter().fold(0f32, |most, &x| most.max(x));
    let (scale, centre) = ((0.5 * greatest - 0.5 * least) / LARGEST, 0.5 * greatest + 0.5 * least);
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    (row.iter().map(|x| ((x - centre) * inverse).round_ties_even() as i32).collect(), scale, centre)
}

/// The product of the quantised numbers by its definition.
fn reference(a: &[f32], w: &[f32], [m, k, n]: [usize; 3], bias: &[f32]) -> Vec<f32> {
    let rows: Vec<_> = (0..m).map(|i| centred(&a[i * k..][..k])).collect();
    let columns: Vec<_> = (0..n).map(|j| quantised(&w[j * k..][..k])).collect();
    let element = |i: usize, j: usize| {
        let sum: i32 = rows[i].0.iter().zip(&columns[j].0).map(|(a, b)| a * b).sum();
        let total = columns[j].0.iter().sum::<i32>() as f32 * columns[j].1;
        (sum as f32 * rows[i].1 * columns[j].1 + (rows[i].2 * total + bias[j])).max(0.0)
    };
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

const SIZES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [1, 300, 70],
    [33, 64, 32],
    [5, 129, 1],
    [0, 4, 4],
    [3, 0, 5],
    [4, 7, 0],
    [70, 512, 100],
    [2, 2048, 40],
    [128, 64, 64],
    [299, 130, 300],
    [280, 384, 96],
];

#[test]
fn products_are_those_of_the_quantised_numbers_to_the_bit_on_every_instruction_set_and_number_of_threads() {
    for [m, k, n] in SIZES {
        let (mut a, w, bias) = (normal(1, m * k), normal(2, n * k), normal(3, n));
        // Rows on one side of zero, on the other, and of a single number.
        a.iter_mut().take(k).for_each(|x| *x = x.abs());
        a.iter_mut().skip(k).take(k).for_each(|x| *x -= 5.0);
        a.iter_mut().skip(2 * k).take(k).for_each(|x| *x = 0.25);
        let expected = reference(&a, &w, [m, k, n], &bias);
        let epilogue =
            Epilogue { bias: Some(&bias), activation: Some(Activation::Relu), ..Epilogue::default() };
        for isa in Isa::present() {
            for threads in [1, 3] {
                let mut c = vec![f32::NAN; m * n];
                let cpu = Cpu { isa, threads: Threads::new(threads) };
                let weights = Int8Weights::new(&cpu, &w, n, k);
                gemm_int8(&cpu, Matrix::new(&a, m, k), &weights, &mut c, epilogue);
                assert_eq!(c, expected, "{isa} {m} {k} {n}");
            }
        }
    }
}

#[test]
fn the_error_of_quantising_is_small() {
    let [m, k, n] = [20, 512, 48];
    let (a, w) = (normal(1, m * k), normal(2, n * k));
    let mut c = vec![0.0; m * n];
    let cpu = Cpu { isa: Isa::best(), threads: Threads::new(2) };
    let weights = Int8Weights::new(&cpu, &w, n, k);
    gemm_int8(&cpu, Matrix::new(&a, m, k), &weights, &mut c, Epilogue::default());
    let mut exact = vec![0.0; m * n];
    super::super::gemm(
        &cpu,
        Matrix::new(&a, m, k),
        Matrix::new(&w, n, k).t(),
        &mut exact,
        Epilogue::default(),
    );
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| (x as f64).powi(2)).sum::<f64>().sqrt();
    let error = norm(&mut c.iter().zip(&exact).map(|(a, b)| a - b)) / norm(&mut exact.iter().copied());
    assert!(error < 0.02, "{error}");
}

/// What a checkpoint stores and what is quantised when it is loaded must be the same.
#[test]
fn rows_are_quantised_to_the_same_numbers_on_every_instruction_set_and_one_by_one() {
    let (m, k) = (40, 70);
    let mut a = normal(1, m * k);
    a[3 * k..4 * k].fill(0.0);
    // Halves between two whole numbers.
    (0..k).for_each(|i| a[5 * k + i] = i as f32 / 2.0 - 15.0);
    a[5 * k] = 127.0;
    let (mut rows, mut scales) = (vec![0; m * k], Vec::new());
    for (row, to) in a.chunks(k).zip(rows.chunks_mut(k)) {
        scales.push(quantise(row, to));
    }
    for isa in Isa::present() {
        let cpu = Cpu { isa, threads: Threads::new(2) };
        let quantised = Int8Rows::of_weights(&cpu, Matrix::new(&a[..], m, k));
        assert_eq!(scales, quantised.scales[..], "{isa}");
        for (i, row) in rows.chunks(k).enumerate() {
            assert_eq!(row, &quantised.rows[i * k.next_multiple_of(STEP)..][..k], "{isa}, row {i}");
        }
    }
}
