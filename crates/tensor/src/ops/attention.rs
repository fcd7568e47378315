//! Attention over packed sequences.
//!
//! `q: [queries, h·d_k]`, `k: [keys, h·d_k]`, `v: [keys, h·d_v]` to `[queries, h·d_v]`. What is kept for the way back is one
//! number for each query and head, the log of its softmax's denominator; weights are computed again from it.

use crate::cache::KeyValueCache;
use crate::layout::{Layout, Seen};
use crate::tape::{Tape, Var};
use crate::watched::AttentionWeights;
use attentive_kernels::attention::Attention;

impl Tape {
    /// Attention of queries to the rows of a cache that each sees: decoding, with no way back.
    pub fn attend(&self, cache: &dyn KeyValueCache, queries: &Var, seen: &Seen) -> Var {
        self.without_gradient("attend", cache.attend(queries.value(), seen), &[queries])
    }

    /// Attention of each sequence's queries to its keys; `dropout` is the probability that a weight is dropped.
    pub fn attention(
        &self,
        rule: &Attention,
        dropout: f32,
        layout: &Layout,
        q: &Var,
        k: &Var,
        v: &Var,
    ) -> Var {
        let rule = Attention { dropout: self.draw(dropout), ..*rule };
        let (y, lse) = self.backend().attention(&rule, layout, q.value(), k.value(), v.value());
        self.watch(|| AttentionWeights {
            rule,
            layout: layout.clone(),
            q: q.value().clone(),
            k: k.value().clone(),
            v: v.value().clone(),
            lse: lse.clone(),
        });
        let (layout, saved, vars) = (layout.clone(), y.clone(), [q.clone(), k.clone(), v.clone()]);
        self.record(y, &[q, k, v], move |back, dy| {
            let qkv = vars.each_ref().map(Var::value);
            let gradients = back.backend.attention_backward(&rule, &layout, qkv, (&saved, &lse), &dy);
            for (var, gradient) in vars.iter().zip(gradients) {
                back.add(var, gradient);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_gradients;
    use attentive_kernels::attention::Span;

    fn span(query: u32, queries: u32, key: u32, keys: u32) -> Span {
        Span { query, queries, key, keys, offset: 0 }
    }

    #[test]
    fn gradients_match_differences() {
        for (causal, dropout) in [(false, 0.0), (true, 0.0), (false, 0.3)] {
            let rule =
                Attention { heads: 2, d_k: 3, d_v: 5, scale: 0.6, causal, window: None, dropout: None };
            let name = format!("attention causal {causal} dropout {dropout}");
            check_gradients(&name, &[&[7, 6], &[9, 6], &[9, 10]], |tape, v| {
                let layout = tape.backend().layout(&[span(0, 3, 0, 5), span(3, 4, 5, 4)]);
                tape.attention(&rule, dropout, &layout, &v[0], &v[1], &v[2])
            });
        }
    }
}
