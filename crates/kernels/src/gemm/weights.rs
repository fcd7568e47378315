//! Weights on the right of a product, in each form that they can have.
//!
//! Weights that are learned stay in f32, row-major. Weights that are only multiplied with are packed once, because with few rows of
//! activations packing takes longer than the product. Training in bf16 keeps packed copies beside the f32 numbers; see
//! [`BothWays`](super::BothWays).

use super::{Int8Weights, Matrix, Shape};
use crate::aligned::{Aligned, Element};
use crate::{Cpu, Isa};
use std::ops::Range;

/// The right operand of a product with activations of type `T`.
#[derive(Debug, Clone)]
pub enum Weights<'a, T: Element> {
    /// Numbers in f32, `[k, n]`: mostly the transpose of learned weights `[n, k]`.
    F32(Matrix<'a>),
    /// Packed weights, or a part of them.
    Packed {
        /// All weights.
        weights: &'a PackedWeights<T>,
        /// The columns to multiply with. They begin with a panel.
        columns: Range<usize>,
        /// How many elements of each column to multiply with, from the first on. In f32 it must be all.
        k: usize,
    },
    /// Quantised weights.
    Int8(&'a Int8Weights),
}

impl<'a, T: Element> Weights<'a, T> {
    /// How many columns there are, one for each output.
    pub fn columns(&self) -> usize {
        match self {
            Weights::F32(b) => b.cols,
            Weights::Packed { columns, .. } => columns.len(),
            Weights::Int8(w) => w.outputs(),
        }
    }

    /// Some of the columns, beginning at a multiple of 64.
    ///
    /// # Panics
    /// If the weights are quantised. Their products need quantised rows, which [`super::gemm_int8_columns`] shares among columns.
    pub fn part(&self, columns: Range<usize>) -> Weights<'a, T> {
        match self {
            Weights::F32(b) => Weights::F32(b.t().part(columns).t()),
            &Weights::Packed { weights, columns: ref all, k } => {
                assert!(columns.end <= all.len(), "gemm: columns {columns:?} of {}", all.len());
                Weights::Packed { weights, columns: all.start + columns.start..all.start + columns.end, k }
            }
            Weights::Int8(_) => panic!("gemm: some columns of quantised weights"),
        }
    }
}

/// Weights `[n, k]`, rounded to `T`, in the order in which the products of an instruction set read them.
#[derive(Debug)]
pub struct PackedWeights<T: Element> {
    /// `[panel][k][columns of a panel]`, or the same in pairs along `k`, padded with zeros to whole panels.
    pub(super) panels: Aligned<T>,
    pub(super) n: usize,
    pub(super) k: usize,
    isa: Isa,
}

impl<T: Element> PackedWeights<T> {
    /// Weights whose `len` packed numbers `pack` writes.
    pub(super) fn new(
        cpu: &Cpu,
        n: usize,
        k: usize,
        len: usize,
        pack: impl FnOnce(&mut [T]),
    ) -> PackedWeights<T> {
        let mut panels = Aligned::lasting(len);
        pack(&mut panels);
        PackedWeights { panels, n, k, isa: cpu.isa }
    }

    /// All of them.
    pub fn all(&self) -> Weights<'_, T> {
        self.first(self.k)
    }

    /// The first `k` elements of all columns. The other elements must be finite.
    pub(crate) fn first(&self, k: usize) -> Weights<'_, T> {
        assert!(k <= self.k, "gemm: {k} elements of {}", self.k);
        Weights::Packed { weights: self, columns: 0..self.n, k }
    }

    /// The panels from `column` on, which must be the first column of a panel.
    pub(super) fn panels_from(&self, cpu: &Cpu, column: usize, width: usize) -> &[T] {
        assert_eq!(cpu.isa, self.isa, "gemm: weights that were packed for {}", self.isa);
        assert!(column.is_multiple_of(width), "gemm: column {column} is not the first of a panel");
        let panels = self.n.div_ceil(width);
        &self.panels[column / width * (self.panels.len() / panels.max(1))..]
    }
}

