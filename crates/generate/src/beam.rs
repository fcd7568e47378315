//! Beam search, as transformers does it.
//!
//! At each step the `2 · beam` best continuations of all hypotheses together are looked at, by the sum of their
//! log-probabilities. Those among the first `beam` that end are finished: they compete by sum / length penalty for a place
//! among the finished, of which there are `beam` (times [`patience`](crate::Options::patience)). The first `beam` that do
//! not end are followed. There are always so many: each hypothesis can end in one way only. (Where there are several end
//! tokens, as many more continuations are looked at.)

use crate::filter::Change;
use crate::hypothesis::Hypothesis;
use crate::options::EarlyStopping;
use crate::rules::Rules;
use crate::scores::{Asked, Changed, Scores};
use crate::search::{Next, Path, Search, Sentence, Written};
use crate::top::top;
use attentive_tensor::Best;

/// The search for one sentence.
pub(crate) struct BeamSearch {
    sentence: Sentence,
    /// Those that are followed, best first.
    paths: Vec<Path>,
    rows: Vec<Next>,
    /// Best first.
    finished: Vec<Hypothesis>,
    n_best: usize,
    /// What filters change of each path.
    changes: Vec<Vec<(u32, Change)>>,
    // What is kept from step to step only for its memory.
    spare: Vec<Path>,
    best: Vec<Best>,
    continuations: Vec<Continuation>,
}

/// A hypothesis and the token that it might go on with.
#[derive(Debug, Clone, Copy)]
struct Continuation {
    path: usize,
    candidate: Best,
    /// Of the log-probabilities, this token included.
    sum: f32,
}

impl BeamSearch {
    pub fn new(rules: &Rules, sentence: Sentence) -> BeamSearch {
        BeamSearch {
            sentence,
            paths: vec![Path::default()],
            rows: vec![Next { parent: 0, token: rules.spec.start }],
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
            if let Some(forced) = self.sentence.must_be(rules, tokens) {
                self.best.clear();
                self.best.push(forced);
            } else if scores.row.is_empty() {
                scores.rank(count, &self.changes[path], Changed::LogProbabilities, &mut self.best);
            } else {
                // What is forbidden has had its share of the probability: the rest is not made to sum to 1 again.
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
        // Stable: of equals the one of the better hypothesis comes first.
        self.continuations.sort_by(|a, b| b.sum.total_cmp(&a.sum));
        self.continuations.truncate(count);
    }

    /// Goes through the continuations: what ends competes, what does not is followed.
    fn part(&mut self, rules: &Rules) {
        let beam = rules.options.beam;
        std::mem::swap(&mut self.paths, &mut self.spare);
        self.rows.clear();
        let mut followed = 0;
        for (rank, continuation) in self.continuations.iter().enumerate() {
            if followed == beam {
                break;
            }
            if self.paths.len() == followed {
                self.paths.push(Path::default());
            }
            let path = &mut self.paths[followed];
            path.clone_from(&self.spare[continuation.path]);
            path.push(continuation.candidate);
            if !self.sentence.complete(rules, &path.tokens) {
                self.rows.push(Next { parent: continuation.path, token: continuation.candidate.token });
                followed += 1;
            } else if rank < beam {
                insert(
                    &mut self.finished,
                    path.clone().finish(rules, &self.sentence),
                    rules.options.finished(),
                );
            }
        }
        self.paths.truncate(followed);
    }

    /// Whether nothing that is followed can matter any more.
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

/// Puts a hypothesis in its place, behind its equals, where there is one for it.
fn insert(finished: &mut Vec<Hypothesis>, hypothesis: Hypothesis, places: usize) {
    let place = finished.partition_point(|other| other.score >= hypothesis.score);
    if place < places {
        finished.truncate(places - 1);
        finished.insert(place, hypothesis);
    }
}

impl Search for BeamSearch {
    fn rows(&self) -> &[Next] {
        &self.rows
    }

    fn ask(&mut self, rules: &Rules, asked: &mut Asked) {
        self.changes.clear();
        self.changes.extend(self.paths.iter().map(|path| self.sentence.ask(rules, path, asked)));
    }

    fn advance(&mut self, rules: &Rules, scores: &mut [Scores], on_token: &mut dyn FnMut(&Written)) {
        if let [path] = &mut self.paths[..]
            && let Some(token) = self.sentence.force(path, &scores[0])
        {
            self.rows = vec![Next { parent: 0, token }];
            return;
        }
        self.collect(rules, scores);
        self.part(rules);
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
