//! Attention that can be looked at after it was computed.

use crate::backend::{Backend, Part};
use crate::bias::Bias;
use crate::layout::Layout;
use crate::tensor::Tensor;
use attentive_kernels::attention::{Attention, Span};
use attentive_kernels::rectangle::Rectangle;

/// What it takes to look at the weights of an attention that has been computed.
#[derive(Debug, Clone)]
pub struct AttentionWeights {
    pub(crate) rule: Attention,
    pub(crate) layout: Layout,
    pub(crate) bias: Option<Bias>,
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
        let bias = self.bias.as_ref().map(|bias| self.bias_of(backend, bias, sequence));
        let (rule, bias) = (&self.rule, bias.as_ref());
        let weights = backend.attention_weights(rule, &layout, bias, &self.q, &self.k, &self.lse, &[head]);
        weights.reshape([span.queries as usize, span.keys as usize])
    }

    /// The weights of some heads: for each sequence and each of `heads` a matrix `[queries, keys]`, one after the
    /// other.
    pub fn of_heads(&self, backend: &dyn Backend, heads: &[usize]) -> Tensor {
        let (rule, layout, bias) = (&self.rule, &self.layout, self.bias.as_ref());
        backend.attention_weights(rule, layout, bias, &self.q, &self.k, &self.lse, heads)
    }

    /// The bias of one sequence alone.
    fn bias_of(&self, backend: &dyn Backend, bias: &Bias, sequence: usize) -> Bias {
        let Bias::Dense(numbers) = bias else { return bias.clone() };
        let len = |span: &Span| self.rule.heads * span.queries as usize * span.keys as usize;
        let start = self.spans()[..sequence].iter().map(len).sum();
        let size = [1, len(&self.spans()[sequence])];
        let x = &numbers.reshape([1, numbers.shape().len()]);
        let place = Rectangle { from: [0, start], to: [0, 0], size };
        Bias::Dense(backend.assemble(size.into(), &[Part { x, place }], None))
    }
}
