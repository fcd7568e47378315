//! Group norm.

use super::profile::Share;
use super::view::{by_type, data, data_mut, f32s, i32s, same_shape};
use super::{CpuBackend, filled, view_mut};
use crate::backend::{MemoryOps, Norm, NormGradients, NormWeights};
use crate::tensor::{DType, Tensor};
use attentive_kernels::norm::{self, Groups};

/// The weights as the kernel takes them.
fn kernel_weights<'a>(weights: &NormWeights<'a>, groups: usize) -> Groups<'a> {
    let beta = weights.beta.expect("group_norm: there is no shift");
    Groups { groups, gamma: f32s(weights.gamma), beta: f32s(beta), epsilon: weights.epsilon }
}

impl CpuBackend {
    pub(super) fn norm_of_groups(
        &self,
        weights: &NormWeights,
        groups: usize,
        x: &Tensor,
        offsets: &Tensor,
    ) -> Norm {
        let (weights, offsets) = (kernel_weights(weights, groups), i32s(offsets));
        self.profile.time(Share::Norm, || {
            let mut y = self.room(x);
            let stats = self.build([offsets.len().saturating_sub(1), groups, 2], |stats| {
                by_type!(x, T => {
                    norm::group_norm(&self.cpu, weights, offsets, data::<T>(x), view_mut(&mut y), stats);
                });
            });
            Norm { y: filled(y, x), z: x.clone(), stats }
        })
    }

    pub(super) fn norm_of_groups_backward(
        &self,
        weights: &NormWeights,
        groups: usize,
        offsets: &Tensor,
        norm: &Norm,
        dy: &Tensor,
        (dgamma, dbeta): (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients {
        same_shape("group_norm_backward", &norm.z, dy);
        let fresh = || self.zeros(weights.gamma.shape(), DType::F32);
        let (mut dgamma, mut dbeta) = (dgamma.unwrap_or_else(fresh), dbeta.unwrap_or_else(fresh));
        let weights = kernel_weights(weights, groups);
        self.profile.time(Share::Norm, || {
            let mut dz = self.room(dy);
            by_type!(dy, T => {
                let (x, into) = (data::<T>(&norm.z), [data_mut(&mut dgamma), data_mut(&mut dbeta)]);
                let (offsets, dz) = (i32s(offsets), view_mut(&mut dz));
                let x = (x, f32s(&norm.stats));
                norm::group_norm_backward(&self.cpu, weights, offsets, x, data(dy), dz, into);
            });
            let dz = filled(dz, dy);
            NormGradients { dr: dz.clone(), dz, dgamma, dbeta: Some(dbeta) }
        })
    }
}
