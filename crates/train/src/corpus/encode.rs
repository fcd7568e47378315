//! Pairs as examples: what batches need of a tokenizer.

use super::pairs::Side;
use super::{Batches, Batching, Corpus, CorpusSize, Error, Example, Examples, Position};
use attentive_tensor::Random;
use std::fmt;
use std::sync::Arc;

/// The tokens of a text, or why it has none.
pub type Encoded = Result<Vec<u32>, Box<dyn std::error::Error + Send + Sync>>;

/// Turns text into tokens. Every function from text and chance to [`Encoded`] does.
pub trait Encode: Send + Sync {
    /// The tokens of a text, with those that begin or end a sequence. `random` is this text's own in this epoch;
    /// the same text and the same `random` must always give the same.
    fn encode(&self, text: &str, random: Random) -> Encoded;
}

impl<F: Fn(&str, Random) -> Encoded + Send + Sync> Encode for F {
    fn encode(&self, text: &str, random: Random) -> Encoded {
        self(text, random)
    }
}

/// The pairs of a corpus, with one tokenizer for sources and one for targets, which may be the same.
pub struct EncodedPairs {
    corpus: Arc<Corpus>,
    source: Arc<dyn Encode>,
    target: Arc<dyn Encode>,
}

impl EncodedPairs {
    /// The pairs of a corpus.
    pub fn new(corpus: &Arc<Corpus>, source: Arc<dyn Encode>, target: Arc<dyn Encode>) -> EncodedPairs {
        EncodedPairs { corpus: Arc::clone(corpus), source, target }
    }

    fn pair(&self, number: u32, random: Random, source: &str, target: &str) -> Result<Example, Error> {
        let failed = |side| {
            move |error| {
                let (path, line) = self.corpus.place(number, side);
                Error::Line { path: path.to_owned(), line, problem: format!("cannot be encoded: {error}") }
            }
        };
        let signed = |ids: Vec<u32>| ids.into_iter().map(|id| id as i32).collect();
        let source = self.source.encode(source, random.split(0)).map_err(failed(Side::Source))?;
        let target = self.target.encode(target, random.split(1)).map_err(failed(Side::Target))?;
        Ok(Example { source: signed(source), target: signed(target), ..Example::default() })
    }
}

impl fmt::Debug for EncodedPairs {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("EncodedPairs").field("corpus", &self.corpus).finish_non_exhaustive()
    }
}

impl Examples for EncodedPairs {
    fn len(&self) -> usize {
        self.corpus.len()
    }

    fn size(&self) -> CorpusSize {
        self.corpus.size()
    }

    fn tokenizes(&self) -> bool {
        true
    }

    fn encode(
        &self,
        numbers: &[u32],
        random: &dyn Fn(u32) -> Random,
        show: &mut dyn FnMut(usize, Example) -> bool,
    ) -> Result<(), Error> {
        let mut failed = None;
        self.corpus.read(numbers, |i, source, target| {
            // Blank pairs stay without tokens, whatever a tokenizer would add to them.
            let is_blank = source.trim().is_empty() || target.trim().is_empty();
            let example = match is_blank {
                true => Ok(Example::default()),
                false => self.pair(numbers[i], random(numbers[i]), source, target),
            };
            match example {
                Ok(example) => show(i, example),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

impl Corpus {
    /// Batches from the beginning, with one tokenizer for sources and one for targets, which may be the same.
    pub fn batches(
        self: &Arc<Corpus>,
        batching: Batching,
        source: Arc<dyn Encode>,
        target: Arc<dyn Encode>,
    ) -> Result<Batches, Error> {
        Batches::new(Arc::new(EncodedPairs::new(self, source, target)), batching)
    }

    /// Batches from a saved position on. Corpus and settings must be those that it was saved with.
    pub fn batches_from(
        self: &Arc<Corpus>,
        position: &Position,
        batching: Batching,
        source: Arc<dyn Encode>,
        target: Arc<dyn Encode>,
    ) -> Result<Batches, Error> {
        Batches::from_position(Arc::new(EncodedPairs::new(self, source, target)), position, batching)
    }
}
