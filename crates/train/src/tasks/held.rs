//! Examples that a model is judged by and does not learn from.

use super::Task;
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

    /// The mean loss of an answer, without label smoothing.
    pub(super) fn loss(&self, backend: &Arc<dyn Backend>, task: &dyn Task) -> Result<f64, Error> {
        let mut sum = 0.0;
        for batch in &self.batches {
            let tape = Tape::inference(backend);
            let loss = task.partial_loss(&tape, batch, 0.0, self.answers)?;
            sum += f64::from(backend.download_f32(loss.value())[0]);
        }
        Ok(sum)
    }
}
