//! Sums and means.

use super::CpuBackend;
use super::profile::Share;
use super::view::{by_type, data, i32s};
use crate::backend::ReduceOps;
use crate::shape::Shape;
use crate::tensor::Tensor;
use attentive_kernels::{elementwise, mean};

impl ReduceOps for CpuBackend {
    fn sum_rows(&self, x: &Tensor, into: Option<Tensor>) -> Tensor {
        let cols = x.shape().cols();
        self.profile.time(Share::Elementwise, || {
            self.accumulate(into, [cols], |y, accumulate| {
                by_type!(x, T => elementwise::sum_rows(&self.cpu, data::<T>(x), cols, y, accumulate));
            })
        })
    }

    fn mean_rows(&self, x: &Tensor, offsets: &Tensor) -> Tensor {
        let (d, offsets) = (x.shape().cols(), i32s(offsets));
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => self.build([offsets.len().saturating_sub(1), d], |y| {
                mean::mean_rows(&self.cpu, data::<T>(x), d, offsets, y);
            }))
        })
    }

    fn mean_rows_backward(&self, dy: &Tensor, offsets: &Tensor, shape: Shape) -> Tensor {
        assert_eq!(dy.shape().cols(), shape.cols(), "mean_rows_backward: dy {} for {shape}", dy.shape());
        self.profile.time(Share::Elementwise, || {
            by_type!(dy, T => self.build(shape, |dx| {
                mean::mean_rows_backward(&self.cpu, data::<T>(dy), shape.cols(), i32s(offsets), dx);
            }))
        })
    }
}
