//! Examples that a model is judged by and does not learn from.

use super::{Ranks, Task};
use crate::Error;
use crate::corpus::{Example, ExampleBatch, batches_of};
use attentive_tensor::{Backend, Tape};
use std::sync::Arc;

/// Examples in batches.
#[derive(Debug)]
pub(super) struct Held {
    batches: Vec<ExampleBatch>,
    answers: usize,
    examples: usize,
}

impl Held {
    /// Sorts examples by length and cuts them into batches of about so many tokens.
    pub(super) fn new(mut examples: Vec<Example>, tokens: usize) -> Held {
        examples.sort_by_key(|example| (example.target.len(), example.source.len()));
        Held {
            answers: examples.iter().map(Example::answers).sum(),
            examples: examples.len(),
            batches: batches_of(examples, tokens, usize::MAX),
        }
    }

    /// How many there are.
    pub(super) fn examples(&self) -> usize {
        self.examples
    }

    /// Collective: the mean loss of an answer, without label smoothing.
    pub(super) fn loss(
        &self,
        backend: &Arc<dyn Backend>,
        task: &dyn Task,
        ranks: &Ranks,
    ) -> Result<f64, Error> {
        let bits_of_loss = |batch: &ExampleBatch| {
            let tape = Tape::inference(backend);
            let loss = task.partial_loss(&tape, batch, 0.0, self.answers)?;
            Ok(backend.download_f32(loss.value())[0].to_bits())
        };
        let batches: Vec<&ExampleBatch> = self.batches.iter().collect();
        let losses = ranks.share(&batches, |mine| mine.iter().copied().map(bits_of_loss).collect())?;
        Ok(losses.into_iter().map(|bits| f64::from(f32::from_bits(bits))).sum())
    }
}
