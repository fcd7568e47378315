//! Rows of a table by their numbers: embeddings, positions, and the selection of rows in general.

use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

impl Tape {
    /// `scale · table[ids]`, with `ids` of `i32`: `[rows, d]` and `[n]` to `[n, d]`.
    ///
    /// Going back, the rows of `dy` are added to the rows `ids` of the table's gradient, in order; the `padding` token
    /// takes none.
    pub fn embedding(&self, table: &Var, ids: &Tensor, scale: f32, padding: Option<usize>) -> Var {
        let y = self.backend().embedding(table.value(), ids, scale);
        let (dtable, ids) = (table.clone(), ids.clone());
        self.record(y, &[table], move |back, dy| {
            let mut gradient = back.take_or_zeros(&dtable);
            let padding = padding.map(|id| id as i32);
            back.backend.embedding_backward(&mut gradient, &ids, scale, padding, &dy);
            back.put(&dtable, gradient);
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check::{backend, check_gradients};
    use crate::{Gradients, Parameter, Tape};

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
