//! Products of a batch of matrices.

use crate::tape::{Tape, Var};

impl Tape {
    /// `a · b` for each of a batch of matrices: `[batch, m, k] · [batch, k, n]`. With `b_transposed`, `b` is
    /// `[batch, n, k]`.
    ///
    /// Going back: `da = dy · bᵀ` and `db = aᵀ · dy`.
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
    use crate::check::check_gradients;

    #[test]
    fn gradients_match_differences() {
        check_gradients("matmul", &[&[2, 3, 4], &[2, 4, 5]], |tape, v| tape.matmul(&v[0], &v[1], false));
        check_gradients("matmul bᵀ", &[&[2, 3, 4], &[2, 5, 4]], |tape, v| tape.matmul(&v[0], &v[1], true));
    }
}
