use super::*;
use crate::activation::Activation;
use crate::testing::normal;
use crate::{Isa, Threads};

fn quantised(row: &[f32]) -> (Vec<i32>, f32) {
    let scale = row.iter().fold(0f32, |most, x| most.max(x.abs())) / LARGEST;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    (row.iter().map(|x| (x * inverse).round_ties_even() as i32).collect(), scale)
}

/// The product of the quantised numbers by its definition.
fn reference(a: &[f32], w: &[f32], [m, k, n]: [usize; 3], bias: &[f32]) -> Vec<f32> {
    let rows: Vec<_> = (0..m).map(|i| quantised(&a[i * k..][..k])).collect();
    let columns: Vec<_> = (0..n).map(|j| quantised(&w[j * k..][..k])).collect();
    let element = |i: usize, j: usize| {
        let sum: i32 = rows[i].0.iter().zip(&columns[j].0).map(|(a, b)| a * b).sum();
        (sum as f32 * rows[i].1 * columns[j].1 + bias[j]).max(0.0)
    };
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [1, 300, 70],
    [33, 64, 32],
    [5, 129, 1],
    [0, 4, 4],
    [3, 0, 5],
    [4, 7, 0],
    [70, 512, 100],
    [2, 2048, 40],
];

#[test]
fn products_are_those_of_the_quantised_numbers_to_the_bit_on_every_instruction_set_and_number_of_threads() {
    for [m, k, n] in SIZES {
        let (a, w, bias) = (normal(1, m * k), normal(2, n * k), normal(3, n));
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
