//! How well a language model predicts a text: `e^(mean of -log p)` over its tokens.
//!
//! A text is longer than the model can read. As transformers' guide does it, windows of all positions begin `stride` tokens apart, and
//! each predicts only the tokens that no window before it has predicted. Each token counts alike.

use crate::error::Error;
use attentive_model::families::gpt2::{Batch, Gpt2};
use attentive_tensor::{Backend, Tape};
use attentive_text::tokenizer::{Side, Tokenizer};
use std::path::Path;
use std::sync::Arc;

/// A token that is not to be predicted.
const SKIPPED: i32 = -100;

/// Measures texts with a language model.
pub struct Perplexity {
    model: Gpt2,
    tokenizer: Tokenizer,
    backend: Arc<dyn Backend>,
}

/// What was measured of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// How many tokens the text has.
    pub tokens: usize,
    /// How many of them were predicted: all but the first, and the first of each window if windows do not overlap.
    pub predicted: usize,
    /// The mean of `-log p` over those that were predicted.
    pub loss: f64,
}

impl Measured {
    /// `e^loss`
    pub fn perplexity(&self) -> f64 {
        self.loss.exp()
    }
}

impl Perplexity {
    /// Reads the folder of a language model.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Perplexity, Error> {
        let (model, tokenizer) = (Gpt2::load(backend, folder)?, Tokenizer::load(folder)?);
        let (tokens, known) = (tokenizer.vocabulary_size(Side::Source), model.config().vocab_size);
        if tokens > known {
            return Err(Error::Vocabulary { path: folder.to_owned(), tokenizer: tokens, model: known });
        }
        Ok(Perplexity { model, tokenizer, backend: Arc::clone(backend) })
    }

    /// The most tokens of a window, and so the longest stride.
    pub fn positions(&self) -> usize {
        self.model.config().max_positions
    }

    /// Measures a text in windows that begin `stride` tokens apart. A text of fewer than two tokens has nothing to be predicted and
    /// is refused.
    ///
    /// # Panics
    /// If the stride is 0 or more than [`Perplexity::positions`].
    pub fn measure(&self, text: &str, stride: usize) -> Result<Measured, Error> {
        let positions = self.positions();
        assert!((1..=positions).contains(&stride), "a stride of {stride} for {positions} positions");
        let tokens = self.tokenizer.encode(text, Side::Source)?;
        let tokens: Vec<i32> = tokens.into_iter().map(|token| token as i32).collect();
        if tokens.len() < 2 {
            return Err(Error::NoTokens { text: 1 });
        }
        let (mut sum, mut predicted, mut known) = (0.0, 0, 1);
        for begin in (0..tokens.len()).step_by(stride) {
            let end = (begin + positions).min(tokens.len());
            let window = &tokens[begin..end];
            // Tokens below `known` were predicted before.
            let target = |i: usize| if i < known { SKIPPED } else { tokens[i] };
            let targets: Vec<i32> = (begin + 1..end).map(target).collect();
            predicted += targets.iter().filter(|target| **target != SKIPPED).count();
            let (input, tape) = (&window[..window.len() - 1], Tape::inference(&self.backend));
            if !input.is_empty() {
                let batch = Batch::with_targets(&*self.backend, &[(input, targets)]);
                let loss = self.model.partial_loss(&tape, &batch, 0.0, 1);
                sum += f64::from(self.backend.download_f32(loss.value())[0]);
            }
            known = end;
            if end == tokens.len() {
                break;
            }
        }
        Ok(Measured { tokens: tokens.len(), predicted, loss: sum / predicted as f64 })
    }
}
