//! Activation functions on their own.

use crate::tape::{Tape, Var};
use attentive_kernels::activation::Activation;

impl Tape {
    /// `activation(x)`. Backward: `dx = dy · activation'(x)`.
    pub fn activate(&self, activation: Activation, x: &Var) -> Var {
        let y = self.backend().activate(activation, x.value());
        let saved = x.clone();
        self.record(y, &[x], move |back, dy| {
            let dx = back.backend.activate_backward(activation, saved.value(), &dy);
            back.add(&saved, dx);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_gradients;

    #[test]
    fn gradients_match_differences() {
        for activation in Activation::ALL {
            check_gradients(&format!("{activation:?}"), &[&[7, 5]], |tape, v| {
                tape.activate(activation, &v[0])
            });
        }
    }
}
