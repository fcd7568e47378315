//! Layer norm and RMS norm.

use super::profile::Share;
use super::view::{by_type, data, data_mut, f32s, same_shape};
use super::{CpuBackend, filled, view_mut};
use crate::backend::{MemoryOps, Norm, NormGradients, NormOps, NormWeights};
use crate::tensor::{DType, Tensor};
use attentive_kernels::Dropout;
use attentive_kernels::norm::{self, Dropped, Residual};

impl NormOps for CpuBackend {
    fn norm(&self, weights: &NormWeights, x: &Tensor, residual: Option<(&Tensor, Option<Dropout>)>) -> Norm {
        let &NormWeights { kind, gamma, beta, epsilon } = weights;
        let weights = norm::Weights { kind, gamma: f32s(gamma), beta: beta.map(f32s), epsilon };
        if let Some((r, _)) = residual {
            same_shape("norm", x, r);
        }
        self.profile.time(Share::Norm, || {
            let (mut y, mut z) = (self.room(x), residual.map(|_| self.room(x)));
            let stats = self.build([x.shape().rows(), 2], |stats| {
                by_type!(x, T => {
                    let residual = residual.zip(z.as_mut()).map(|((r, dropout), z)| {
                        Residual { r: data(r), dropout, z: view_mut::<T>(z) }
                    });
                    norm::norm(&self.cpu, weights, data(x), residual, view_mut(&mut y), stats);
                });
            });
            Norm { y: filled(y, x), z: z.map_or_else(|| x.clone(), |z| filled(z, x)), stats }
        })
    }

    fn norm_backward(
        &self,
        weights: &NormWeights,
        norm: &Norm,
        dropout: Option<Dropout>,
        dy: &Tensor,
        (dgamma, dbeta): (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients {
        same_shape("norm_backward", &norm.z, dy);
        let &NormWeights { kind, gamma, beta, .. } = weights;
        let fresh = || self.zeros(gamma.shape(), DType::F32);
        let mut dgamma = dgamma.unwrap_or_else(fresh);
        let mut dbeta = beta.map(|_| dbeta.unwrap_or_else(fresh));
        let (gamma, stats) = (f32s(gamma), f32s(&norm.stats));
        self.profile.time(Share::Norm, || {
            let (mut dz, mut dr) = (self.room(dy), dropout.map(|_| self.room(dy)));
            by_type!(dy, T => {
                let dropped = dropout.zip(dr.as_mut());
                let dropped = dropped.map(|(dropout, dr)| Dropped { dropout, dr: view_mut::<T>(dr) });
                let into = (data_mut(&mut dgamma), dbeta.as_mut().map(data_mut));
                let (z, dy, dz) = (data(&norm.z), data(dy), view_mut(&mut dz));
                norm::norm_backward(&self.cpu, (kind, gamma), z, stats, dy, dz, dropped, into, true);
            });
            let dz = filled(dz, dy);
            let dr = dr.map_or_else(|| dz.clone(), |dr| filled(dr, dy));
            NormGradients { dz, dr, dgamma, dbeta }
        })
    }

    fn group_norm(&self, weights: &NormWeights, groups: usize, x: &Tensor, offsets: &Tensor) -> Norm {
        self.norm_of_groups(weights, groups, x, offsets)
    }

    fn group_norm_backward(
        &self,
        weights: &NormWeights,
        groups: usize,
        offsets: &Tensor,
        norm: &Norm,
        dy: &Tensor,
        into: (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients {
        self.norm_of_groups_backward(weights, groups, offsets, norm, dy, into)
    }
}
