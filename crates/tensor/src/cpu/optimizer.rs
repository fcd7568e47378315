//! Norms of gradients, and Adam.

use super::CpuBackend;
use super::profile::Share;
use super::view::{by_type, data, data_mut, f32s, learned_mut, same_shape};
use crate::backend::{NORM_RUN, OptimizerOps};
use crate::shape::Shape;
use crate::tensor::Tensor;
use attentive_kernels::optimizer::{self, Adam};

impl CpuBackend {
    /// The sum of the squares of each run.
    fn squares(&self, x: &Tensor) -> Vec<f32> {
        let mut sums = vec![0.0; x.shape().len().div_ceil(NORM_RUN)];
        self.profile.time(Share::Optimizer, || {
            by_type!(x, T => {
                let x = data::<T>(x);
                self.cpu.threads.for_pieces(&mut sums, 1, |i, sum| {
                    let run = &x[i * NORM_RUN..x.len().min((i + 1) * NORM_RUN)];
                    sum[0] = optimizer::squared_norm(&self.cpu, run) as f32;
                });
            });
        });
        sums
    }
}

impl OptimizerOps for CpuBackend {
    fn squared_norm(&self, tensors: &[&Tensor]) -> Tensor {
        let sums = tensors.iter().flat_map(|x| self.squares(x));
        let sum: f64 = sums.map(f64::from).sum();
        self.build(Shape::SCALAR, |y| y[0] = sum as f32)
    }

    fn squared_norms(&self, x: &Tensor) -> Tensor {
        let sums = self.squares(x);
        self.build([sums.len()], |y| y.copy_from_slice(&sums))
    }

    fn clip_factor(&self, squared_norm: &Tensor, limit: f32) -> Tensor {
        let norm = f32s(squared_norm)[0].sqrt();
        self.build(Shape::SCALAR, |y| y[0] = if norm > limit { limit / norm } else { 1.0 })
    }

    fn adam(
        &self,
        rule: &Adam,
        step: u32,
        factor: Option<&Tensor>,
        p: &mut Tensor,
        g: &Tensor,
        [m, v]: [&mut Tensor; 2],
    ) {
        same_shape("adam", p, g);
        let factor = factor.map_or(1.0, |factor| f32s(factor)[0]);
        let (m, v) = (data_mut(m), data_mut(v));
        let (p, packed) = learned_mut(p);
        self.profile.time(Share::Optimizer, || {
            by_type!(g, T => optimizer::adam(&self.cpu, rule, step, factor, p, data::<T>(g), m, v, packed));
        });
    }
}
