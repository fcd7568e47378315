//! Concatenating and slicing: matrices that are put together from rectangles of others.
//!
//! `y[to + i] = x[from + i]` for each rectangle. Backward: `dx[from + i] += dy[to + i]`.

use crate::backend::Block;
use crate::shape::Shape;
use crate::tape::{Tape, Var};
use attentive_kernels::rectangle::Rectangle;
use std::ops::Range;

impl Tape {
    /// A matrix of `shape` that consists of rectangles of others, and of zeros elsewhere. Rectangles must not overlap in it. This puts, for
    /// example, a class token before each sequence of a batch.
    ///
    /// # Panics
    /// Without parts, if they are of different types, or if one is not inside of its matrix or of the result.
    pub fn assemble(&self, shape: impl Into<Shape>, parts: &[(&Var, Rectangle)]) -> Var {
        let shape = shape.into();
        let blocks: Vec<Block> = parts.iter().map(|&(x, place)| Block { x: x.value(), place }).collect();
        let y = self.backend().assemble(shape, &blocks, None);
        let inputs: Vec<&Var> = parts.iter().map(|(x, _)| *x).collect();
        let saved: Vec<(Var, Rectangle)> = parts.iter().map(|&(x, place)| (x.clone(), place)).collect();
        self.record(y, &inputs, move |back, dy| {
            for (x, place) in &saved {
                back.accumulate(x, |backend, into| {
                    backend.assemble(x.shape(), &[Block { x: &dy, place: place.back() }], into)
                });
            }
        })
    }

    /// Matrices one below the other: `[m, d]` and `[n, d]` to `[m + n, d]`.
    ///
    /// # Panics
    /// Without matrices, or if they are not equally wide.
    pub fn concat_rows(&self, parts: &[&Var]) -> Var {
        let (mut end, cols) = (0, parts[0].shape().cols());
        let mut place = |x: &Var| {
            assert_eq!(x.shape().cols(), cols, "concat_rows: {} and {}", parts[0].shape(), x.shape());
            let size = [x.shape().rows(), cols];
            end += size[0];
            Rectangle { from: [0, 0], to: [end - size[0], 0], size }
        };
        let places: Vec<_> = parts.iter().map(|&x| (x, place(x))).collect();
        self.assemble([end, cols], &places)
    }

    /// Matrices side by side: `[n, a]` and `[n, b]` to `[n, a + b]`.
    ///
    /// # Panics
    /// Without matrices, or if they have not equally many rows.
    pub fn concat_columns(&self, parts: &[&Var]) -> Var {
        let (mut end, rows) = (0, parts[0].shape().rows());
        let mut place = |x: &Var| {
            assert_eq!(x.shape().rows(), rows, "concat_columns: {} and {}", parts[0].shape(), x.shape());
            let size = [rows, x.shape().cols()];
            end += size[1];
            Rectangle { from: [0, 0], to: [0, end - size[1]], size }
        };
        let places: Vec<_> = parts.iter().map(|&x| (x, place(x))).collect();
        self.assemble([rows, end], &places)
    }

    /// Some rows of a matrix that follow each other; [`Tape::embedding`] gathers any.
    pub fn slice_rows(&self, x: &Var, rows: Range<usize>) -> Var {
        let size = [rows.len(), x.shape().cols()];
        self.assemble(size, &[(x, Rectangle { from: [rows.start, 0], to: [0, 0], size })])
    }

