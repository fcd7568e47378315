//! The rules of decoding a sentence: its options, and the filters, stopping rules and sampler that follow from them.

use crate::context::Context;
use crate::error::Error;
use crate::filter::{Banned, Change, Filter, MinLength, NoRepeatNgrams, RepetitionPenalty};
use crate::options::Options;
use crate::sampler::Sampler;
use crate::seq2seq::Spec;
use crate::stop::Stop;
use std::sync::Arc;

/// How sentences are decoded.
#[derive(Clone)]
pub(crate) struct Rules {
    pub spec: Spec,
    pub options: Options,
    /// The tokens that end a target.
    pub ends: Vec<u32>,
    pub filters: Vec<Arc<dyn Filter>>,
    pub stops: Vec<Arc<dyn Stop>>,
    pub sampler: Option<Arc<dyn Sampler>>,
}

impl Rules {
    /// The rules that options ask for.
    pub fn new(options: Options, spec: Spec) -> Result<Rules, Error> {
        options.check(&spec)?;
        let sampler = options.sampling.map(|sampling| Arc::new(sampling) as Arc<dyn Sampler>);
        let ends = if options.ends.is_empty() { vec![spec.eos] } else { options.ends.clone() };
        let filters = filters(&options, &spec, &ends);
        Ok(Rules { spec, options, ends, filters, stops: Vec::new(), sampler })
    }

    /// The changes of all filters, in their order; none if a filter may change any token. The token that is never written is left out.
    pub fn changes(&self, context: &Context) -> Option<Vec<(u32, Change)>> {
        let mut all = Vec::new();
        for filter in &self.filters {
            all.extend(filter.changes(context)?);
        }
        let is_written =
            |token: u32| Some(token) != self.spec.never && (token as usize) < self.spec.vocabulary;
        all.retain(|(token, _)| is_written(*token));
        Some(all)
    }

    /// Whether log-probabilities are needed.
    pub fn want_scores(&self) -> bool {
        self.options.scores || self.options.beam > 1 || self.sampler.is_some()
    }

    /// How many of the best tokens of a row are needed. A hypothesis can end in as many ways as there are end tokens.
    pub fn candidates(&self) -> usize {
        if self.options.beam == 1 { 1 } else { (1 + self.ends.len()) * self.options.beam }
    }

    /// Whether a target ends with this token.
    pub fn is_end(&self, token: Option<&u32>) -> bool {
        token.is_some_and(|token| self.ends.contains(token))
    }
}

/// The filters that options ask for, in the order in which transformers has them.
fn filters(options: &Options, spec: &Spec, ends: &[u32]) -> Vec<Arc<dyn Filter>> {
    let mut filters: Vec<Arc<dyn Filter>> = Vec::new();
    if options.repetition_penalty != 1.0 {
        filters.push(Arc::new(RepetitionPenalty(options.repetition_penalty)));
    }
    if options.no_repeat_ngram > 0 {
        filters.push(Arc::new(NoRepeatNgrams(options.no_repeat_ngram)));
    }
    // End tokens cannot be banned: nothing would ever end. Many models ban padding, which is never written anyway.
    let matters = |sequence: &&Vec<u32>| match sequence[..] {
        [token] => !ends.contains(&token) && Some(token) != spec.never,
        _ => true,
    };
    let banned: Vec<Vec<u32>> = options.banned.iter().filter(matters).cloned().collect();
    if !banned.is_empty() {
        filters.push(Arc::new(Banned(banned)));
    }
    if options.min_length > 0 {
        filters.push(Arc::new(MinLength(options.min_length)));
    }
    filters
}
