//! Convolutions and pooling over packed pictures.
//!
//! A convolution is `y = activation(unfold(x) · wᵀ + bias)`. Backward: `dx = fold(dy · w)` and `dw = dyᵀ · unfold(x)`. Unfolding multiplies
//! the memory by the number of pixels of the window, so the backward pass unfolds again instead of keeping the result.

use crate::backend::Backend;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;
use attentive_kernels::activation::Activation;
use attentive_kernels::window::Window;
use std::sync::Arc;

/// The heights and widths of packed pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pictures {
    sizes: Arc<[[usize; 2]]>,
}

impl Pictures {
    /// Pictures of these heights and widths, one after the other.
    pub fn new(sizes: impl IntoIterator<Item = [usize; 2]>) -> Pictures {
        Pictures { sizes: sizes.into_iter().collect() }
    }

    /// Their heights and widths.
    pub fn sizes(&self) -> &[[usize; 2]] {
        &self.sizes
    }

    /// How many pixels each has.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.sizes.iter().map(|[height, width]| height * width)
    }

    /// The sizes of the feature maps that a window makes of them: a pixel for each of its positions.
    pub fn under(&self, window: &Window) -> Pictures {
        Pictures::new(self.sizes.iter().map(|&size| window.places(size)))
    }

    /// The first pixel of each picture, and the end of the last one: `[pictures + 1]` of `i32`.
    pub fn offsets(&self, backend: &dyn Backend) -> Tensor {
        let ends = self.lengths().scan(0, |end, length| {
            *end += length as i32;
            Some(*end)
        });
        backend.upload_i32(&std::iter::once(0).chain(ends).collect::<Vec<_>>())
    }
}

impl Tape {
    /// `activation(convolution of x with w + bias)`.
    ///
    /// # Shapes
    /// `x: [pixels, inputs]`, `w: [outputs, kernel · inputs]`, whose columns are the pixels of the window one after the other,
    /// `bias: [outputs]` to `[positions, outputs]`.
    pub fn convolution(
        &self,
        x: &Var,
        pictures: &Pictures,
        window: &Window,
        (w, bias): (&Var, Option<&Var>),
        activation: Option<Activation>,
    ) -> Var {
        if window.is_pixel() {
            return self.linear(x, w, bias, activation);
        }
        // The gradient of ReLU follows from its output. Other functions need their input, so training keeps it and does not fuse them.
        let fused = activation.filter(|&a| a == Activation::Relu || !self.is_training());
        let unfolded = self.backend().unfold(window, pictures.sizes(), x.value());
        let y = self.backend().linear(&unfolded, w.value(), bias.map(Var::value), fused);
        drop(unfolded);
        let (x, w, bias, output) = (x.clone(), w.clone(), bias.cloned(), fused.map(|_| y.clone()));
        let (window, pictures) = (*window, pictures.clone());
        let inputs: Vec<&Var> = [&x, &w].into_iter().chain(bias.as_ref()).collect();
        let saved = (x.clone(), w.clone(), bias.clone());
        let y = self.record(y, &inputs, move |back, dy| {
            let (x, w, bias) = &saved;
            let dy = match &output {
                Some(y) => back.backend.activate_backward(Activation::Relu, y, &dy),
                None => dy,
            };
            back.accumulate(w, |backend, into| {
                let unfolded = backend.unfold(&window, pictures.sizes(), x.value());
                backend.linear_backward_weight(&dy, &unfolded, into)
            });
            if let Some(bias) = bias {
                back.accumulate(bias, |backend, into| backend.sum_rows(&dy, into));
            }
            if x.wants_gradient() {
                let unfolded = back.backend.linear_backward_input(&dy, w.value(), None);
                let folded = back.backend.fold(&window, pictures.sizes(), &unfolded);
                back.add(x, folded);
            }
        });
        match activation {
            Some(activation) if fused.is_none() => self.activate(activation, &y),
            _ => y,
        }
    }

    /// The maximum of each channel under the window: `[pixels, channels]` to `[positions, channels]`.
    pub fn max_pool(&self, x: &Var, pictures: &Pictures, window: &Window) -> Var {
        let (y, from) = self.backend().max_pool(window, pictures.sizes(), x.value());
        let (dx, window, pictures) = (x.without_numbers(), *window, pictures.clone());
        self.record(y, &[x], move |back, dy| {
            let gradient = back.backend.max_pool_backward(&window, pictures.sizes(), &from, &dy);
            back.add(&dx, gradient);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{backend, check_gradients, numbers};

    fn pictures() -> Pictures {
        Pictures::new([[4, 5], [1, 1], [3, 2]])
    }

    #[test]
    fn gradients_match_differences() {
        let strip = Window { kernel: [2, 3], stride: [1, 2], padding: [1, 0] };
        for (window, name) in [
            (Window::square(1, 1), "a pixel"),
            (Window::square(1, 2), "every second pixel"),
            (Window::square(3, 1), "3 × 3"),
            (Window::square(7, 2), "7 × 7"),
            (strip, "2 × 3"),
        ] {
            let shape = [3, window.pixels() * 4];
            // Not ReLU: differences go over its kink.
            for activation in [None, Some(Activation::Gelu)] {
                let name = format!("convolution of {name} {activation:?}");
                check_gradients(&name, &[&[27, 4], &shape, &[3]], |tape, v| {
                    tape.convolution(&v[0], &pictures(), &window, (&v[1], Some(&v[2])), activation)
                });
            }
            check_gradients(&format!("maximum of {name}"), &[&[27, 2]], |tape, v| {
                tape.max_pool(&v[0], &pictures(), &window)
            });
        }
    }

    #[test]
    fn relu_inside_a_convolution_is_relu_after_it() {
        let (backend, window) = (backend(), Window::square(3, 1));
        let shapes: [&[usize]; 3] = [&[27, 4], &[3, 36], &[3]];
        let run = |is_inside: bool| {
            let tape = Tape::training(&backend, 5);
            let leaves: Vec<Var> = (shapes.iter().zip(0..))
                .map(|(&shape, seed)| {
                    tape.leaf(backend.upload_f32(&numbers(seed, shape.iter().product()), shape))
                })
                .collect();
            let inside = is_inside.then_some(Activation::Relu);
            let y =
                tape.convolution(&leaves[0], &pictures(), &window, (&leaves[1], Some(&leaves[2])), inside);
            let y = if is_inside { y } else { tape.activate(Activation::Relu, &y) };
            let dy = backend.upload_f32(&numbers(9, y.shape().len()), y.shape());
            let gradients = tape.backward_from(&y, dy, &leaves);
            let numbers = gradients.iter().map(|dx| dx.as_ref().map(|dx| backend.download_f32(dx)));
            (backend.download_f32(y.value()), numbers.collect::<Vec<_>>())
        };
        let (y, gradients) = run(true);
        assert!(y.contains(&0.0) && y.iter().any(|&y| y > 0.0));
        assert_eq!((y, gradients), run(false));
    }
}
