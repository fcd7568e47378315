//! What else could be written from some position on.

use crate::error::Error;
use crate::generator::{Generator, Request};
use crate::hypothesis::Hypothesis;
use crate::search::Path;
use crate::seq2seq::{Row, Seq2Seq};
use crate::top::top;
use attentive_tensor::Best;

impl<M: Seq2Seq> Generator<M> {
    /// The `count` most probable tokens behind the prefix of a request, the most probable first, each with the best that can
    /// follow it. What was pushed before is forgotten.
    pub fn alternatives(
        &mut self,
        request: impl Into<Request>,
        count: usize,
    ) -> Result<Vec<Hypothesis>, Error> {
        self.clear();
        let request = request.into();
        let (prefix, first) = self.first_tokens(&request, count)?;
        let sentence = self.sentence(request.clone())?;
        let with = |candidate: &Best| {
            let mut path = prefix.clone();
            path.push(*candidate);
            path
        };
        // Some are complete with their first token, the others are searched for together.
        let is_open = |path: &Path| !sentence.complete(&self.rules, &path.tokens);
        let (open, complete): (Vec<Path>, Vec<Path>) = first.iter().map(with).partition(is_open);
        let requests: Vec<Request> = open
            .iter()
            .map(|path| Request { source: request.source.clone(), prefix: path.tokens.clone() })
            .collect();
        let mut found =
            complete.into_iter().map(|path| path.finish(&self.rules, &sentence)).collect::<Vec<_>>();
        for results in self.generate(requests).collect::<Result<Vec<_>, Error>>()? {
            found.extend(results.into_iter().next());
        }
        // All that was written behind the prefix counts, the first token as well.
        let from = request.prefix.len();
        for hypothesis in &mut found {
            let scores = &hypothesis.token_scores[from..];
            hypothesis.score = scores.iter().sum::<f32>() / self.options().penalty.divisor(scores.len());
        }
        let rank =
            |hypothesis: &Hypothesis| first.iter().position(|first| first.token == hypothesis.tokens[from]);
        found.sort_by_key(rank);
        Ok(found)
    }

    /// The prefix with its scores, and the best tokens behind it with their log-probabilities.
    fn first_tokens(&mut self, request: &Request, count: usize) -> Result<(Path, Vec<Best>), Error> {
        let sentence = self.sentence(request.clone())?;
        let (rules, mut path, mut best) = (&self.rules, Path::default(), Vec::new());
        self.model.admit(&[(0, &request.source)]);
        let mut row = Row { slot: 0, parent: None, token: rules.spec.start };
        loop {
            self.model.step(&[row]);
            let logits = self.model.logits();
            if let Some(token) = sentence.force(&mut path, logits) {
                row = Row { slot: 0, parent: Some(0), token };
                continue;
            }
            let log_sum = top(logits, 0, &mut best);
            sentence.filter(rules, &path.tokens, logits);
            top(logits, count, &mut best);
            best.iter_mut().for_each(|candidate| candidate.score -= log_sum);
            break;
        }
        self.model.release(0);
        Ok((path, best))
    }
}
