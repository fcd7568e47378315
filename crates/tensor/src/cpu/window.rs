//! Windows over pictures.

use super::CpuBackend;
use super::profile::Share;
use super::view::{by_type, data, i32s};
use crate::backend::WindowOps;
use crate::tensor::Tensor;
use attentive_kernels::window::{self, Window};

impl WindowOps for CpuBackend {
    fn unfold(&self, window: &Window, sizes: &[[usize; 2]], x: &Tensor) -> Tensor {
        let channels = x.shape().cols();
        self.profile.time(Share::Window, || {
            by_type!(x, T => self.build([places(window, sizes), window.pixels() * channels], |y| {
                window::unfold(&self.cpu, window, sizes, channels, data::<T>(x), y);
            }))
        })
    }

    fn fold(&self, window: &Window, sizes: &[[usize; 2]], dy: &Tensor) -> Tensor {
        let channels = dy.shape().cols() / window.pixels();
        self.profile.time(Share::Window, || {
            by_type!(dy, T => self.build([pixels(sizes), channels], |dx| {
                window::fold(&self.cpu, window, sizes, channels, data::<T>(dy), dx);
            }))
        })
    }

    fn max_pool(&self, window: &Window, sizes: &[[usize; 2]], x: &Tensor) -> (Tensor, Tensor) {
        let shape = [places(window, sizes), x.shape().cols()];
        self.profile.time(Share::Window, || {
            let mut y = None;
            let from = self.build(shape, |from: &mut [i32]| {
                by_type!(x, T => y = Some(self.build(shape, |y| {
                    window::max_pool(&self.cpu, window, sizes, shape[1], data::<T>(x), y, from);
                })));
            });
            (y.expect("was just made"), from)
        })
    }

    fn max_pool_backward(&self, window: &Window, sizes: &[[usize; 2]], from: &Tensor, dy: &Tensor) -> Tensor {
        let channels = dy.shape().cols();
        self.profile.time(Share::Window, || {
            by_type!(dy, T => self.build([pixels(sizes), channels], |dx| {
                let (from, dy) = (i32s(from), data::<T>(dy));
                window::max_pool_backward(&self.cpu, window, sizes, channels, from, dy, dx);
            }))
        })
    }
}

/// How many pixels pictures of these sizes have.
fn pixels(sizes: &[[usize; 2]]) -> usize {
    sizes.iter().map(|[height, width]| height * width).sum()
}

/// How many places the window has in them.
fn places(window: &Window, sizes: &[[usize; 2]]) -> usize {
    let count = |size: &[usize; 2]| window.places(*size).iter().product::<usize>();
    sizes.iter().map(count).sum()
}
