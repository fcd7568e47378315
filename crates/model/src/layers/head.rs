//! The output: from the last hidden state to tokens, with the table of the embedding.

use super::{Embedding, EmbeddingConfig, Linear};
use crate::builder::Builder;
use crate::error::Error;
use attentive_tensor::{Parameter, ProjectionTarget, Tape, Tensor, Var};

/// Logits as dot products with the rows of the embedding table, to which it is tied.
#[derive(Debug, Clone)]
pub struct Head {
    table: Parameter,
    dense: Option<Linear>,
    classes: usize,
}

impl Head {
    /// The output that belongs to an embedding. Padding is no class: it is never produced.
    pub fn tied(builder: &Builder, embedding: &Embedding, config: &EmbeddingConfig) -> Result<Head, Error> {
        let &EmbeddingConfig { vocab_size, d_emb, d_model, padding } = config;
        let dense =
            (d_emb != d_model).then(|| Linear::new(&builder.at("dense"), d_model, d_emb)).transpose()?;
        let classes = vocab_size - usize::from(padding);
        Ok(Head { table: builder.product_weights(embedding.table().clone()), dense, classes })
    }

    /// How many tokens can be produced: the first ones of the vocabulary.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// `[tokens, d_model]` to `[tokens, vocab_size]` in f32; only the first [`Head::classes`] columns are classes. They are
    /// to be read: what is learned from goes through [`Head::loss`].
    pub fn logits(&self, tape: &Tape, hidden: &Var) -> Var {
        tape.logits(&self.reach(tape, hidden), &tape.parameter(&self.table), None)
    }

    /// The mean of the label-smoothed cross-entropy over the target tokens, a scalar; logits never exist as a whole.
    pub fn loss(&self, tape: &Tape, hidden: &Var, targets: &Tensor, smoothing: f32) -> Var {
        self.partial_loss(tape, hidden, targets, smoothing, targets.shape().len())
    }

    /// What these target tokens add to the mean over `of` tokens, of which they are a part.
    pub fn partial_loss(
        &self,
        tape: &Tape,
        hidden: &Var,
        targets: &Tensor,
        smoothing: f32,
        of: usize,
    ) -> Var {
        let scale = 1.0 / of.max(1) as f32;
        let target = ProjectionTarget { tokens: targets, classes: self.classes, smoothing, scale };
        tape.projection_loss(&self.reach(tape, hidden), &tape.parameter(&self.table), &target)
    }

    /// The hidden state in the width of the table.
    fn reach(&self, tape: &Tape, hidden: &Var) -> Var {
        self.dense.as_ref().map_or(hidden.clone(), |dense| dense.forward(tape, hidden))
    }
}
