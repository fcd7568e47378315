//! Weights on the right of a product, in all the forms that they can have.
//!
//! What is learned stays in f32, row by row. Who only multiplies with weights packs them once: with few rows of activations,
//! packing takes longer than the product. Who learns them in bf16 has them packed for both ways, and writes them anew where he
//! changes them, while they are in a cache.

use super::bf16::{STEP, pack_right, pack_step, whole_steps};
use super::{Int8Weights, Matrix};
use crate::aligned::{Aligned, Element};
use crate::amx::PANEL;
use crate::isa::Kernel;
use crate::simd::Simd;
use crate::threads::Shared;
use crate::{Cpu, Isa};
use half::bf16;
use std::any::Any;
use std::ops::Range;

/// The right operand of a product with activations of type `T`.
#[derive(Debug, Clone)]
pub enum Weights<'a, T: Element> {
    /// As they were learned, `[k, n]`, mostly the transpose of `[n, k]`.
    F32(Matrix<'a>),
    /// Some columns of packed ones, which begin with a panel.
    Packed(&'a PackedWeights<T>, Range<usize>),
    /// Quantised ones.
    Int8(&'a Int8Weights),
}

impl<'a, T: Element> Weights<'a, T> {
    /// How many columns there are: outputs.
    pub fn columns(&self) -> usize {
        match self {
            Weights::F32(b) => b.cols,
            Weights::Packed(_, columns) => columns.len(),
            Weights::Int8(w) => w.outputs(),
        }
    }

    /// Some of the columns, which must begin with a multiple of 64.
    ///
    /// # Panics
    /// If they are quantised: their products begin with rows that are quantised too, and once for all columns.
    pub fn part(&self, columns: Range<usize>) -> Weights<'a, T> {
        match self {
            Weights::F32(b) => Weights::F32(b.t().part(columns).t()),
            Weights::Packed(w, all) => {
                assert!(columns.end <= all.len(), "gemm: columns {columns:?} of {}", all.len());
                Weights::Packed(w, all.start + columns.start..all.start + columns.end)
            }
            Weights::Int8(_) => panic!("gemm: some columns of quantised weights"),
        }
    }
}

/// Weights `[n, k]`, rounded to `T`, in the order in which an instruction set reads them.
#[derive(Debug)]
pub struct PackedWeights<T: Element> {
    /// `[panel][k][columns of a panel]`, or the same in pairs along `k`; with zeros up to whole panels.
    panels: Aligned<T>,
    pub(super) n: usize,
    pub(super) k: usize,
    isa: Isa,
}

impl<T: Element> PackedWeights<T> {
    /// Weights of which `pack` writes `len` numbers.
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

    /// All columns.
    pub fn all(&self) -> Weights<'_, T> {
        Weights::Packed(self, 0..self.n)
    }

    /// The panels from that of a column on, which must be its first.
    pub(super) fn panels_from(&self, cpu: &Cpu, column: usize, width: usize) -> &[T] {
        assert_eq!(cpu.isa, self.isa, "gemm: weights that were packed for {}", self.isa);
        assert!(column.is_multiple_of(width), "gemm: column {column} is not the first of a panel");
        let panels = self.n.div_ceil(width);
        &self.panels[column / width * (self.panels.len() / panels.max(1))..]
    }
}

/// Weights `[n, k]` that are learned, rounded to bf16 and packed for the products of both ways: forward with their transpose,
/// back with themselves.
#[derive(Debug)]
pub struct BothWays {
    forward: PackedWeights<bf16>,
    back: PackedWeights<bf16>,
}

impl BothWays {
    /// Packs weights `[n, k]`.
    pub fn new(cpu: &Cpu, weights: &[f32], n: usize, k: usize) -> BothWays {
        assert_eq!(weights.len(), n * k, "gemm: {} weights for [{n}, {k}]", weights.len());
        let room = |n: usize, k: usize| {
            PackedWeights::new(cpu, n, k, n.next_multiple_of(PANEL) * whole_steps(k), |_| {})
        };
        let mut both = BothWays { forward: room(n, k), back: room(k, n) };
        let places = both.places();
        cpu.threads.run(places.groups(), |group| {
            let rows = &weights[places.rows(group).start * k..places.rows(group).end * k];
            cpu.isa.dispatch(PackRows { places, group, rows });
        });
        both
    }

