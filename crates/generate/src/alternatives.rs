//! Alternatives: the most probable other continuations of a prefix.
//!
//! The search has two rounds. The first finds the most probable tokens after the prefix. The second finds the best continuation of each of
//! them, all in one batch, and that of the prefix alone, which is the translation. The translation is one of the alternatives, unchanged,
//! so that choosing the word that is already there changes nothing.

use crate::context::Context;
use crate::error::Error;
use crate::generator::Generator;
use crate::hypothesis::{Hypothesis, best_first};
use crate::options::{MaxLength, Options};
use crate::request::Request;
use crate::rules::Rules;
use crate::seq2seq::Spec;
use std::sync::Arc;

/// A search for alternatives, for callers that drive a generator themselves. [`Generator::alternatives`] does it in one call.
#[derive(Debug)]
pub struct Alternatives {
    request: Request,
    options: Options,
    count: usize,
    /// The most tokens that may be written.
    max_length: usize,
    first: Vec<Hypothesis>,
}

impl Alternatives {
    /// The search for the `count` most probable tokens after the prefix of a request, each with its best continuation.
    pub fn new(request: Request, options: Options, count: usize, spec: &Spec) -> Result<Alternatives, Error> {
        let max_length = request.check(&options, spec)?;
        Ok(Alternatives { request, options, count, max_length, first: Vec::new() })
    }

    /// The first round: the request, and the options to decode it with.
    pub fn first(&self) -> (Request, Options) {
        // A beam search of one token finds the most probable ones.
        let length = self.request.prefix.len() + 1;
        let options = Options {
            beam: self.count,
            n_best: self.count,
            patience: 1.0,
            sampling: None,
            max_length: MaxLength::Tokens(length),
            forced_eos: self.options.forced_eos.filter(|_| length == self.max_length),
            ..self.options.clone()
        };
        (self.request.clone(), options)
    }

    /// The second round, by the results of the first: the requests, to be decoded with the options of [`Alternatives::new`]. The last one
    /// is the original request.
    pub fn second(&mut self, first: Vec<Hypothesis>) -> Vec<Request> {
        let is_open = |found: &&Hypothesis| !found.ended && found.tokens.len() < self.max_length;
        let request = |found: &Hypothesis| Request {
            source: self.request.source.clone(),
            prefix: found.tokens.clone(),
        };
        let requests = first.iter().filter(is_open).map(request);
        let requests = requests.chain([self.request.clone()]).collect();
        self.first = first;
        requests
    }

    /// The alternatives from the best result of each request of the second round, sorted by the score of all tokens, best first.
    pub fn finish(self, mut second: Vec<Hypothesis>) -> Vec<Hypothesis> {
        let translation = second.pop();
        let mut second = second.into_iter().peekable();
        let whole = |first: Hypothesis| {
            let follows = |found: &Hypothesis| found.tokens.starts_with(&first.tokens);
            let followed = second.next_if(follows);
            let chosen = translation.as_ref().filter(|found| follows(found)).cloned();
            let whole = chosen.or(followed).unwrap_or(first);
            whole.with_prefix_counted(self.options.penalty)
        };
        let mut found: Vec<Hypothesis> = self.first.into_iter().map(whole).collect();
        best_first(&mut found);
        found
    }
}

impl Generator {
    /// The `count` most probable tokens after the prefix of a request, each with its best continuation, sorted by the score of all tokens,
    /// best first. Sentences that were pushed before are dropped.
    pub fn alternatives(
        &mut self,
        request: impl Into<Request>,
        count: usize,
    ) -> Result<Vec<Hypothesis>, Error> {
        self.clear();
        let mut search =
            Alternatives::new(request.into(), self.options().clone(), count, &self.model().spec())?;
        let (request, options) = search.first();
        let usual = Rules { sampler: None, ..(*self.rules).clone() };
        let first = self.generate_with(Rules { options, ..usual }, vec![request])?;
        let mut requests = search.second(first.into_iter().next().unwrap_or_default());
        let Rules { ends, stops, .. } = &*self.rules;
        let translation = requests.pop();
        requests.retain(|Request { source, prefix }| {
            let context = Context { sentence: 0, source, tokens: prefix, prompt: 0, ends };
            !stops.iter().any(|stop| stop.stop(&context))
        });
        requests.extend(translation);
        // Ranking needs scores, even if the caller does not.
        let options = Options { scores: true, ..self.options().clone() };
        let second = self.generate_with(Rules { options, ..(*self.rules).clone() }, requests)?;
        Ok(search.finish(second.into_iter().filter_map(|best| best.into_iter().next()).collect()))
    }

    /// Decodes requests with other rules than the generator's.
    fn generate_with(&mut self, rules: Rules, requests: Vec<Request>) -> Result<Vec<Vec<Hypothesis>>, Error> {
        let usual = std::mem::replace(&mut self.rules, Arc::new(rules));
        let found = self.generate(requests).collect();
        self.rules = usual;
        found
    }
}
