//! Weights that training in bf16 keeps packed, for the forward and for the backward pass.
//!
//! The optimizer packs a group of rows right after it has changed them, while they are in a cache. So no product of a step has to read
//! weights in f32 and pack them, which would leave the tile unit idle.

use super::bf16::{STEP, pack_right, whole_steps};
use super::{Matrix, PackedWeights};
use crate::Cpu;
use crate::aligned::{ALIGNMENT, Element};
use crate::amx::PANEL;
use crate::isa::Kernel;
use crate::simd::{Real, Simd, store_fence};
use crate::threads::Shared;
use half::bf16;
use std::any::Any;
use std::ops::Range;

/// Learned weights `[n, k]`, rounded to bf16 and packed twice: for products with their transpose in the forward pass, and for products
/// with the weights as they are in the backward pass.
#[derive(Debug)]
pub struct BothWays {
    forward: PackedWeights<bf16>,
    backward: PackedWeights<bf16>,
}

impl BothWays {
    /// Packs weights `[n, k]`.
    pub fn new(cpu: &Cpu, weights: &[f32], n: usize, k: usize) -> BothWays {
        assert_eq!(weights.len(), n * k, "gemm: {} weights for [{n}, {k}]", weights.len());
        let room = |n: usize, k: usize| {
            PackedWeights::new(cpu, n, k, n.next_multiple_of(PANEL) * whole_steps(k), |_| {})
        };
        let mut packed = BothWays { forward: room(n, k), backward: room(k, n) };
        let targets = packed.targets();
        cpu.threads.run(targets.groups(), |group| {
            let rows = &weights[targets.rows(group).start * k..targets.rows(group).end * k];
            cpu.isa.dispatch(PackRows { targets, group, rows });
        });
        packed
    }

    /// The shape of the weights, `[n, k]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.forward.n, self.forward.k]
    }

    /// The weights for the forward pass, if activations are bf16.
    pub fn forward<T: Element>(&self) -> Option<&PackedWeights<T>> {
        (&self.forward as &dyn Any).downcast_ref()
    }

    /// The weights for the backward pass, if activations are bf16.
    pub fn back<T: Element>(&self) -> Option<&PackedWeights<T>> {
        (&self.backward as &dyn Any).downcast_ref()
    }

    /// Where to pack changed rows to.
    pub(crate) fn targets(&mut self) -> PackingTargets<'_> {
        let [n, k] = self.shape();
        PackingTargets {
            forward: Shared::new(&mut self.forward.panels),
            backward: Shared::new(&mut self.backward.panels),
            n,
            k,
        }
    }
}

/// The memory of [`BothWays`], which is written in groups of rows. A group is a panel of the weights for the forward pass and a
/// step of those for the backward pass.
#[derive(Clone, Copy)]
pub(crate) struct PackingTargets<'a> {
    forward: Shared<'a, bf16>,
    backward: Shared<'a, bf16>,
    n: usize,
    k: usize,
}

impl PackingTargets<'_> {
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

    /// Packs the rows of a group. If the matrix is wider than the weights, the rest of each row must be zero.
    ///
    /// # Safety
    /// No two tasks may pack the same group.
    #[inline(always)]
    pub(crate) unsafe fn pack<S: Simd, T: Real>(&self, s: S, group: usize, rows: Matrix<T>) {
        const { assert!(STEP == PANEL) };
        assert!(rows.rows == self.rows(group).len() && rows.cols >= self.k && !rows.transposed);
        let (length, backward_length) = (whole_steps(self.k), whole_steps(self.n));
        let mut step = Packed([bf16::ZERO; STEP * PANEL]);
        for column in (0..self.k).step_by(STEP) {
            // Safety: the panel of this group, and its step of the panels for the backward pass, belong to this task alone.
            let (forward, backward) = unsafe {
                let backward =
                    self.backward.slice(column * backward_length + group * STEP * PANEL, STEP * PANEL);
                (self.forward.slice((group * length + column) * PANEL, STEP * PANEL), backward)
            };
            pack_right::<_, _, 1>(s, rows.t(), 0, column, &mut step.0);
            step.stream(s, forward);
            pack_right::<_, _, 1>(s, rows, column, 0, &mut step.0);
            step.stream(s, backward);
        }
        store_fence();
    }
}

/// A step of a panel. It is written past the caches, because it is not read before all other weights have changed, too.
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

/// Packs a group of rows.
struct PackRows<'a> {
    targets: PackingTargets<'a>,
    group: usize,
    rows: &'a [f32],
}

impl Kernel for PackRows<'_> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = Matrix::new(self.rows, self.targets.rows(self.group).len(), self.targets.k);
        // Safety: a task has its own group.
        unsafe { self.targets.pack(s, self.group, rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Epilogue, Operand, Weights};
    use crate::testing::{bits, normal, rounded};
    use crate::{Isa, Threads};

    /// Rows in place and rows that are copied, one stretch of `k` and several, one task and several.
    #[test]
    fn weights_that_are_packed_for_training_give_the_bits_of_those_that_are_not() {
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
                let packed = BothWays::new(&cpu, &w, n, k);
                assert!(packed.forward::<f32>().is_none() && packed.back::<f32>().is_none());
                let product = |a: &[bf16], b: Weights<bf16>, [inner, outer]: [usize; 2]| {
                    let mut c = vec![bf16::NAN; m * outer];
                    bf16::times_weights(&cpu, Matrix::new(a, m, inner), b, &mut c, Epilogue::default());
                    bits(&c)
                };
                let plain = Matrix::new(&w, n, k);
                let (forward, backward) = (packed.forward().unwrap().all(), packed.back().unwrap().all());
                assert_eq!(
                    product(&x, forward, [k, n]),
                    product(&x, Weights::F32(plain.t()), [k, n]),
                    "{isa}"
                );
                assert_eq!(
                    product(&dy, backward, [n, k]),
                    product(&dy, Weights::F32(plain), [n, k]),
                    "{isa}"
                );
            }
        }
    }
}
