//! Greedy search and sampling: hypotheses that do not compete with each other.
//!
//! Greedy search follows one path and takes the best token at each step. Sampling follows one path for each result; the paths branch at the
//! first token after the prefix.

use crate::filter::Change;
use crate::hypothesis::Hypothesis;
use crate::rules::Rules;
use crate::scores::{Asked, Changed, Scores};
use crate::search::{NextRow, Path, Search, Sentence, Written};
use crate::top::top;
use attentive_tensor::Best;
use attentive_tensor::Random;

/// The paths of one sentence.
pub(crate) struct GreedySearch {
    sentence: Sentence,
    /// The running paths, each with its number.
    paths: Vec<(usize, Path)>,
    rows: Vec<NextRow>,
    done: Vec<Hypothesis>,
    /// The changes of filters for each path.
    changes: Vec<Vec<(u32, Change)>>,
    /// The best token of a row.
    best: Vec<Best>,
}

impl GreedySearch {
    pub fn new(rules: &Rules, sentence: Sentence) -> GreedySearch {
        let rows = vec![NextRow { parent: 0, token: rules.spec.start }];
        GreedySearch {
            sentence,
            paths: vec![(0, Path::default())],
            rows,
            done: Vec::new(),
            changes: Vec::new(),
            best: Vec::new(),
        }
    }

    /// Chooses the next token of a path from all logits; none if no token is allowed.
    fn choose(&mut self, rules: &Rules, number: usize, tokens: &[u32], row: &mut [f32]) -> Option<Best> {
        self.sentence.filter(rules, tokens, row);
        let log_sum = top(row, 1, &mut self.best);
        let token = match &rules.sampler {
            None => self.best.first()?.token,
            Some(sampler) => {
                let random = Random::new(rules.options.seed).split(self.sentence.stream).split(number as u64);
                sampler.sample(row, random.split(tokens.len() as u64))?
            }
        };
        Some(Best { score: row[token as usize] - log_sum, token })
    }

    /// Appends a token to a path, or the one that the options force; ends the path if there is no token.
    fn extend(
        &mut self,
        rules: &Rules,
        (number, mut path): (usize, Path),
        parent: usize,
        candidate: Option<Best>,
        on_token: &mut dyn FnMut(&Written),
    ) {
        let candidate = if let Some(forced) = self.sentence.forced_token(rules, &path.tokens) {
            forced
        } else if let Some(candidate) = candidate {
            if rules.want_scores() { candidate } else { Best { score: 0.0, ..candidate } }
        } else {
            // Every token is forbidden, or all logits are NaN: the result is what has been written so far.
            self.finish(rules, number, path);
            return;
        };
        path.push(candidate);
        let (sentence, tokens) = (self.sentence.number, &path.tokens);
        on_token(&Written { sentence, draw: number, tokens, score: candidate.score, rivals: (&[], None) });
        if self.sentence.complete(rules, tokens) {
            self.finish(rules, number, path);
        } else {
            self.rows.push(NextRow { parent, token: candidate.token });
            self.paths.push((number, path));
        }
    }

    fn finish(&mut self, rules: &Rules, number: usize, path: Path) {
        self.done.push(Hypothesis { draw: number, ..path.finish(rules, &self.sentence) });
    }
}

impl Search for GreedySearch {
    fn rows(&self) -> &[NextRow] {
        &self.rows
    }

    fn ask(&mut self, rules: &Rules, asked: &mut Asked) {
        self.changes.clear();
        self.changes.extend(self.paths.iter().map(|(_, path)| self.sentence.ask(rules, path, asked)));
    }

    fn advance(&mut self, rules: &Rules, scores: &mut [Scores], on_token: &mut dyn FnMut(&Written)) {
        self.rows.clear();
        let mut paths = std::mem::take(&mut self.paths);
        if let [(_, path)] = &mut paths[..]
            && let Some(token) = self.sentence.follow_prefix(path, &scores[0])
        {
            self.rows.push(NextRow { parent: 0, token });
            self.paths = paths;
            return;
        }
        // The paths branch at the end of the prefix. From then on each has its own row.
        let branched = paths[0].1.tokens.len() > self.sentence.prefix.len();
        let draws = if branched || rules.sampler.is_none() { 1 } else { rules.options.n_best };
        for (parent, (number, path)) in paths.into_iter().enumerate() {
            let scores = &mut scores[parent];
            if scores.row.is_empty() {
                scores.rank(1, &self.changes[parent], Changed::Logits, &mut self.best);
                let best = self.best.first().copied();
                self.extend(rules, (number, path), parent, best, on_token);
                continue;
            }
            let row = &mut *scores.row;
            let fresh = if draws > 1 { row.to_vec() } else { Vec::new() };
            for draw in 0..draws {
                if draw > 0 {
                    row.copy_from_slice(&fresh);
                }
                let candidate = self.choose(rules, number + draw, &path.tokens, row);
                self.extend(rules, (number + draw, path.clone()), parent, candidate, on_token);
            }
        }
    }

    fn results(self: Box<Self>) -> Vec<Hypothesis> {
        let mut done = self.done;
        done.sort_by(|a, b| b.score.total_cmp(&a.score));
        done
    }
}
