//! A bias on the scores of attention that depends on one token and on its distance to the other.
//!
//! `b_ij = Σ x[head][row][bucket(j - i)]`, with the row of query `i` or of key `j`. Backward: the gradients of all pairs with the same row
//! and bucket are added up. The numbers of `x` are not kept.

use crate::layout::Layout;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;
use attentive_kernels::relative::Side;

impl Tape {
    /// A [dense bias](crate::Bias::Dense) in f32 for the pairs of a layout: the sum over `scores`, `[heads, rows, buckets]` each. The
    /// bucket of a pair is that of its distance, as in [`Bias::Relative`](crate::Bias::Relative).
    ///
    /// # Panics
    /// Without scores.
    pub fn relative_bias(&self, layout: &Layout, buckets: &Tensor, scores: &[(Side, &Var)]) -> Var {
        let values: Vec<(Side, &Tensor)> = scores.iter().map(|(side, x)| (*side, x.value())).collect();
        let y = self.backend().relative_bias(layout, buckets, &values);
        let inputs: Vec<&Var> = scores.iter().map(|(_, x)| *x).collect();
        let saved: Vec<(Side, Var)> = scores.iter().map(|(side, x)| (*side, x.without_numbers())).collect();
        let (layout, buckets) = (layout.clone(), buckets.clone());
        self.record(y, &inputs, move |back, dy| {
            for (side, x) in &saved {
                let like = (x.shape(), x.value().dtype());
                let gradient = back.backend.relative_bias_backward(&layout, &buckets, *side, like, &dy);
                back.add(x, gradient);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_gradients;
    use attentive_kernels::attention::Span;

    #[test]
    fn gradients_match_differences() {
        check_gradients("a relative bias", &[&[2, 5, 3], &[2, 6, 3]], |tape, v| {
            let span = |query, queries, key, keys| Span { query, queries, key, keys, offset: 0 };
            let layout = tape.backend().layout(&[span(0, 3, 0, 4), span(3, 2, 4, 2)]);
            let buckets = tape.backend().upload_i32(&[0, 0, 1, 2, 2]);
            let scores = [(Side::Queries, &v[0]), (Side::Keys, &v[1])];
            tape.relative_bias(&layout, &buckets, &scores)
        });
    }
}
