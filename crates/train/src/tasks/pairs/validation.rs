//! The pairs that a model is judged by.

use super::translations::{Line, Translations};
use super::vocabulary::Vocabulary;
use crate::Error;
use crate::corpus::{Corpus, Example};
use crate::settings::{Settings, TaskKind};
use crate::tasks::held::Held;
use attentive_generate::Options;
use attentive_text::tokenizer::Side;
use std::sync::Arc;

/// The pairs to validate on, as tokens.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) held: Held,
    pub(super) translations: Translations,
}

impl Validation {
    /// Encodes the pairs of a corpus; those with a blank side or more than `longest` tokens are left out.
    pub(super) fn new(
        corpus: &Corpus,
        vocabulary: &Vocabulary,
        settings: &Settings,
        longest: usize,
        options: Options,
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
            pairs.push(Example { source: signed(&tokens), target: signed(&targets), ..Example::default() });
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
        Ok(Validation {
            held: Held::new(pairs, settings.batch_tokens),
            translations: Translations {
                lines,
                tokenizer: Arc::clone(vocabulary.tokenizer()),
                scored: settings.validate_lines > 0,
                options: Options { beam: settings.validate_beam, ..options },
                rouge: settings.task == TaskKind::Seq2Seq,
            },
        })
    }

    /// How many pairs there are.
    pub(super) fn pairs(&self) -> usize {
        self.held.examples()
    }
}
