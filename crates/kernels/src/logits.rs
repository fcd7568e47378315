//! The greatest of the logits `x · wᵀ + bias`, which never exist as a whole.
//!
//! The logits of a step are several megabytes, and only a few of them matter. So they are computed some columns at a time, for all rows,
//! and searched while they are in the cache.

use crate::Cpu;
use crate::gemm::{Epilogue, Int8Rows, Matrix, Operand, Weights, gemm_int8_columns};
use crate::scratch::Scratch;
use crate::top::{CHUNK, Found, TokenLists, Top, Wanted};

/// The greatest logits of each row, greatest first, and `log Σ e^logit`, as far as they are wanted; see [`Top`]. The logits of the tokens
/// in `apart` are returned on their own; see [`TokenLists`].
pub fn top_logits<T: Operand>(
    cpu: &Cpu,
    x: Matrix<T>,
    table: Weights<T>,
    bias: Option<&[f32]>,
    wanted: Wanted,
    apart: TokenLists,
) -> Found {
    let classes = table.columns();
    let (lists, rows) = (apart.ends.len(), x.rows());
    assert!(lists == 0 || lists == rows, "top_logits: {lists} lists for {rows} rows");
    let mut listed = vec![f32::NEG_INFINITY; apart.tokens.len()];
    // The next token of each list.
    let mut next: Vec<usize> = (0..lists).map(|row| apart.of(row).start).collect();
    let mut top = Top::new(x.rows(), wanted);
    let mut logits = Scratch::<f32>::take(x.rows() * CHUNK.min(classes));
    let quantised = if let Weights::Int8(w) = table { Some((Int8Rows::new(cpu, x), w)) } else { None };
    for first in (0..classes).step_by(CHUNK) {
        let columns = first..classes.min(first + CHUNK);
        let width = columns.len();
        let logits = &mut logits[..x.rows() * columns.len()];
        if let Some((x, w)) = &quantised {
            gemm_int8_columns(cpu, x, w, columns, logits, Epilogue { bias, ..Epilogue::default() });
        } else {
            let bias = bias.map(|bias| &bias[columns.clone()]);
            T::logits(cpu, x, table.part(columns), logits, Epilogue { bias, ..Epilogue::default() });
        }
        for (row, next) in next.iter_mut().enumerate() {
            let end = first + width;
            while *next < apart.of(row).end && (apart.tokens[*next] as usize) < end {
                let place = row * width + (apart.tokens[*next] as usize - first);
                let is_never = wanted.never == Some(apart.tokens[*next] as usize);
                listed[*next] = if is_never { f32::NEG_INFINITY } else { logits[place] };
                if apart.counted.binary_search(&row).is_err() {
                    logits[place] = f32::NEG_INFINITY;
                }
                *next += 1;
            }
        }
        top.add(cpu, first, logits);
    }
    let (best, log_sums) = top.finish();
    Found { best, log_sums, apart: listed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::Int8Weights;
    use crate::testing::{cpus, normal};
    use crate::top::{Best, top_of_row};

    #[test]
    fn tokens_that_are_told_apart_are_neither_among_the_best_nor_in_the_sum() {
        let (rows, d, classes) = (4, 24, CHUNK + 70);
        let (x, w) = (normal(1, rows * d), normal(2, classes * d));
        let matrix = Matrix::new(&x[..], rows, d);
        for cpu in cpus() {
            let table = Weights::F32(Matrix::new(&w[..], classes, d).t());
            let mut logits = vec![0.0; rows * classes];
            f32::logits(&cpu, matrix, table.clone(), &mut logits, Epilogue::default());
            // The best of the first row, nothing of the second, both ends and the seam of the third; of the fourth, what counts.
            let mut best = [Best::NONE];
            top_of_row(cpu.isa, &logits[..classes], &mut best);
            let third = [0, CHUNK as u32 - 1, CHUNK as u32, classes as u32 - 1];
            let tokens: Vec<u32> = best.iter().map(|best| best.token).chain(third).chain([7]).collect();
            let apart = TokenLists { tokens: &tokens, ends: &[1, 1, 5, 6], counted: &[3] };
            let wanted = Wanted { count: 3, sums: true, never: None };
            let found = top_logits(&cpu, matrix, table, None, wanted, apart);
            for row in 0..rows {
                let logits = &mut logits[row * classes..][..classes];
                for place in apart.of(row) {
                    let logit = &mut logits[tokens[place] as usize];
                    assert_eq!(found.apart[place], *logit, "{:?}", cpu.isa);
                    if row != 3 {
                        *logit = f32::NEG_INFINITY;
                    }
                }
                let mut best = [Best::NONE; 3];
                let sum = top_of_row(cpu.isa, logits, &mut best);
                assert_eq!(
                    (&found.best[row * 3..][..3], found.log_sums[row]),
                    (&best[..], sum),
                    "{:?}",
                    cpu.isa
                );
            }
        }
    }

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
                    let found =
                        top_logits(&cpu, matrix, table.clone(), Some(&bias), wanted, TokenLists::NONE);
                    let (best, sums) = (found.best, found.log_sums);
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
