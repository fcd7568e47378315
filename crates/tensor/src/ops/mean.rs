//! The mean over each sequence of a packed batch.

use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

impl Tape {
    /// `y[s] = mean of x[offsets[s]..offsets[s + 1]]`: `[rows, d]` and `[sequences + 1]` of `i32` to `[sequences, d]`. The mean of
    /// no rows is zero.
    ///
    /// Backward: `dx[r] = dy[s] / rows` for each row of the sequence.
    pub fn mean_rows(&self, x: &Var, offsets: &Tensor) -> Var {
        let y = self.backend().mean_rows(x.value(), offsets);
        let (dx, offsets) = (x.clone(), offsets.clone());
        self.record(y, &[x], move |back, dy| {
            let shares = back.backend.mean_rows_backward(&dy, &offsets, dx.shape());
            back.add(&dx, shares);
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Tape;
    use crate::check::{backend, check_gradients};

    #[test]
    fn gradients_match_differences() {
        check_gradients("mean of sequences", &[&[7, 5]], |tape, v| {
            tape.mean_rows(&v[0], &tape.backend().upload_i32(&[0, 3, 3, 7]))
        });
    }

    #[test]
    fn each_sequence_has_the_mean_of_its_rows() {
        let backend = backend();
        let tape = Tape::inference(&backend);
        let x = tape.constant(backend.upload_f32(&[1.0, 2.0, 3.0, 4.0, 10.0, 20.0], [3, 2]));
        let mean = tape.mean_rows(&x, &backend.upload_i32(&[0, 2, 2, 3]));
        assert_eq!(backend.download_f32(mean.value()), [2.0, 3.0, 0.0, 0.0, 10.0, 20.0]);
    }
}
