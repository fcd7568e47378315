//! Norms of gradients, and Adam.

use super::CpuBackend;
use super::profile::Share;
use super::view::{by_type, data, data_mut, f32s, learned_mut, same_shape};
use crate::backend::OptimizerOps;
use crate::shape::Shape;
use crate::tensor::Tensor;
use attentive_kernels::optimizer::{self, Adam};

impl OptimizerOps for CpuBackend {
    fn squared_norm(&self, tensors: &[&Tensor]) -> Tensor {
        let sum: f64 = self.profile.time(Share::Optimizer, || {
            let square = |x: &&Tensor| by_type!(x, T => optimizer::squared_norm(&self.cpu, data::<T>(x)));
            tensors.iter().map(square).sum()
        });
        self.build(Shape::SCALAR, |y| y[0] = sum as f32)
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
