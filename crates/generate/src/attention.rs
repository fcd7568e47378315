//! The attention weights of what was written.

use crate::error::Error;
use attentive_tensor::{AttentionWeights, Backend};

/// Which attention weights are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionSelector {
    /// From which tokens to which.
    pub kind: AttentionKind,
    /// The layer, counted from 0, the one nearest to the embeddings.
    pub layer: usize,
    /// The head, counted from 0; the mean of all heads if none is given.
    pub head: Option<usize>,
}

/// From which tokens to which an attention goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionKind {
    /// From the source to the source.
    Encoder,
    /// From each step to what was written before; the first column is the start token, and token `i` is written in row `i`.
    Decoder,
    /// From each step to the source; token `i` is written in row `i`.
    Cross,
    /// From each token of a text to itself and to those before it, in a decoder alone; token `i` is read in row `i`.
    Causal,
}

impl AttentionSelector {
    /// Its index among all attentions of a pass. An encoder has one in each layer, a decoder with an encoder two, a decoder alone one.
    pub(crate) fn index(self, encoder_layers: usize) -> usize {
        match self.kind {
            AttentionKind::Encoder | AttentionKind::Causal => self.layer,
            AttentionKind::Decoder => encoder_layers + 2 * self.layer,
            AttentionKind::Cross => encoder_layers + 2 * self.layer + 1,
        }
    }

    /// Whether a model with so many layers and heads of this kind has it.
    pub(crate) fn check(self, layers: usize, heads: usize) -> Result<(), Error> {
        if self.layer >= layers {
            let problem =
                format!("there is no layer {}; the model has {layers} layers, counted from 0", self.layer);
            return Err(Error::option("layer", problem));
        }
        match self.head.filter(|&head| head >= heads) {
            Some(head) => {
                let problem = format!("there is no head {head}; the model has {heads} heads, counted from 0");
                Err(Error::option("head", problem))
            }
            None => Ok(()),
        }
    }
}

/// The weights of one attention in one sentence: each row is a query and sums to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionMatrix {
    /// How many keys there are: the length of a row.
    pub keys: usize,
    /// Row after row.
    pub weights: Vec<f32>,
    /// Whether a bias is added to the scores.
    pub biased: bool,
}

impl AttentionMatrix {
    /// How much query `row` looked at each key.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.weights[row * self.keys..][..self.keys]
    }

    /// The weights of each sentence of a batch, of one head or the mean of all.
    pub(crate) fn of(
        backend: &dyn Backend,
        attention: &AttentionWeights,
        head: Option<usize>,
    ) -> Vec<AttentionMatrix> {
        let heads: Vec<usize> = head.map_or_else(|| (0..attention.heads()).collect(), |head| vec![head]);
        let numbers = backend.download_f32(&attention.of_heads(backend, &heads));
        let mut rest = &numbers[..];
        let biased = !attention.terms().is_empty();
        let matrix = |span: &attentive_tensor::Span| {
            let size = span.queries as usize * span.keys as usize;
            let mut weights = vec![0.0; size];
            for _ in &heads {
                let (head, others) = rest.split_at(size);
                rest = others;
                weights.iter_mut().zip(head).for_each(|(sum, weight)| *sum += weight / heads.len() as f32);
            }
            AttentionMatrix { keys: span.keys as usize, weights, biased }
        };
        attention.spans().iter().map(matrix).collect()
    }
}
