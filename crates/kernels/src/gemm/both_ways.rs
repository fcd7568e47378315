//! Weights that training in bf16 keeps packed, for the way forward and for the way back.
//!
//! The optimizer packs them anew where it changes them, a group of rows at a time, while these are in a cache. So no product of
//! a step has to read them in f32 and pack them, during which the tile unit would have nothing to do.

use super::bf16::{STEP, pack_right, whole_steps};
use super::{Matrix, PackedWeights};
use crate::Cpu;
use crate::aligned::{ALIGNMENT, Element};
use crate::amx::PANEL;
use crate::isa::Kernel;
use crate::simd::{Real, Simd, settle};
use crate::threads::Shared;
use half::bf16;
use std::any::Any;
use std::ops::Range;

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

    /// The length of a row.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// Packs a group. What follows its rows in a matrix that is wider must be zeros.
    ///
    /// # Safety
    /// No two tasks may have the same group.
    #[inline(always)]
    pub(crate) unsafe fn pack<S: Simd, T: Real>(&self, s: S, group: usize, rows: Matrix<T>) {
        const { assert!(STEP == PANEL) };
        assert!(rows.rows == self.rows(group).len() && rows.cols >= self.k && !rows.transposed);
        let (length, back_length) = (whole_steps(self.k), whole_steps(self.n));
        let mut step = Packed([bf16::ZERO; STEP * PANEL]);
        for column in (0..self.k).step_by(STEP) {
            // Safety: this group's panel, and its step of the panels of the other, are this task's alone.
            let (forward, back) = unsafe {
                let back = self.back.slice(column * back_length + group * STEP * PANEL, STEP * PANEL);
                (self.forward.slice((group * length + column) * PANEL, STEP * PANEL), back)
            };
            pack_right::<_, _, 1>(s, rows.t(), 0, column, &mut step.0);
            step.stream(s, forward);
            pack_right::<_, _, 1>(s, rows, column, 0, &mut step.0);
            step.stream(s, back);
        }
        settle();
    }
}

/// A step of a panel, on its way to memory: in training it is not needed before the other weights were written, too.
#[repr(C, align(64))]
struct Packed([bf16; STEP * PANEL]);

impl Packed {
    #[inline(always)]
    fn stream<S: Simd>(&self, s: S, to: &mut [bf16]) {
        assert!(to.len() == self.0.len() && to.as_ptr().addr().is_multiple_of(ALIGNMENT));
        let (from, to) = (self.0.as_ptr().cast::<f32>(), to.as_mut_ptr().cast::<f32>());
        for at in (0..self.0.len() / 2).step_by(S::LANES) {
            // Safety: pairs of bf16, as many as there are in both, and aligned, as just checked.
            unsafe { s.stream(to.add(at), s.load(from.add(at))) }
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
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = Matrix::new(self.rows, self.places.rows(self.group).len(), self.places.k);
        // Safety: a task has its own group.
        unsafe { self.places.pack(s, self.group, rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Epilogue, Operand, Weights};
    use crate::testing::{bits, normal, rounded};
    use crate::{Isa, Threads};

    /// Rows as they lie and rows that are copied; one stretch of `k` and several; one task and several.
    #[test]
    fn weights_for_both_ways_give_the_bits_of_those_that_are_not_packed() {
        for [m, n, k] in [
            [5, 32, 64],
            [33, 70, 100],
            [17, 1, 33],
            [3, 0, 5],
            [3, 5, 0],
            [300, 300, 544],
            [270, 1100, 1024],
            [300, 96, 2080],
        ] {
            let (x, dy, w) = (rounded(1, m * k), rounded(2, m * n), normal(3, n * k));
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
}
