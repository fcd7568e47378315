//! Attention over packed sequences.
//!
//! `q: [queries, h·d_k]`, `k: [keys, h·d_k]`, `v: [keys, h·d_v]` to `[queries, h·d_v]`. What is kept for the way back is one
//! number for each query and head, the log of its softmax's denominator; weights are computed again from it.

use crate::backend::Backend;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;
use attentive_kernels::attention::{Attention, KeyLists, Span};
use std::sync::Arc;

/// What it takes to look at the weights of an attention that has been computed.
#[derive(Debug, Clone)]
pub struct AttentionWeights {
    rule: Attention,
    spans: Arc<[Span]>,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lse: Tensor,
}

impl AttentionWeights {
    /// The sequences, as attention saw them.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The number of heads.
    pub fn heads(&self) -> usize {
        self.rule.heads
    }

    /// How attention was computed.
    pub fn rule(&self) -> &Attention {
        &self.rule
    }

    /// The queries, keys and values of all heads: `[queries, h·d_k]`, `[keys, h·d_k]` and `[keys, h·d_v]`, head after head in
    /// their columns.
    pub fn vectors(&self) -> [&Tensor; 3] {
        [&self.q, &self.k, &self.v]
    }

    /// The weights of one head in one sequence, `[queries, keys]`: how much each query looked at each key.
    pub fn matrix(&self, backend: &dyn Backend, sequence: usize, head: usize) -> Tensor {
        let span = self.spans[sequence];
        let weights = backend.attention_weights(&self.rule, &[span], &self.q, &self.k, &self.lse, &[head]);
        weights.reshape([span.queries as usize, span.keys as usize])
    }

    /// The weights of some heads: for each sequence and each of `heads` a matrix `[queries, keys]`, one after the
    /// other.
    pub fn of_heads(&self, backend: &dyn Backend, heads: &[usize]) -> Tensor {
        backend.attention_weights(&self.rule, &self.spans, &self.q, &self.k, &self.lse, heads)
    }
}

impl Tape {
    /// Attention of single queries to the rows of `k` and `v` that are listed for each: decoding, with no way back. Queries and
    /// keys have their heads side by side, as [`Tape::heads_side_by_side`] makes them; with `scales`, keys and values
    /// are in int8 and in the order of [`Backend::attention_to_lists`].
    pub fn attention_to_lists(
        &self,
        rule: &Attention,
        lists: KeyLists,
        q: &Var,
        [k, v]: [&Var; 2],
        scales: Option<&Tensor>,
    ) -> Var {
        let y = self.backend().attention_to_lists(rule, lists, q.value(), k.value(), v.value(), scales);
        self.without_gradient("attention_to_lists", y, &[q, k, v])
    }

    /// Rows of heads one after the other, turned: element by element, the heads side by side. There is no way back.
    pub fn heads_side_by_side(&self, x: &Var, heads: usize) -> Var {
        self.without_gradient("heads_side_by_side", self.backend().heads_side_by_side(x.value(), heads), &[x])
    }

    /// `y[.., i] = x[.., order[i]]`. There is no way back.
    pub fn reorder_columns(&self, x: &Var, order: &[usize]) -> Var {
        self.without_gradient("reorder_columns", self.backend().reorder_columns(x.value(), order), &[x])
    }

    /// Attention of each sequence's queries to its keys; `dropout` is the probability that a weight is dropped.
    pub fn attention(
        &self,
        rule: &Attention,
        dropout: f32,
        spans: &Arc<[Span]>,
        q: &Var,
        k: &Var,
        v: &Var,
    ) -> Var {
        let rule = Attention { dropout: self.draw(dropout), ..*rule };
        let (y, lse) = self.backend().attention(&rule, spans, q.value(), k.value(), v.value());
        self.watch(|| AttentionWeights {
            rule,
            spans: Arc::clone(spans),
            q: q.value().clone(),
            k: k.value().clone(),
            v: v.value().clone(),
            lse: lse.clone(),
        });
        let (spans, saved, vars) = (Arc::clone(spans), y.clone(), [q.clone(), k.clone(), v.clone()]);
        self.record(y, &[q, k, v], move |back, dy| {
            let qkv = vars.each_ref().map(Var::value);
            let gradients = back.backend.attention_backward(&rule, &spans, qkv, (&saved, &lse), &dy);
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

    fn span(query: u32, queries: u32, key: u32, keys: u32) -> Span {
        Span { query, queries, key, keys, offset: 0 }
    }

    #[test]
    fn gradients_match_differences() {
        let spans: Arc<[Span]> = [span(0, 3, 0, 5), span(3, 4, 5, 4)].into();
        for (causal, dropout) in [(false, 0.0), (true, 0.0), (false, 0.3)] {
            let rule =
                Attention { heads: 2, d_k: 3, d_v: 5, scale: 0.6, causal, window: None, dropout: None };
            let name = format!("attention causal {causal} dropout {dropout}");
            check_gradients(&name, &[&[7, 6], &[9, 6], &[9, 10]], |tape, v| {
                tape.attention(&rule, dropout, &spans, &v[0], &v[1], &v[2])
            });
        }
    }
}
