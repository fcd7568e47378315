//! Attention that can be looked at after it was computed.

use crate::backend::Backend;
use crate::layout::Layout;
use crate::tensor::Tensor;
use attentive_kernels::attention::{Attention, Span};

/// What it takes to look at the weights of an attention that has been computed.
#[derive(Debug, Clone)]
pub struct AttentionWeights {
    pub(crate) rule: Attention,
    pub(crate) layout: Layout,
    pub(crate) q: Tensor,
    pub(crate) k: Tensor,
    pub(crate) v: Tensor,
    pub(crate) lse: Tensor,
}

impl AttentionWeights {
    /// The sequences, as attention saw them.
    pub fn spans(&self) -> &[Span] {
        self.layout.spans()
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
        let span = self.spans()[sequence];
        let layout = backend.layout(&[span]);
        let weights = backend.attention_weights(&self.rule, &layout, &self.q, &self.k, &self.lse, &[head]);
        weights.reshape([span.queries as usize, span.keys as usize])
    }

    /// The weights of some heads: for each sequence and each of `heads` a matrix `[queries, keys]`, one after the
    /// other.
    pub fn of_heads(&self, backend: &dyn Backend, heads: &[usize]) -> Tensor {
        backend.attention_weights(&self.rule, &self.layout, &self.q, &self.k, &self.lse, heads)
    }
}
