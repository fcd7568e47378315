//! Elementwise operations.

use super::CpuBackend;
use super::profile::Share;
use super::view::{by_type, data, data_mut, f32s, same_shape};
use crate::backend::{Binary, ElementwiseOps};
use crate::shape::Shape;
use crate::tensor::{DType, Tensor};
use attentive_kernels::activation::{self, Activation};
use attentive_kernels::{Dropout, elementwise};
use half::bf16;

impl ElementwiseOps for CpuBackend {
    fn binary(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
        let (shape, other) = (a.shape(), b.shape());
        self.profile.time(Share::Elementwise, || {
            by_type!(a, T => {
                let x = data::<T>(a);
                self.build(shape, |y| match op {
                    Binary::Add if other == shape => elementwise::add(&self.cpu, x, data(b), y),
                    Binary::Mul if other == shape => elementwise::mul(&self.cpu, x, data(b), y),
                    Binary::Add if other == Shape::from([shape.cols()]) => {
                        elementwise::add_row(&self.cpu, x, f32s(b), y);
                    }
                    Binary::Mul if other == Shape::SCALAR => elementwise::scale(&self.cpu, x, f32s(b)[0], y),
                    _ => panic!("{op:?}: {shape} and {other} do not fit"),
                })
            })
        })
    }

    fn scale(&self, x: &Tensor, factor: f32) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(x.shape(), |y| elementwise::scale(&self.cpu, data::<T>(x), factor, y))
            })
        })
    }

    fn cast(&self, x: &Tensor, to: DType) -> Tensor {
        if x.dtype() == to {
            return x.clone();
        }
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => match to {
                DType::F32 => {
                    self.build(x.shape(), |y: &mut [f32]| elementwise::cast(&self.cpu, data::<T>(x), y))
                }
                DType::Bf16 => {
                    self.build(x.shape(), |y: &mut [bf16]| elementwise::cast(&self.cpu, data::<T>(x), y))
                }
                _ => panic!("cast: {x:?} to {to:?}"),
            })
        })
    }

    fn add_assign(&self, y: &mut Tensor, x: &Tensor, factor: f32) {
        same_shape("add_assign", y, x);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => elementwise::add_assign(&self.cpu, data_mut(y), data::<T>(x), factor));
        });
    }

    fn blend(&self, y: &mut Tensor, x: &Tensor, share: f32) {
        same_shape("blend", y, x);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => elementwise::blend(&self.cpu, data_mut(y), data::<T>(x), share));
        });
    }

    fn activate(&self, activation: Activation, x: &Tensor) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(x.shape(), |y| activation::activate(&self.cpu, activation, data::<T>(x), y))
            })
        })
    }

    fn activate_backward(&self, activation: Activation, x: &Tensor, dy: &Tensor) -> Tensor {
        let shape = same_shape("activate_backward", x, dy);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => self.build(shape, |dx| {
                activation::activate_backward(&self.cpu, activation, data::<T>(x), data(dy), dx);
            }))
        })
    }

    fn dropout(&self, x: &Tensor, dropout: Dropout) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(x.shape(), |y| elementwise::dropout(&self.cpu, data::<T>(x), dropout, y))
            })
        })
    }

    fn residual(&self, x: &Tensor, r: &Tensor, dropout: Option<Dropout>) -> Tensor {
        let shape = same_shape("residual", x, r);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(shape, |y| elementwise::add_dropout(&self.cpu, data::<T>(x), data(r), dropout, y))
            })
        })
    }
}
