//! What else could be written from some position on.
//!
//! They are searched for in two rounds: first the most probable tokens behind the prefix, then the best that can follow each
//! of them, all together.

use crate::error::Error;
use crate::generator::Generator;
use crate::hypothesis::Hypothesis;
use crate::options::{MaxLength, Options};
use crate::request::Request;
use crate::rules::Rules;
use crate::search::Context;
use crate::seq2seq::{Seq2Seq, Spec};
use std::sync::Arc;

/// A search for alternatives, for whoever drives a generator by hand. [`Generator::alternatives`] does it in one call.
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
    /// The search for the `count` most probable tokens behind the prefix of a request, each with the best that can follow it.
    pub fn new(request: Request, options: Options, count: usize, spec: &Spec) -> Result<Alternatives, Error> {
        let max_length = request.check(&options, spec)?;
        Ok(Alternatives { request, options, count, max_length, first: Vec::new() })
    }

    /// The first round: what is to be decoded, and how.
    pub fn first(&self) -> (Request, Options) {
        // A beam that may write a single token has the most probable ones in the end.
        let length = self.request.prefix.len() + 1;
        let options = Options {
            beam: self.count,
            n_best: self.count,
            patience: 1.0,
            sampling: None,
            max_length: MaxLength::Tokens(length),
            forced_eos: self.options.forced_eos && length == self.max_length,
            ..self.options.clone()
        };
        (self.request.clone(), options)
    }

    /// The second round, by the results of the first: what is to be decoded with the options that were given.
    pub fn second(&mut self, first: Vec<Hypothesis>) -> Vec<Request> {
        let is_open = |found: &&Hypothesis| !found.ended && found.tokens.len() < self.max_length;
        let request = |found: &Hypothesis| Request {
            source: self.request.source.clone(),
            prefix: found.tokens.clone(),
        };
        let requests = first.iter().filter(is_open).map(request).collect();
        self.first = first;
        requests
    }

    /// The alternatives, by the best results of the second round: the most probable first token first.
    pub fn finish(self, second: Vec<Hypothesis>) -> Vec<Hypothesis> {
        let from = self.request.prefix.len();
        let mut second = second.into_iter().peekable();
        let whole = |first: Hypothesis| {
            second.next_if(|found| found.tokens.starts_with(&first.tokens)).unwrap_or(first)
        };
        let mut found: Vec<Hypothesis> = self.first.into_iter().map(whole).collect();
        // All that was written behind the prefix counts, the first token as well.
        for hypothesis in &mut found {
            let scores = &hypothesis.token_scores[from..];
            hypothesis.score = scores.iter().sum::<f32>() / self.options.penalty.divisor(scores.len());
        }
        found
    }
}

impl<M: Seq2Seq> Generator<M> {
    /// The `count` most probable tokens behind the prefix of a request, the most probable first, each with the best that can
    /// follow it. What was pushed before is forgotten.
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
        let Rules { spec, stops, .. } = &*self.rules;
        requests.retain(|Request { source, prefix }| {
            let context = Context { sentence: 0, source, tokens: prefix, eos: spec.eos };
            !stops.iter().any(|stop| stop.stop(&context))
        });
        // What they are worth comes from their scores, whether somebody asked for these or not.
        let options = Options { scores: true, ..self.options().clone() };
        let second = self.generate_with(Rules { options, ..(*self.rules).clone() }, requests)?;
        Ok(search.finish(second.into_iter().filter_map(|best| best.into_iter().next()).collect()))
    }

    /// Decodes requests by other rules than the usual ones.
    fn generate_with(&mut self, rules: Rules, requests: Vec<Request>) -> Result<Vec<Vec<Hypothesis>>, Error> {
        let usual = std::mem::replace(&mut self.rules, Arc::new(rules));
        let found = self.generate(requests).collect();
        self.rules = usual;
        found
    }
}