    /// The shape of the weights, `[n, k]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.forward.n, self.forward.k]
    }

    /// For the way forward, if activations are bf16.
    pub fn forward<T: Element>(&self) -> Option<&PackedWeights<T>> {
        (&self.forward as &dyn Any).downcast_ref()
    }

    /// For the way back, if activations are bf16.
    pub fn back<T: Element>(&self) -> Option<&PackedWeights<T>> {
        (&self.back as &dyn Any).downcast_ref()
    }

    /// Where to write them, some rows at a time.
    pub(crate) fn places(&mut self) -> Places<'_> {
        let [n, k] = self.shape();
        Places {
            forward: Shared::new(&mut self.forward.panels),
            back: Shared::new(&mut self.back.panels),
            n,
            k,
        }
    }
}

/// Where [`BothWays`] are written, in groups of rows that are a panel of one of them and a step of the other.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    forward: Shared<'a, bf16>,
    back: Shared<'a, bf16>,
    n: usize,
    k: usize,
}

impl Places<'_> {
    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.n.div_ceil(PANEL)
    }

    /// The rows of a group.
    pub(crate) fn rows(&self, group: usize) -> Range<usize> {
        group * PANEL..self.n.min((group + 1) * PANEL)
    }

    /// Packs some columns of a group, which begin with a panel and end with one or with the last, from the group's rows.
    ///
    /// # Safety
    /// No two tasks may have the same group.
    #[inline(always)]
    pub(crate) unsafe fn pack<S: Simd>(&self, s: S, group: usize, rows: &[f32], columns: Range<usize>) {
        const { assert!(STEP == PANEL) };
        let (length, back_length) = (whole_steps(self.k), whole_steps(self.n));
        let rows = Matrix::new(rows, self.rows(group).len(), self.k);
        let depth = columns.len().next_multiple_of(STEP);
        // Safety: this group's panel, and its step of the panels of the other, are this task's alone.
        let forward = unsafe { self.forward.slice((group * length + columns.start) * PANEL, depth * PANEL) };
        pack_right(s, rows.t(), 0, columns.start, forward);
        for column in columns.step_by(PANEL) {
            let at = column * back_length + group * STEP * PANEL;
            // Safety: as above.
            pack_step(s, rows, column, unsafe { self.back.slice(at, STEP * PANEL) });
        }
    }
}

/// A group of rows for both ways.
struct PackRows<'a> {
    places: Places<'a>,
    group: usize,
    rows: &'a [f32],
}

impl Kernel for PackRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // Safety: a task has its own group.
        unsafe { self.places.pack(s, self.group, self.rows, 0..self.places.k) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threads;
    use crate::activation::Activation;
    use crate::gemm::{Epilogue, Operand};
    use crate::testing::{bits, normal, normals};
    use half::bf16;

    /// Of all columns, and of those from the 64th on and so forth.
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
    fn weights_for_both_ways_give_the_bits_of_those_that_are_not_packed() {
        for [m, n, k] in [[5, 32, 64], [33, 70, 100], [17, 1, 33], [40, 100, 1030]] {
            let (x, dy) = (normals::<bf16>(1, m * k), normals::<bf16>(2, m * n));
            let w = normal(3, n * k);
            for isa in Isa::present() {
                let cpu = Cpu { isa, threads: Threads::new(2) };
                let both = BothWays::new(&cpu, &w, n, k);
                assert!(both.forward::<f32>().is_none() && both.back::<f32>().is_none());
                let product = |a: &[bf16], b: Weights<bf16>, [inner, outer]: [usize; 2]| {
                    let mut c = vec![bf16::NAN; m * outer];
                    bf16::times_weights(&cpu, Matrix::new(a, m, inner), b, &mut c, Epilogue::default());
                    bits(&c)
                };
                let plain = Matrix::new(&w, n, k);
                let (forward, back) = (both.forward().unwrap().all(), both.back().unwrap().all());
                assert_eq!(
                    product(&x, forward, [k, n]),
                    product(&x, Weights::F32(plain.t()), [k, n]),
                    "{isa}"
                );
                assert_eq!(product(&dy, back, [n, k]), product(&dy, Weights::F32(plain), [n, k]), "{isa}");
            }
        }
    }

    #[test]
    fn packed_weights_give_the_bits_of_those_that_are_not() {
        for size in [[1, 1, 1], [4, 256, 100], [33, 700, 65], [0, 4, 4], [3, 0, 5], [4, 7, 0], [50, 1030, 64]]
        {
            check::<f32>(size);
            check::<bf16>(size);
        }
    }
}
