//! The best of the logits `x · wᵀ + bias`, which never exist as a whole.
//!
//! The logits of a step are several megabytes, and only a few of them matter. They are made some columns at a time, for all
//! rows, and looked at while they are in cache.

use crate::Cpu;
use crate::gemm::{Epilogue, Int8Rows, Matrix, Operand, Weights, gemm_int8_columns};
use crate::scratch::Scratch;
use crate::top::{Best, CHUNK, Top, Wanted};

/// The greatest logits of each row, greatest first, and `log Σ e^logit`, as far as they are wanted; see [`Top`].
pub fn top_logits<T: Operand>(
    cpu: &Cpu,
    x: Matrix<T>,
    table: Weights<T>,
    bias: Option<&[f32]>,
    wanted: Wanted,
) -> (Vec<Best>, Vec<f32>) {
    let classes = table.columns();
    let mut top = Top::new(x.rows(), wanted);
    let mut logits = Scratch::<f32>::take(x.rows() * CHUNK.min(classes));
    let quantised = if let Weights::Int8(w) = table { Some((Int8Rows::new(cpu, x), w)) } else { None };
    for first in (0..classes).step_by(CHUNK) {
        let columns = first..classes.min(first + CHUNK);
        let logits = &mut logits[..x.rows() * columns.len()];
        if let Some((x, w)) = &quantised {
            gemm_int8_columns(cpu, x, w, columns, logits, Epilogue { bias, ..Epilogue::default() });
        } else {
            let bias = bias.map(|bias| &bias[columns.clone()]);
            T::logits(cpu, x, table.part(columns), logits, Epilogue { bias, ..Epilogue::default() });
        }
        top.add(cpu, first, logits);
    }
    top.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::Int8Weights;
    use crate::testing::{cpus, normal};
    use crate::top::top_of_row;

    #[test]
    fn they_are_the_best_of_the_logits_that_a_product_gives() {
        let (rows, d, classes) = (5, 40, 2 * CHUNK + 70);
        let (x, w, bias) = (normal(1, rows * d), normal(2, classes * d), normal(3, classes));
        let matrix = Matrix::new(&x[..], rows, d);
        for cpu in cpus() {
            let quantised = Int8Weights::new(&cpu, &w, classes, d);
            let packed = f32::pack(&cpu, &w, classes, d);
            let plain = Weights::F32(Matrix::new(&w[..], classes, d).t());
            for table in [plain, packed.all(), Weights::Int8(&quantised)] {
                let mut logits = vec![0.0; rows * classes];
                let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
                f32::logits(&cpu, matrix, table.clone(), &mut logits, epilogue);
                for count in [1, 8] {
                    let wanted = Wanted { count, sums: true, never: None };
                    let (best, sums) = top_logits(&cpu, matrix, table.clone(), Some(&bias), wanted);
                    for (i, row) in logits.chunks(classes).enumerate() {
                        let mut expected = vec![Best::NONE; count];
                        let sum = top_of_row(cpu.isa, row, &mut expected);
                        assert_eq!(
                            (&best[i * count..][..count], sums[i]),
                            (&expected[..], sum),
                            "{:?}",
                            cpu.isa
                        );
                    }
                }
            }
        }
    }
}
