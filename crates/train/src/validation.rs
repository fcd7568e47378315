//! How good a model is on pairs that it does not learn from.

use crate::corpus::Corpus;
use crate::settings::Settings;
use crate::vocabulary::Vocabulary;
use crate::{Error, Sample};
use attentive_model::families::transformer::{Batch, Transformer};
use attentive_tensor::{Backend, Tape};
use attentive_text::tokenizer::Side;
use std::sync::Arc;

/// How good a model is.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The mean loss of a target token, without label smoothing.
    pub loss: f64,
    /// BLEU of its translations.
    pub bleu: Option<f64>,
    /// chrF of its translations.
    pub chrf: Option<f64>,
    /// Some of them.
    pub samples: Vec<Sample>,
}

/// The pairs to validate on, as tokens.
#[derive(Debug)]
pub struct Validation {
    /// Sorted by length, cut into batches.
    batches: Vec<Vec<(Vec<i32>, Vec<i32>)>>,
    targets: usize,
    pairs: usize,
}

impl Validation {
    /// Encodes the pairs of a corpus; those with a blank side or more than `longest` tokens are left out.
    pub fn new(
        corpus: &Corpus,
        vocabulary: &Vocabulary,
        settings: &Settings,
        longest: usize,
    ) -> Result<Validation, Error> {
        let numbers: Vec<u32> = (0..corpus.len() as u32).collect();
        let (mut pairs, mut failed) = (Vec::new(), None);
        let tokens = |text: &str, side| -> Result<Vec<i32>, Error> {
            Ok(vocabulary.encode(text, side)?.into_iter().map(|id| id as i32).collect())
        };
        corpus.read(&numbers, |_, source, target| {
            if source.trim().is_empty() || target.trim().is_empty() {
                return true;
            }
            match (tokens(source, Side::Source), tokens(target, Side::Target)) {
                (Ok(source), Ok(target)) => pairs.push((source, target)),
                (Err(error), _) | (_, Err(error)) => failed = Some(error),
            }
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        pairs.retain(|(source, target)| source.len().max(target.len()) <= longest);
        if pairs.is_empty() {
            let problem = format!("no pair has text on both sides and at most {longest} tokens");
            return Err(Error::setting("valid_source", problem));
        }
        pairs.sort_by_key(|(source, target)| (target.len(), source.len()));
        let targets = pairs.iter().map(|(_, target)| target.len()).sum();
        Ok(Validation { targets, pairs: pairs.len(), batches: cut(pairs, settings.batch_tokens) })
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Judges a model.
    pub fn judge(&self, backend: &Arc<dyn Backend>, model: &Transformer) -> Result<Judgement, Error> {
        Ok(Judgement { loss: self.loss(backend, model), bleu: None, chrf: None, samples: Vec::new() })
    }

    /// The mean loss of a target token, without label smoothing.
    pub fn loss(&self, backend: &Arc<dyn Backend>, model: &Transformer) -> f64 {
        let mut sum = 0.0;
        for pairs in &self.batches {
            let batch = Batch::new(&**backend, pairs, model.config().start as i32);
            let tape = Tape::inference(backend);
            let loss = model.partial_loss(&tape, &batch, 0.0, self.targets);
            sum += f64::from(backend.download_f32(loss.value())[0]);
        }
        sum
    }
}

/// Cuts pairs into batches of about so many tokens, at least one pair each.
fn cut(pairs: Vec<(Vec<i32>, Vec<i32>)>, most: usize) -> Vec<Vec<(Vec<i32>, Vec<i32>)>> {
    let mut batches: Vec<Vec<_>> = Vec::new();
    let mut tokens = usize::MAX;
    for (source, target) in pairs {
        let more = source.len() + target.len();
        tokens = tokens.saturating_add(more);
        if tokens > most {
            batches.push(Vec::new());
            tokens = more;
        }
        batches.last_mut().expect("one was just made").push((source, target));
    }
    batches
}
