//! How good a model is on pairs that it does not learn from.

mod translations;

use crate::corpus::Corpus;
use crate::settings::Settings;
use crate::vocabulary::Vocabulary;
use crate::{Error, Sample};
use attentive_model::families::transformer::{Batch, Transformer};
use attentive_tensor::{Backend, Tape};
use attentive_text::tokenizer::Side;
use std::sync::Arc;
use translations::{Line, Translations};

/// How good a model is.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The mean loss of a target token, without label smoothing.
    pub loss: f64,
    /// BLEU of its translations, as sacreBLEU has it, if they were scored.
    pub bleu: Option<f64>,
    /// chrF of its translations.
    pub chrf: Option<f64>,
    /// Some of them.
    pub samples: Vec<Sample>,
}

/// Source and target.
type Pair = (Vec<i32>, Vec<i32>);

/// The pairs to validate on, as tokens.
#[derive(Debug)]
pub struct Validation {
    /// Sorted by length, cut into batches.
    batches: Vec<Vec<Pair>>,
    targets: usize,
    pairs: usize,
    translations: Translations,
}

impl Validation {
    /// Encodes the pairs of a corpus; those with a blank side or more than `longest` tokens are left out.
    pub fn new(
        corpus: &Corpus,
        vocabulary: &Vocabulary,
        settings: &Settings,
        longest: usize,
    ) -> Result<Validation, Error> {
        let translated = Translations::lines(settings.validate_lines);
        let (mut pairs, mut lines, mut failed) = (Vec::new(), Vec::new(), None);
        let mut add = |source: &str, target: &str| -> Result<(), Error> {
            if source.trim().is_empty() || target.trim().is_empty() {
                return Ok(());
            }
            let tokens = vocabulary.encode(source, Side::Source)?;
            let targets = vocabulary.encode(target, Side::Target)?;
            if tokens.len().max(targets.len()) > longest {
                return Ok(());
            }
            let signed = |ids: &[u32]| ids.iter().map(|&id| id as i32).collect::<Vec<_>>();
            pairs.push((signed(&tokens), signed(&targets)));
            if lines.len() < translated {
                lines.push(Line { source: source.to_owned(), reference: target.to_owned(), tokens });
            }
            Ok(())
        };
        let numbers: Vec<u32> = (0..corpus.len() as u32).collect();
        corpus.read(&numbers, |_, source, target| {
            failed = add(source, target).err();
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if pairs.is_empty() {
            let problem = format!("no validation pair has text on both sides and at most {longest} tokens");
            return Err(Error::setting("valid_source", problem));
        }
        pairs.sort_by_key(|(source, target)| (target.len(), source.len()));
        Ok(Validation {
            targets: pairs.iter().map(|(_, target)| target.len()).sum(),
            pairs: pairs.len(),
            batches: cut(pairs, settings.batch_tokens),
            translations: Translations {
                lines,
                tokenizer: Arc::clone(vocabulary.tokenizer()),
                scored: settings.validate_lines > 0,
                beam: settings.validate_beam,
            },
        })
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Judges a model.
    pub fn judge(&self, backend: &Arc<dyn Backend>, model: &Transformer) -> Result<Judgement, Error> {
        let loss = self.loss(backend, model);
        let judgement = Judgement { loss, bleu: None, chrf: None, samples: Vec::new() };
        self.translations.judge(backend, model, judgement)
    }

    /// The mean loss of a target token, without label smoothing.
    fn loss(&self, backend: &Arc<dyn Backend>, model: &Transformer) -> f64 {
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

/// Cuts pairs into batches of at most so many tokens, or of one pair.
fn cut(pairs: Vec<Pair>, most: usize) -> Vec<Vec<Pair>> {
    let mut batches: Vec<Vec<Pair>> = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_all_pairs_in_order_and_are_never_over_but_for_a_single_one() {
        let pair = |n: usize| (vec![0; n], vec![0; n]);
        let lengths = |batches: Vec<Vec<Pair>>| -> Vec<Vec<usize>> {
            batches.iter().map(|batch| batch.iter().map(|(source, _)| source.len()).collect()).collect()
        };
        let batches = cut([1, 2, 2, 3, 9, 4].map(pair).into(), 10);
        assert_eq!(lengths(batches), [vec![1, 2, 2], vec![3], vec![9], vec![4]]);
    }
}
