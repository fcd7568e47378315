//! What is learned from, as tokens: an example, a batch of them, and where they come from.

use super::{CorpusSize, Error};
use attentive_image::Picture;
use attentive_tensor::Random;
use std::fmt::Debug;

/// One example. An encoder-decoder reads `source` and is to write `target`; an encoder reads `source`, or
/// pictures, and is to answer `labels`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Example {
    /// The tokens that are read.
    pub source: Vec<i32>,
    /// The type of each of them, where a model tells types apart: 0 for the first text, 1 for the second.
    pub types: Vec<i32>,
    /// The tokens that are to be written.
    pub target: Vec<i32>,
    /// A picture in the size that a model reads, or several views of one.
    pub pictures: Vec<ExamplePicture>,
    /// Tokens of what is read only when a batch needs it.
    pub later: usize,
    /// The answers: one for the text, or one for each token. A negative one is no answer.
    pub labels: Vec<i32>,
}

/// A picture to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExamplePicture {
    /// Its pixels, before they are normalised.
    pub picture: Picture,
    /// How many tokens a model makes of it.
    pub tokens: usize,
}

impl Example {
    /// All tokens, which is what it costs to learn from it.
    pub fn tokens(&self) -> usize {
        self.read() + self.target.len()
    }

    /// The tokens that are read.
    pub(super) fn read(&self) -> usize {
        self.source.len() + self.pictures.iter().map(|picture| picture.tokens).sum::<usize>() + self.later
    }

    /// How many answers there are to be judged by: the tokens of the target, and the labels.
    pub fn answers(&self) -> usize {
        self.target.len() + self.labels.iter().filter(|&&label| label >= 0).count()
    }

    /// The lengths of both sides; without a target they are the same.
    pub(super) fn sides(&self) -> (usize, usize) {
        let other = if self.labels.is_empty() { self.target.len() } else { self.read() };
        (self.read(), other)
    }
}

/// Examples that are learned from at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExampleBatch {
    /// The examples, of like length.
    pub examples: Vec<Example>,
}

impl ExampleBatch {
    /// The tokens of all examples.
    pub fn tokens(&self) -> usize {
        self.examples.iter().map(Example::tokens).sum()
    }

    /// The answers of all examples.
    pub fn answers(&self) -> usize {
        self.examples.iter().map(Example::answers).sum()
    }

    /// Source and target of each example.
    pub fn pairs(&self) -> Vec<(&[i32], &[i32])> {
        self.examples.iter().map(|example| (&example.source[..], &example.target[..])).collect()
    }

    /// Tokens and types of each example.
    pub fn texts(&self) -> Vec<(&[i32], &[i32])> {
        self.examples.iter().map(|example| (&example.source[..], &example.types[..])).collect()
    }

    /// The labels of all examples, one behind the other.
    pub fn labels(&self) -> Vec<i32> {
        self.examples.iter().flat_map(|example| &example.labels).copied().collect()
    }
}

/// Examples by their numbers.
#[allow(clippy::len_without_is_empty, reason = "there is at least one")]
pub trait Examples: Debug + Send + Sync {
    /// How many there are; at least one.
    fn len(&self) -> usize;

    /// How large their files are, and what is in them.
    fn size(&self) -> CorpusSize;

    /// Whether they are texts that are tokenized whenever they are shown. Several ranks share such work.
    fn tokenizes(&self) -> bool {
        false
    }

    /// Shows some examples, given by their numbers in ascending order, each with its place in `numbers`. `random` gives the chance
    /// that an example has in this epoch: the same chance must give the same example. What `show` returns ends it if it is `false`.
    fn encode(
        &self,
        numbers: &[u32],
        random: &dyn Fn(u32) -> Random,
        show: &mut dyn FnMut(usize, Example) -> bool,
    ) -> Result<(), Error>;
}

/// Examples in memory.
#[derive(Debug)]
pub(crate) struct InMemory {
    pub examples: Vec<Example>,
    pub size: CorpusSize,
}

impl Examples for InMemory {
    fn len(&self) -> usize {
        self.examples.len()
    }

    fn size(&self) -> CorpusSize {
        self.size
    }

    fn encode(
        &self,
        numbers: &[u32],
        _: &dyn Fn(u32) -> Random,
        show: &mut dyn FnMut(usize, Example) -> bool,
    ) -> Result<(), Error> {
        for (&number, place) in numbers.iter().zip(0..) {
            if !show(place, self.examples[number as usize].clone()) {
                break;
            }
        }
        Ok(())
    }
}