    /// Some columns of a matrix that follow each other, such as the queries of a fused projection.
    pub fn slice_columns(&self, x: &Var, columns: Range<usize>) -> Var {
        let size = [x.shape().rows(), columns.len()];
        self.assemble(size, &[(x, Rectangle { from: [0, columns.start], to: [0, 0], size })])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{backend, check_gradients, numbers};
    use crate::{Activation, CpuBackend, DType, Gradients, Parameter, Precision};

    /// A token before the two sequences, of two and one tokens, of a batch.
    fn before_each(tape: &Tape, first: &Var, x: &Var) -> Var {
        let d = x.shape().cols();
        let place = |from, to, rows| Rectangle { from: [from, 0], to: [to, 0], size: [rows, d] };
        tape.assemble(
            [5, d],
            &[(first, place(0, 0, 1)), (x, place(0, 1, 2)), (first, place(0, 3, 1)), (x, place(2, 4, 1))],
        )
    }

    #[test]
    fn gradients_match_differences() {
        check_gradients("concat rows", &[&[2, 3], &[1, 3], &[4, 3]], |tape, v| {
            tape.concat_rows(&[&v[0], &v[1], &v[2]])
        });
        check_gradients("concat columns", &[&[4, 3], &[4, 1]], |tape, v| {
            tape.concat_columns(&[&v[0], &v[1], &v[0]])
        });
        check_gradients("slices", &[&[5, 9]], |tape, v| {
            let [q, k, all] = [0..3, 2..5, 0..9].map(|columns| tape.slice_columns(&v[0], columns));
            let rows = tape.slice_rows(&all, 1..4);
            tape.concat_rows(&[&tape.mul(&q, &k), &tape.slice_columns(&rows, 4..7)])
        });
        check_gradients("a token before each sequence", &[&[1, 4], &[3, 4]], |tape, v| {
            before_each(tape, &v[0], &v[1])
        });
    }

    #[test]
    fn parts_stand_where_they_were_put() {
        let backend = backend();
        let tape = Tape::inference(&backend);
        let matrix = |x: &[f32], cols| tape.constant(backend.upload_f32(x, [x.len() / cols, cols]));
        let (first, x) = (matrix(&[8.0, 9.0], 2), matrix(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2));
        let numbers = |y: &Var| backend.download_f32(y.value());
        assert_eq!(
            numbers(&before_each(&tape, &first, &x)),
            [8.0, 9.0, 1.0, 2.0, 3.0, 4.0, 8.0, 9.0, 5.0, 6.0]
        );
        assert_eq!(numbers(&tape.slice_columns(&x, 1..2)), [2.0, 4.0, 6.0]);
        assert_eq!(numbers(&tape.slice_rows(&x, 1..3)), [3.0, 4.0, 5.0, 6.0]);
        assert_eq!(
            numbers(&tape.concat_columns(&[&x, &tape.slice_columns(&x, 0..1)]))[..4],
            [1.0, 2.0, 1.0, 3.0]
        );
        let alone = tape.assemble([2, 3], &[(&first, Rectangle { from: [0, 1], to: [1, 1], size: [1, 1] })]);
        assert_eq!(numbers(&alone), [0.0, 0.0, 0.0, 0.0, 9.0, 0.0]);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "assemble: blocks meet")]
    fn blocks_that_meet_are_refused() {
        let backend = backend();
        let tape = Tape::inference(&backend);
        let x = tape.constant(backend.upload_f32(&[1.0; 4], [2, 2]));
        let place = |to| Rectangle { from: [0, 0], to, size: [2, 2] };
        tape.assemble([3, 3], &[(&x, place([0, 0])), (&x, place([1, 1]))]);
    }

    /// A split projection is what three of its own are, in bf16 too; gradients of activations are bf16, added up where they meet.
    #[test]
    fn a_split_projection_has_the_gradients_of_three() {
        for precision in [Precision::F32, Precision::Bf16] {
            let backend = CpuBackend::from_env().unwrap().with_precision(precision).shared();
            let weights: Vec<Vec<f32>> = (0..3).map(|seed| numbers(seed, 4 * 6)).collect();
            let run = |fused: bool| {
                let tape = Tape::training(&backend, 0);
                let x = backend.cast(&backend.upload_f32(&numbers(9, 5 * 6), [5, 6]), backend.activations());
                let x = tape.constant(x);
                let own = |w: &Vec<f32>| Parameter::new("w", backend.upload_f32(w, [w.len() / 6, 6]));
                let parameters: Vec<Parameter> =
                    if fused { vec![own(&weights.concat())] } else { weights.iter().map(own).collect() };
                let linear =
                    |w: &Parameter| tape.linear(&x, &tape.parameter(w), None, Some(Activation::Tanh));
                let outputs: Vec<Var> = parameters.iter().map(linear).collect();
                let [q, k, v] = [0, 1, 2].map(|i: usize| match fused {
                    true => tape.slice_columns(&outputs[0], 4 * i..4 * i + 4),
                    false => outputs[i].clone(),
                });
                assert_eq!(q.value().dtype(), backend.activations());
                let loss = tape.sum(&tape.mul(&tape.mul(&q, &k), &v));
                let mut gradients = Gradients::default();
                tape.backward(&loss, &mut gradients);
                let gradient = |p: &Parameter| backend.download_f32(gradients.get(p).unwrap());
                parameters.iter().flat_map(gradient).collect::<Vec<f32>>()
            };
            assert_eq!(run(true), run(false), "{precision:?}");
        }
    }

    #[test]
    fn parts_of_narrow_activations_add_up_in_a_wide_gradient() {
        let backend = CpuBackend::from_env().unwrap().with_precision(Precision::Bf16).shared();
        let part = backend.cast(&backend.upload_f32(&[1.5, 2.5], [1, 2]), DType::Bf16);
        let place = Rectangle { from: [0, 0], to: [1, 0], size: [1, 2] };
        let sum = backend.upload_f32(&[1.0, 1.0, 1.001, 1.0], [2, 2]);
        let sum = backend.assemble([2, 2].into(), &[Block { x: &part, place }], Some(sum));
        assert_eq!(backend.download_f32(&sum), [1.0, 1.0, 2.501, 3.5]);
    }
}
