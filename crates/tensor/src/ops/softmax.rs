//! Softmax over rows, where it stands alone; attention has its own.

use crate::tape::{Tape, Var};

impl Tape {
    /// Softmax over each row.
    pub fn softmax(&self, x: &Var) -> Var {
        let y = self.backend().softmax(x.value());
        let (x_var, saved) = (x.clone(), y.clone());
        self.record(y, &[x], move |back, dy| {
            let dx = back.backend.softmax_backward(&saved, &dy);
            back.add(&x_var, dx);
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check::check_gradients;

    #[test]
    fn gradients_match_differences() {
        check_gradients("softmax", &[&[5, 7]], |tape, v| tape.softmax(&v[0]));
    }
}
