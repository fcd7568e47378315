//! What all searches have in common: one sentence on its way from logits to hypotheses.

use crate::hypothesis::Hypothesis;
use crate::rules::Rules;
use crate::top::top;
use attentive_tensor::Best;

/// What filters and stopping rules may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The number of the sentence, counted from the generator's first.
    pub sentence: u64,
    /// Its tokens.
    pub source: &'a [u32],
    /// What has been written, the prefix included.
    pub tokens: &'a [u32],
    /// The end token.
    pub eos: u32,
}

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

/// What the model says of the rows of one sentence.
pub(crate) struct Scores<'a> {
    /// The best tokens of each row with their log-probabilities, if [`Rules::want_scores`], `width` of them, which are
    /// [`Rules::candidates`] at least, unless [`Rules::want_rows`].
    pub best: &'a [Best],
    pub width: usize,
    /// The logits of each row, where somebody wants them.
    pub rows: &'a mut [f32],
}

/// One sentence on its way.
pub(crate) trait Search: Send {
    /// The rows of the next step; none when it is done.
    fn rows(&self) -> &[Next];

    /// Whether the next [`Search::advance`] cannot do with the best tokens alone, whatever the rules.
    fn wants_rows(&self) -> bool;

    /// Takes what the model says of these rows.
    fn advance(&mut self, rules: &Rules, scores: &mut Scores, on_token: &mut dyn FnMut(&Written));

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

    /// Goes on with the next token of the prefix, which does not.
    fn push_forced(&mut self, token: u32, row: &[f32]) {
        let log_sum = top(row, 0, &mut Vec::new());
        self.tokens.push(token);
        self.scores.push(row[token as usize] - log_sum);
    }

    /// The result.
    pub fn finish(self, rules: &Rules, sentence: &Sentence) -> Hypothesis {
        let written = self.tokens.len().saturating_sub(sentence.prefix.len());
        let score = self.sum / rules.options.penalty.divisor(written.max(1));
        let ended = written > 0 && self.tokens.last() == Some(&rules.spec.eos);
        Hypothesis { tokens: self.tokens, token_scores: self.scores, score, ended }
    }
}

impl Sentence {
    /// Whether a path goes on with the prefix, and wants to know what the model thinks of it.
    pub fn forces(&self, path: &Path) -> bool {
        path.tokens.len() < self.prefix.len()
    }

    /// Lets a path go on with the next token of the prefix, if it is not through it yet.
    pub fn force(&self, path: &mut Path, row: &[f32]) -> Option<u32> {
        let &token = self.prefix.get(path.tokens.len())?;
        path.push_forced(token, row);
        Some(token)
    }

    /// Whether a path with its newest token is complete.
    pub fn complete(&self, rules: &Rules, tokens: &[u32]) -> bool {
        let context = self.context(rules, tokens);
        tokens.last() == Some(&rules.spec.eos)
            || tokens.len() >= self.max_length
            || rules.stops.iter().any(|stop| stop.stop(&context))
    }

    /// Whether the next token must be the end token.
    pub fn must_end(&self, rules: &Rules, tokens: &[u32]) -> bool {
        rules.options.forced_eos && tokens.len() + 1 == self.max_length
    }

    /// Lets all filters have their way.
    pub fn filter(&self, rules: &Rules, tokens: &[u32], scores: &mut [f32]) {
        let context = self.context(rules, tokens);
        for filter in &rules.filters {
            filter.filter(&context, scores);
        }
    }

    fn context<'a>(&'a self, rules: &Rules, tokens: &'a [u32]) -> Context<'a> {
        Context { sentence: self.number, source: &self.source, tokens, eos: rules.spec.eos }
    }
}
