//! What all searches have in common: one sentence on its way from logits to hypotheses.

use crate::context::Context;
use crate::filter::Change;
use crate::hypothesis::Hypothesis;
use crate::rules::Rules;
use crate::scores::{Asked, Scores};
use attentive_tensor::Best;

/// A token that was just written; see [`Generator::on_token`](crate::Generator::on_token).
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// The number of the sentence, counted from the generator's first.
    pub sentence: u64,
    /// Which of the draws that are made for the sentence; always 0 where nothing is drawn.
    pub draw: usize,
    /// All that has been written, the newest token last: of a beam search, the best hypothesis that is followed at the
    /// moment, which may be another one than before.
    pub tokens: &'a [u32],
    /// The log of the newest token's probability.
    pub score: f32,
    /// What else may become the best result, of a beam search: what is followed, and the best that is finished.
    pub(crate) rivals: (&'a [Path], Option<&'a Hypothesis>),
}

impl Written<'_> {
    /// How many of the tokens can no longer change, because all that may still become the best result begin with them.
    pub fn settled(&self) -> usize {
        let (paths, finished) = self.rivals;
        let rivals = paths.iter().map(|path| &path.tokens).chain(finished.iter().map(|one| &one.tokens));
        let common = |rival: &Vec<u32>| self.tokens.iter().zip(rival).take_while(|(a, b)| a == b).count();
        rivals.map(common).min().unwrap_or(self.tokens.len())
    }
}

/// What is told of every token.
pub(crate) type OnToken = Box<dyn FnMut(&Written) + Send>;

/// What is known of one sentence.
#[derive(Debug)]
pub(crate) struct Sentence {
    pub number: u64,
    /// What numbers its draws: mostly the same.
    pub stream: u64,
    pub source: Vec<u32>,
    /// What its target begins with.
    pub prefix: Vec<u32>,
    /// The most tokens that its target may have.
    pub max_length: usize,
}

/// A row of the next step: a token behind one of the rows of this sentence in the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    pub parent: usize,
    pub token: u32,
}

/// One sentence on its way.
pub(crate) trait Search: Send {
    /// The rows of the next step; none when it is done.
    fn rows(&self) -> &[Next];

    /// Says what the next [`Search::advance`] wants to know of each of these rows.
    fn ask(&mut self, rules: &Rules, asked: &mut Asked);

    /// Takes what the model says of these rows.
    fn advance(&mut self, rules: &Rules, scores: &mut [Scores], on_token: &mut dyn FnMut(&Written));

    /// What came of it, best first.
    fn results(self: Box<Self>) -> Vec<Hypothesis>;
}

/// A hypothesis that is followed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Path {
    pub tokens: Vec<u32>,
    pub scores: Vec<f32>,
    /// Of the scores behind the prefix.
    pub sum: f32,
}

// By hand for `clone_from`, which keeps the memory: a beam search copies paths at every step.
impl Clone for Path {
    fn clone(&self) -> Path {
        Path { tokens: self.tokens.clone(), scores: self.scores.clone(), sum: self.sum }
    }

    fn clone_from(&mut self, other: &Path) {
        self.tokens.clone_from(&other.tokens);
        self.scores.clone_from(&other.scores);
        self.sum = other.sum;
    }
}

impl Path {
    /// Goes on with a token that counts.
    pub fn push(&mut self, candidate: Best) {
        self.tokens.push(candidate.token);
        self.scores.push(candidate.score);
        self.sum += candidate.score;
    }

    /// The result.
    pub fn finish(self, rules: &Rules, sentence: &Sentence) -> Hypothesis {
        let written = self.tokens.len().saturating_sub(sentence.prefix.len());
        let score = self.sum / rules.options.penalty.divisor(written.max(1));
        let ended = written > 0 && rules.is_end(self.tokens.last());
        Hypothesis { tokens: self.tokens, token_scores: self.scores, score, ended, draw: 0 }
    }
}

impl Sentence {
    /// The next token of the prefix, if a path is not through it yet.
    pub fn forced(&self, path: &Path) -> Option<u32> {
        self.prefix.get(path.tokens.len()).copied()
    }

    /// Lets a path go on with the next token of the prefix, if it is not through it yet. What the model thinks of it is noted,
    /// and does not count.
    pub fn force(&self, path: &mut Path, scores: &Scores) -> Option<u32> {
        let token = self.forced(path)?;
        path.tokens.push(token);
        path.scores.push(scores.one());
        Some(token)
    }

    /// Asks for what is needed to go on with a path: all logits, or those of the tokens that are changed, which are returned.
    pub fn ask(&self, rules: &Rules, path: &Path, asked: &mut Asked) -> Vec<(u32, Change)> {
        if let Some(token) = self.forced(path) {
            asked.one(token);
            return Vec::new();
        }
        let changes = self.in_context(rules, &path.tokens, |context| rules.changes(context));
        let Some(changes) = changes.filter(|_| rules.sampler.is_none()) else {
            asked.all();
            return Vec::new();
        };
        asked.some(changes.iter().map(|(token, _)| *token));
        changes
    }

    /// Whether a path with its newest token is complete.
    pub fn complete(&self, rules: &Rules, tokens: &[u32]) -> bool {
        let stops = |context: &Context| rules.stops.iter().any(|stop| stop.stop(context));
        rules.is_end(tokens.last())
            || tokens.len() >= self.max_length
            || !rules.stops.is_empty() && self.in_context(rules, tokens, stops)
    }

    /// The next token where the rules say what it is. It costs nothing.
    pub fn must_be(&self, rules: &Rules, tokens: &[u32]) -> Option<Best> {
        let first = rules.options.forced_bos.filter(|_| tokens.is_empty());
        let last = || rules.options.forced_eos.filter(|_| tokens.len() + 1 == self.max_length);
        first.or_else(last).map(|token| Best { score: 0.0, token })
    }

    /// Lets all filters have their way.
    pub fn filter(&self, rules: &Rules, tokens: &[u32], scores: &mut [f32]) {
        self.in_context(rules, tokens, |context| {
            for filter in &rules.filters {
                filter.filter(context, scores);
            }
        });
    }

    /// What `look` says of these tokens. Of a model that continues its source, the source stands before them.
    fn in_context<T>(&self, rules: &Rules, tokens: &[u32], look: impl FnOnce(&Context) -> T) -> T {
        let (sentence, source, ends) = (self.number, &self.source[..], &rules.ends[..]);
        if !rules.spec.continues {
            return look(&Context { sentence, source, tokens, prompt: 0, ends });
        }
        let whole = [source, tokens].concat();
        look(&Context { sentence, source, tokens: &whole, prompt: source.len(), ends })
    }
}
