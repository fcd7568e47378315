//! Products of a batch of matrices.

use crate::tape::{Tape, Var};

impl Tape {
    /// `a · b` for each of a batch of matrices: `[batch, m, k] · [batch, k, n]`. With `b_transposed`, `b` is
    /// `[batch, n, k]`.
    ///
    /// Backward: `da = dy · bᵀ` and `db = aᵀ · dy`.
    pub fn matmul(&self, a: &Var, b: &Var, b_transposed: bool) -> Var {
        let y = self.backend().matmul((a.value(), false), (b.value(), b_transposed));
        let (a_var, b_var) = (a.clone(), b.clone());
        self.record(y, &[a, b], move |back, dy| {
            let da = back.backend.matmul((&dy, false), (b_var.value(), !b_transposed));
            let db = match b_transposed {
                false => back.backend.matmul((a_var.value(), true), (&dy, false)),
                true => back.backend.matmul((&dy, true), (a_var.value(), false)),
            };
            back.add(&a_var, da);
            back.add(&b_var, db);
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check::{check_gradients, numbers};
    use crate::{CpuBackend, Precision, Tape};

    #[test]
    fn gradients_match_differences() {
        check_gradients("matmul", &[&[2, 3, 4], &[2, 4, 5]], |tape, v| tape.matmul(&v[0], &v[1], false));
        check_gradients("matmul bᵀ", &[&[2, 3, 4], &[2, 5, 4]], |tape, v| tape.matmul(&v[0], &v[1], true));
    }

    #[test]
    fn gradients_of_narrow_activations_are_near_to_those_of_wide_ones() {
        for transposed in [false, true] {
            let gradients = |precision| {
                let backend = CpuBackend::from_env().unwrap().with_precision(precision).shared();
                let tape = Tape::training(&backend, 0);
                let shapes = if transposed { [[2, 5, 8], [2, 7, 8]] } else { [[2, 5, 8], [2, 8, 7]] };
                let leaf = |(seed, shape): (usize, [usize; 3])| {
                    let x = backend.upload_f32(&numbers(seed as u64, shape.iter().product()), shape);
                    tape.leaf(backend.cast(&x, backend.activations()))
                };
                let [a, b] = [(0, shapes[0]), (1, shapes[1])].map(leaf);
                let y = tape.matmul(&a, &b, transposed);
                let dy = backend.upload_f32(&numbers(2, y.shape().len()), y.shape());
                let dy = backend.cast(&dy, backend.activations());
                let all = tape.backward_from(&y, dy, &[a, b]).into_iter().flatten();
                let found: Vec<f32> = all.flat_map(|x| backend.download_f32(&x)).collect();
                (backend.download_f32(y.value()), found)
            };
            let (wide, narrow) = (gradients(Precision::F32), gradients(Precision::Bf16));
            for (wide, narrow) in [(wide.0, narrow.0), (wide.1, narrow.1)] {
                let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
                let error = norm(&mut wide.iter().zip(&narrow).map(|(a, b)| a - b));
                assert!(error < 0.01 * norm(&mut wide.iter().copied()), "{error}");
            }
        }
    }
}