impl PackedWeights<f32> {
    /// `y[t] = scale · weights[ids[t]]`: the rows of weights `[n, k]`, as [`embedding`](crate::embedding::embedding) gives them from weights
    /// that are not packed. A row is a column of a panel, so that each of its numbers lies in a cache line of its own.
    ///
    /// # Panics
    /// If there is no row of that number, or they were packed for another instruction set.
    pub fn rows(&self, cpu: &Cpu, ids: &[i32], scale: f32, y: &mut [f32]) {
        let (k, width) = (self.k, Shape::of(cpu.isa).cols);
        assert_eq!(y.len(), ids.len() * k, "rows: {} elements for {} rows of {k}", y.len(), ids.len());
        cpu.threads.for_pieces(y, k.max(1), |i, y| {
            let row = usize::try_from(ids[i]).ok().filter(|&row| row < self.n);
            let row = row.unwrap_or_else(|| panic!("rows: there is no row {} among {}", ids[i], self.n));
            let panel = &self.panels_from(cpu, row - row % width, width)[row % width..];
            for (y, x) in y.iter_mut().zip(panel.iter().step_by(width)) {
                *y = scale * x;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threads;
    use crate::activation::Activation;
    use crate::embedding::embedding;
    use crate::gemm::{Epilogue, Operand};
    use crate::testing::{bits, normal, normals};
    use half::bf16;

    /// With all columns, with those from 64 on, and so forth.
    fn check<T: Operand>([m, k, n]: [usize; 3]) {
        let a: Vec<T> = normals(1, m * k).into_iter().map(T::from_f32).collect();
        let (w, bias) = (normal(2, n * k), normal(3, n));
        for isa in Isa::present() {
            for threads in [1, 3] {
                let cpu = Cpu { isa, threads: Threads::new(threads) };
                let (packed, plain) = (T::pack(&cpu, &w, n, k), Weights::F32(Matrix::new(&w, n, k).t()));
                for first in (0..n.max(1)).step_by(64) {
                    let columns = first..n;
                    let bias = Some(&bias[columns.clone()]);
                    let epilogue =
                        Epilogue { bias, activation: Some(Activation::Relu), ..Epilogue::default() };
                    let product = |weights: &Weights<T>| {
                        let mut c = vec![T::from_f32(f32::NAN); m * columns.len()];
                        let weights = weights.part(columns.clone());
                        T::times_weights(&cpu, Matrix::new(&a, m, k), weights, &mut c, epilogue);
                        bits(&c)
                    };
                    assert_eq!(
                        product(&packed.all()),
                        product(&plain),
                        "{isa}: {m} × {k} × {n}, {columns:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn rows_of_packed_weights_are_those_of_the_table() {
        let ids = [64, 0, 99, 0, 31];
        for [n, k] in [[100, 33], [100, 1]] {
            let w = normal(1, n * k);
            for isa in Isa::present() {
                let cpu = Cpu { isa, threads: Threads::new(2) };
                let [mut found, mut expected] = [(); 2].map(|()| vec![f32::NAN; ids.len() * k]);
                f32::pack(&cpu, &w, n, k).rows(&cpu, &ids, 3.0, &mut found);
                embedding(&cpu, &w, k, &ids, 3.0, &mut expected);
                assert_eq!(bits(&found), bits(&expected), "{isa}: {n} × {k}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "rows: there is no row 2 among 2")]
    fn a_row_behind_the_last_is_refused() {
        let cpu = Cpu { isa: Isa::best(), threads: Threads::new(1) };
        f32::pack(&cpu, &[1.0; 6], 2, 3).rows(&cpu, &[2], 1.0, &mut [0.0; 3]);
    }

    #[test]
    fn packed_weights_give_the_bits_of_those_that_are_not() {
        for size in [
            [1, 1, 1],
            [4, 256, 100],
            [33, 700, 65],
            [0, 4, 4],
            [3, 0, 5],
            [4, 7, 0],
            [50, 1030, 64],
            [70, 352, 160],
        ] {
            check::<f32>(size);
            check::<bf16>(size);
        }
    }
}
