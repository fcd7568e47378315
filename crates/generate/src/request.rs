//! A request to a generator.

use crate::error::Error;
use crate::options::Options;
use crate::seq2seq::Spec;

/// A source to decode, and the beginning of its target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The tokens of the source, with the special tokens that the model needs.
    pub source: Vec<u32>,
    /// The tokens that the target begins with.
    pub prefix: Vec<u32>,
}

impl Request {
    /// Checks that a model can decode the request, and returns the most tokens that the target may have.
    pub(crate) fn check(&self, options: &Options, spec: &Spec) -> Result<usize, Error> {
        let Request { source, prefix } = self;
        if source.is_empty() {
            return Err(Error::EmptySource);
        }
        if source.len() > spec.max_source && !spec.continues {
            return Err(Error::LongSource { tokens: source.len(), most: spec.max_source });
        }
        for (tokens, vocabulary) in [(source, spec.source_vocabulary), (prefix, spec.vocabulary)] {
            if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
                return Err(Error::Token { token, vocabulary });
            }
        }
        let mut max_length = options.max_length.of(source.len()).min(spec.max_target);
        if spec.continues {
            if source.len() >= max_length {
                return Err(Error::LongPrompt { tokens: source.len(), most: max_length });
            }
            max_length -= source.len();
        }
        if prefix.len() >= max_length {
            return Err(Error::LongPrefix { tokens: prefix.len(), most: max_length });
        }
        Ok(max_length)
    }
}

impl From<Vec<u32>> for Request {
    fn from(source: Vec<u32>) -> Request {
        Request { source, prefix: Vec::new() }
    }
}
