//! Layer norm.

use super::profile::Share;
use super::view::{by_type, data, data_mut, f32s, same_shape};
use super::{CpuBackend, filled, view_mut};
use crate::backend::{MemoryOps, Norm, NormGradients, NormOps};
use crate::tensor::{DType, Tensor};
use attentive_kernels::{Dropout, norm};

impl NormOps for CpuBackend {
    fn layer_norm(&self, x: &Tensor, gamma: &Tensor, beta: &Tensor, epsilon: f32) -> Norm {
        self.profile.time(Share::Norm, || {
            let mut y = self.room(x);
            let stats = self.build([x.shape().rows(), 2], |stats| {
                by_type!(x, T => {
                    let y = view_mut::<T>(&mut y);
                    norm::layer_norm(&self.cpu, data(x), f32s(gamma), f32s(beta), epsilon, y, stats);
                });
            });
            Norm { y: filled(y, x), z: x.clone(), stats }
        })
    }

    fn residual_layer_norm(
        &self,
        x: &Tensor,
        r: &Tensor,
        dropout: Option<Dropout>,
        gamma: &Tensor,
        beta: &Tensor,
        epsilon: f32,
    ) -> Norm {
        let shape = same_shape("residual_layer_norm", x, r);
        let (gamma, beta) = (f32s(gamma), f32s(beta));
        self.profile.time(Share::Norm, || {
            let (mut y, mut z) = (self.room(x), self.room(x));
            let stats = self.build([shape.rows(), 2], |stats| {
                by_type!(x, T => {
                    let (y, z) = (view_mut::<T>(&mut y), view_mut(&mut z));
                    let (x, r) = (data(x), data(r));
                    norm::residual_layer_norm(&self.cpu, x, r, dropout, gamma, beta, epsilon, z, y, stats);
                });
            });
            Norm { y: filled(y, x), z: filled(z, x), stats }
        })
    }

    fn layer_norm_backward(
        &self,
        norm: &Norm,
        dropout: Option<Dropout>,
        gamma: &Tensor,
        dy: &Tensor,
        (dgamma, dbeta): (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients {
        same_shape("layer_norm_backward", &norm.z, dy);
        let fresh = || self.zeros(gamma.shape(), DType::F32);
        let (mut dgamma, mut dbeta) = (dgamma.unwrap_or_else(fresh), dbeta.unwrap_or_else(fresh));
        let (gamma, stats) = (f32s(gamma), f32s(&norm.stats));
        self.profile.time(Share::Norm, || {
            let (dg, db) = (data_mut(&mut dgamma), data_mut(&mut dbeta));
            let (mut dz, mut dr) = (self.room(dy), dropout.map(|_| self.room(dy)));
            by_type!(dy, T => {
                let (z, dy, dz) = (data(&norm.z), data(dy), view_mut::<T>(&mut dz));
                match (dropout, &mut dr) {
                    (Some(dropout), Some(dr)) => norm::residual_layer_norm_backward(
                        &self.cpu,
                        z,
                        dropout,
                        gamma,
                        stats,
                        dy,
                        dz,
                        view_mut(dr),
                        dg,
                        db,
                        true,
                    ),
                    _ => norm::layer_norm_backward(&self.cpu, z, gamma, stats, dy, dz, dg, db, true),
                }
            });
            let dz = filled(dz, dy);
            let dr = dr.map_or_else(|| dz.clone(), |dr| filled(dr, dy));
            NormGradients { dz, dr, dgamma, dbeta }
        })
    }
}
