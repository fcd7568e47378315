//! Rows of a table by their numbers: embeddings, positions, and the selection of rows in general.

use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

impl Tape {
    /// `scale · table[ids]`, with `ids` of `i32`: `[rows, d]` and `[n]` to `[n, d]`. The table may be an activation: this gathers
    /// rows of anything.
    ///
    /// Backward: the rows of `dy` are added to the rows `ids` of the table's gradient, in order, except for the `padding` token.
    pub fn embedding(&self, table: &Var, ids: &Tensor, scale: f32, padding: Option<usize>) -> Var {
        let y = self.backend().embedding(table.value(), ids, scale);
        let (dtable, ids) = (table.clone(), ids.clone());
        self.record(y, &[table], move |back, dy| {
            let padding = padding.map(|id| id as i32);
            if dtable.value().dtype() == DType::F32 {
                let mut gradient = back.take_or_zeros(&dtable);
                back.backend.embedding_backward(&mut gradient, &ids, scale, padding, &dy);
                back.put(&dtable, gradient);
            } else {
                // Rows are added up in f32; the gradient of an activation has its type.
                let mut sums = back.backend.zeros(dtable.shape(), DType::F32);
                back.backend.embedding_backward(&mut sums, &ids, scale, padding, &dy);
                let gradient = back.backend.cast(&sums, dtable.value().dtype());
                back.add(&dtable, gradient);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check::{backend, check_gradients, numbers};
    use crate::{Activation, CpuBackend, Gradients, Parameter, Precision, Tape};

    #[test]
    fn gradients_match_differences() {
        check_gradients("embedding", &[&[5, 3]], |tape, v| {
            let ids = tape.backend().upload_i32(&[4, 0, 4, 1, 4]);
            tape.embedding(&v[0], &ids, 1.7, None)
        });
        check_gradients("embedding and another use", &[&[4, 4]], |tape, v| {
            let ids = tape.backend().upload_i32(&[3, 1, 1, 2]);
            let rows = tape.embedding(&v[0], &ids, 0.5, None);
            tape.linear(&rows, &v[0], None, None)
        });
        check_gradients("rows of an activation and another use", &[&[5, 3], &[4, 3]], |tape, v| {
            let hidden = tape.linear(&v[0], &v[1], None, Some(Activation::Tanh));
            let rows = tape.embedding(&hidden, &tape.backend().upload_i32(&[4, 0, 4, 2, 1]), 1.0, None);
            tape.mul(&rows, &hidden)
        });
    }

    /// What is gathered from bf16 has a gradient in bf16, whatever else was made of the same rows.
    #[test]
    fn rows_of_an_activation_in_bf16_have_nearly_the_gradient_of_those_in_f32() {
        let gradient = |precision| {
            let backend = CpuBackend::from_env().unwrap().with_precision(precision).shared();
            let table = Parameter::new("table", backend.upload_f32(&numbers(1, 5 * 16), [5, 16]));
            // Small, so that tanh does not saturate: its slope there is all rounding.
            let w: Vec<f32> = numbers(2, 16 * 16).iter().map(|x| 0.2 * x).collect();
            let w = Parameter::new("w", backend.upload_f32(&w, [16, 16]));
            let tape = Tape::training(&backend, 0);
            let ids = backend.upload_i32(&[0, 1, 2, 3, 4]);
            let x = tape.embedding(&tape.parameter(&table), &ids, 1.0, None);
            let hidden = tape.linear(&x, &tape.parameter(&w), None, Some(Activation::Tanh));
            let rows = tape.embedding(&hidden, &backend.upload_i32(&[3, 0, 3]), 1.0, None);
            let loss = tape.add(&tape.sum(&tape.mul(&rows, &rows)), &tape.sum(&hidden));
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            backend.download_f32(gradients.get(&w).unwrap())
        };
        let (exact, rounded) = (gradient(Precision::F32), gradient(Precision::Bf16));
        let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
        let error = norm(&mut exact.iter().zip(&rounded).map(|(a, b)| a - b));
        assert!(error < 0.02 * norm(&mut exact.iter().copied()), "{error}");
    }

    #[test]
    fn the_padding_row_gets_no_gradient() {
        let backend = backend();
        let table = Parameter::new("table", backend.upload_f32(&[1.0; 6], [3, 2]));
        let tape = Tape::training(&backend, 0);
        let rows = tape.embedding(&tape.parameter(&table), &backend.upload_i32(&[2, 1, 2]), 1.0, Some(2));
        let loss = tape.sum(&rows);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        assert_eq!(backend.download_f32(gradients.get(&table).unwrap()), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }
}
