//! What greedy search and beam search have in common: the trait [`Search`], and the sentence that is decoded.

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
    /// The number of the sample, if several are drawn for the sentence; 0 without sampling.
    pub draw: usize,
    /// All tokens so far, the newest last. For a beam search these are the tokens of the best running hypothesis, which may differ from
    /// those of the last call.
    pub tokens: &'a [u32],
    /// The log-probability of the newest token.
    pub score: f32,
    /// The other hypotheses of a beam search that may become the best result: the running ones, and the best finished one.
    pub(crate) rivals: (&'a [Path], Option<&'a Hypothesis>),
}

impl Written<'_> {
    /// How many of the tokens can no longer change, because all hypotheses that may become the best result begin with them.
    pub fn settled(&self) -> usize {
        let (paths, finished) = self.rivals;
        let rivals = paths.iter().map(|path| &path.tokens).chain(finished.iter().map(|one| &one.tokens));
        let common = |rival: &Vec<u32>| self.tokens.iter().zip(rival).take_while(|(a, b)| a == b).count();
        rivals.map(common).min().unwrap_or(self.tokens.len())
    }
}

/// Called for every token.
pub(crate) type OnToken = Box<dyn FnMut(&Written) + Send>;

/// A sentence to decode.
#[derive(Debug)]
pub(crate) struct Sentence {
    pub number: u64,
    /// The stream of random numbers of its samples; the same as `number` unless the caller chose one.
    pub stream: u64,
    pub source: Vec<u32>,
    /// The tokens that its target begins with.
    pub prefix: Vec<u32>,
    /// The most tokens that its target may have.
    pub max_length: usize,
}

/// A row of the next step: a token, and the row of the last step that it follows, among the rows of this sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextRow {
    pub parent: usize,
    pub token: u32,
}

/// The search for the best hypotheses of one sentence.
pub(crate) trait Search: Send {
    /// The rows of the next step; none when it is done.
    fn rows(&self) -> &[NextRow];

    /// Adds to `asked` what the next [`Search::advance`] needs for each of these rows.
    fn ask(&mut self, rules: &Rules, asked: &mut Asked);

    /// Chooses the next tokens by the scores of these rows.
    fn advance(&mut self, rules: &Rules, scores: &mut [Scores], on_token: &mut dyn FnMut(&Written));

    /// The finished hypotheses, best first.
    fn results(self: Box<Self>) -> Vec<Hypothesis>;
}

/// A running hypothesis.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Path {
    pub tokens: Vec<u32>,
    pub scores: Vec<f32>,
    /// The sum of the scores after the prefix.
    pub sum: f32,
}

// Not derived, because `clone_from` reuses the memory: a beam search copies paths at every step.
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
    /// Appends a token whose score counts.
    pub fn push(&mut self, candidate: Best) {
        self.tokens.push(candidate.token);
        self.scores.push(candidate.score);
        self.sum += candidate.score;
    }

    /// The finished hypothesis.
    pub fn finish(self, rules: &Rules, sentence: &Sentence) -> Hypothesis {
        let written = self.tokens.len().saturating_sub(sentence.prefix.len());
        let score = self.sum / rules.options.penalty.divisor(written.max(1));
        let ended = written > 0 && rules.is_end(self.tokens.last());
        Hypothesis { tokens: self.tokens, token_scores: self.scores, score, ended, draw: 0 }
    }
}

impl Sentence {
    /// The next token of the prefix, if the path is still inside of it.
    pub fn prefix_token(&self, path: &Path) -> Option<u32> {
        self.prefix.get(path.tokens.len()).copied()
    }

    /// Appends the next token of the prefix to a path that is still inside of it. The token's score is recorded, but does not count for the
    /// sum.
    pub fn follow_prefix(&self, path: &mut Path, scores: &Scores) -> Option<u32> {
        let token = self.prefix_token(path)?;
        path.tokens.push(token);
        path.scores.push(scores.one());
        Some(token)
    }

    /// Asks for the scores that the next step of a path needs: all logits, or the best ones and those of the tokens that filters change.
    /// Returns these changes.
    pub fn ask(&self, rules: &Rules, path: &Path, asked: &mut Asked) -> Vec<(u32, Change)> {
        if let Some(token) = self.prefix_token(path) {
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

    /// The next token if the options force one: the first or the last token of a target. Its score is 0.
    pub fn forced_token(&self, rules: &Rules, tokens: &[u32]) -> Option<Best> {
        let first = rules.options.forced_bos.filter(|_| tokens.is_empty());
        let last = || rules.options.forced_eos.filter(|_| tokens.len() + 1 == self.max_length);
        first.or_else(last).map(|token| Best { score: 0.0, token })
    }

    /// Applies all filters.
    pub fn filter(&self, rules: &Rules, tokens: &[u32], scores: &mut [f32]) {
        self.in_context(rules, tokens, |context| {
            for filter in &rules.filters {
                filter.filter(context, scores);
            }
        });
    }

    /// Calls `f` with the context of a hypothesis. If the model continues its source, the source precedes the tokens.
    fn in_context<T>(&self, rules: &Rules, tokens: &[u32], f: impl FnOnce(&Context) -> T) -> T {
        let (sentence, source, ends) = (self.number, &self.source[..], &rules.ends[..]);
        if !rules.spec.continues {
            return f(&Context { sentence, source, tokens, prompt: 0, ends });
        }
        let whole = [source, tokens].concat();
        f(&Context { sentence, source, tokens: &whole, prompt: source.len(), ends })
    }
}
