//! Attention and hidden states that can be looked at after they were computed.

use crate::backend::{Backend, Block};
use crate::bias::Bias;
use crate::layout::Layout;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;
use crate::terms::DistanceRows;
use attentive_kernels::attention::{Attention, Span};
use attentive_kernels::rectangle::Rectangle;
use std::cell::RefCell;

/// What it takes to look at the weights of an attention that has been computed.
#[derive(Debug, Clone)]
pub struct AttentionWeights {
    pub(crate) rule: Attention,
    pub(crate) layout: Layout,
    pub(crate) bias: Option<Bias>,
    /// What a dense bias was made of, where that was told.
    pub(crate) distances: Option<DistanceRows>,
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
    pub(crate) fn bias_of(&self, backend: &dyn Backend, bias: &Bias, sequence: usize) -> Bias {
        let Bias::Dense(numbers) = bias else { return bias.clone() };
        let len = |span: &Span| self.rule.heads * span.queries as usize * span.keys as usize;
        let start = self.spans()[..sequence].iter().map(len).sum();
        let size = [1, len(&self.spans()[sequence])];
        let x = &numbers.reshape([1, numbers.shape().len()]);
        let place = Rectangle { from: [0, start], to: [0, 0], size };
        Bias::Dense(backend.assemble(size.into(), &[Block { x, place }], None))
    }
}

/// What a tape has seen.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    attentions: Vec<AttentionWeights>,
    /// Biases that were computed, and what they were made of.
    distances: Vec<(Tensor, DistanceRows)>,
}

impl Watched {
    /// Keeps an attention, and what its bias was made of.
    pub fn attention(&mut self, attention: AttentionWeights) {
        let is_its = |(bias, _): &(Tensor, DistanceRows)| match &attention.bias {
            Some(Bias::Dense(numbers)) => numbers.buffer().same(bias.buffer()),
            Some(Bias::Relative { .. }) | None => false,
        };
        let distances = self.distances.iter().find(|told| is_its(told)).map(|(_, rows)| rows.clone());
        self.attentions.push(AttentionWeights { distances, ..attention });
    }

    /// Keeps what a bias was made of.
    pub fn distances(&mut self, bias: Tensor, rows: DistanceRows) {
        self.distances.push((bias, rows));
    }

    /// The attentions, in their order.
    pub fn into_attentions(self) -> Vec<AttentionWeights> {
        self.attentions
    }
}

impl Tape {
    /// The same tape, which also remembers every attention that is computed on it; see [`Tape::watched`].
    pub fn watching(mut self) -> Tape {
        self.watched = Some(RefCell::default());
        self
    }

    /// The attentions that were computed since the last call, in the order of computation: of an encoder, one for each
    /// layer; of a decoder, self-attention and then cross attention for each layer. The weights of any head can be had from
    /// each: the fused computation keeps what it takes and is not slowed down by being watched.
    pub fn watched(&self) -> Vec<AttentionWeights> {
        self.watched.as_ref().map(RefCell::take).unwrap_or_default().into_attentions()
    }

    pub(crate) fn watch(&self, attention: impl FnOnce() -> AttentionWeights) {
        if let Some(watched) = &self.watched {
            watched.borrow_mut().attention(attention());
        }
    }

    /// Tells what a dense bias is made of, for those who look at the attention that it is added to.
    pub fn watch_distances(&self, bias: &Var, rows: impl FnOnce() -> DistanceRows) {
        if let Some(watched) = &self.watched {
            watched.borrow_mut().distances(bias.value().clone(), rows());
        }
    }

    /// The same tape, which also remembers hidden states; see [`Tape::watched_states`].
    pub fn watching_states(mut self) -> Tape {
        self.states = Some(RefCell::default());
        self
    }

    /// The hidden states of each step of a model since the last call, `[tokens, d_model]`, in the order of computation. A stack has those
    /// of its embedded tokens; then, in each layer, those behind each sublayer with its residual connection; then those that leave it.
    pub fn watched_states(&self) -> Vec<Tensor> {
        self.states.as_ref().map(RefCell::take).unwrap_or_default()
    }

    /// Shows hidden states to those who want them, and gives them back.
    pub fn watch_state(&self, x: Var) -> Var {
        if let Some(states) = &self.states {
            states.borrow_mut().push(x.value().clone());
        }
        x
    }

    /// The same in the place of the last ones, with which a family does more before they go on.
    pub fn watch_state_again(&self, x: Var) -> Var {
        if let Some(states) = &self.states {
            states.borrow_mut().pop();
        }
        self.watch_state(x)
    }
}
