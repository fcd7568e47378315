//! Beam search, as transformers does it.
//!
//! Each step ranks the `2 · beam` best continuations of all hypotheses by the sum of their log-probabilities. A continuation among the
//! first `beam` that ends is finished; the best `beam` finished hypotheses (times [`patience`](crate::Options::patience)) are kept, by sum
//! / length penalty. The first `beam` continuations that do not end are the running hypotheses of the next step. There are always enough of
//! them, since each hypothesis can end in one way only. (With `e` end tokens, `(1 + e) · beam` continuations are ranked.)

use crate::filter::Change;
use crate::hypothesis::Hypothesis;
use crate::options::EarlyStopping;
use crate::rules::Rules;
use crate::scores::{Asked, Changed, Scores};
use crate::search::{NextRow, Path, Search, Sentence, Written};
use crate::top::top;
use attentive_tensor::Best;

/// The search for one sentence.
pub(crate) struct BeamSearch {
    sentence: Sentence,
    /// The running hypotheses, best first.
    paths: Vec<Path>,
    rows: Vec<NextRow>,
    /// The finished hypotheses, best first.
    finished: Vec<Hypothesis>,
    n_best: usize,
    /// The changes of filters for each path.
    changes: Vec<Vec<(u32, Change)>>,
    // These are kept from step to step only to reuse their memory.
    spare: Vec<Path>,
    best: Vec<Best>,
    continuations: Vec<Continuation>,
}

/// A hypothesis and a possible next token.
#[derive(Debug, Clone, Copy)]
struct Continuation {
    path: usize,
    candidate: Best,
    /// The sum of the log-probabilities, this token included.
    sum: f32,
}

impl BeamSearch {
    pub fn new(rules: &Rules, sentence: Sentence) -> BeamSearch {
        BeamSearch {
            sentence,
            paths: vec![Path::default()],
            rows: vec![NextRow { parent: 0, token: rules.spec.start }],
            finished: Vec::new(),
            n_best: rules.options.n_best,
            changes: Vec::new(),
            spare: Vec::new(),
            best: Vec::new(),
            continuations: Vec::new(),
        }
    }

    /// The best continuations of all hypotheses, best first.
    fn collect(&mut self, rules: &Rules, scores: &mut [Scores]) {
        let count = rules.candidates();
        self.continuations.clear();
        for (path, scores) in scores.iter_mut().enumerate() {
            let tokens = &self.paths[path].tokens;
            if let Some(forced) = self.sentence.forced_token(rules, tokens) {
                self.best.clear();
                self.best.push(forced);
            } else if scores.row.is_empty() {
                scores.rank(count, &self.changes[path], Changed::LogProbabilities, &mut self.best);
            } else {
                // As in transformers, the probabilities are not renormalised after a filter forbids tokens.
                let log_sum = top(scores.row, 0, &mut self.best);
                scores.row.iter_mut().for_each(|x| *x -= log_sum);
                self.sentence.filter(rules, tokens, scores.row);
                top(scores.row, count, &mut self.best);
            }
            let before = self.paths[path].sum;
            let continuation =
                |&candidate: &Best| Continuation { path, candidate, sum: before + candidate.score };
            self.continuations.extend(self.best.iter().map(continuation));
        }
        // A stable sort: of equal sums, the one of the better hypothesis comes first.
        self.continuations.sort_by(|a, b| b.sum.total_cmp(&a.sum));
        self.continuations.truncate(count);
    }

    /// Divides the continuations into finished and running hypotheses.
    fn select(&mut self, rules: &Rules) {
        let beam = rules.options.beam;
        std::mem::swap(&mut self.paths, &mut self.spare);
        self.rows.clear();
        let mut running = 0;
        for (rank, continuation) in self.continuations.iter().enumerate() {
            if running == beam {
                break;
            }
            if self.paths.len() == running {
                self.paths.push(Path::default());
            }
            let path = &mut self.paths[running];
            path.clone_from(&self.spare[continuation.path]);
            path.push(continuation.candidate);
            if !self.sentence.complete(rules, &path.tokens) {
                self.rows.push(NextRow { parent: continuation.path, token: continuation.candidate.token });
                running += 1;
            } else if rank < beam {
                insert(
                    &mut self.finished,
                    path.clone().finish(rules, &self.sentence),
                    rules.options.finished(),
                );
            }
        }
        self.paths.truncate(running);
    }

    /// Whether no running hypothesis can still get into the results.
    fn is_over(&self, rules: &Rules) -> bool {
        let Some(leader) = self.paths.first() else { return true };
        let Some(worst) = self.finished.get(rules.options.finished() - 1) else { return false };
        let penalty = rules.options.penalty;
        let length = match rules.options.early_stopping {
            EarlyStopping::Yes => return true,
            EarlyStopping::Never if penalty.favours_length() => self.sentence.max_length,
            EarlyStopping::Never | EarlyStopping::No => leader.tokens.len(),
        };
        leader.sum / penalty.divisor(length - self.sentence.prefix.len()) <= worst.score
    }
}

/// Inserts a hypothesis in order, after equal ones, if it is among the best `most`.
fn insert(finished: &mut Vec<Hypothesis>, hypothesis: Hypothesis, most: usize) {
    let index = finished.partition_point(|other| other.score >= hypothesis.score);
    if index < most {
        finished.truncate(most - 1);
        finished.insert(index, hypothesis);
    }
}

impl Search for BeamSearch {
    fn rows(&self) -> &[NextRow] {
        &self.rows
    }

    fn ask(&mut self, rules: &Rules, asked: &mut Asked) {
        self.changes.clear();
        self.changes.extend(self.paths.iter().map(|path| self.sentence.ask(rules, path, asked)));
    }

    fn advance(&mut self, rules: &Rules, scores: &mut [Scores], on_token: &mut dyn FnMut(&Written)) {
        if let [path] = &mut self.paths[..]
            && let Some(token) = self.sentence.follow_prefix(path, &scores[0])
        {
            self.rows = vec![NextRow { parent: 0, token }];
            return;
        }
        self.collect(rules, scores);
        self.select(rules);
        if let Some(Path { tokens, scores, .. }) = self.paths.first() {
            let score = scores[scores.len() - 1];
            let rivals = (&self.paths[1..], self.finished.first());
            on_token(&Written { sentence: self.sentence.number, draw: 0, tokens, score, rivals });
        }
        if self.is_over(rules) {
            self.rows.clear();
            if self.finished.is_empty() {
                // Every token is forbidden, or all logits are NaN: the result is what has been written so far.
                let unfinished = self.spare.drain(..).map(|path| path.finish(rules, &self.sentence));
                self.finished.extend(unfinished);
            }
        }
    }

    fn results(self: Box<Self>) -> Vec<Hypothesis> {
        let mut finished = self.finished;
        finished.truncate(self.n_best);
        finished
    }
}
