//! The options of a search.

use crate::error::Error;
use crate::penalty::LengthPenalty;
use crate::sampler::Sampling;
use crate::seq2seq::Spec;

/// The options of a search. The default is the paper's beam of 4 and at most 50 tokens more than the source, with
/// transformers' length penalty of 1: the score of a hypothesis is the mean of its log-probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How many sentences are decoded together.
    pub batch: usize,
    /// How many hypotheses are followed at once; with 1 the best token is taken at each step. Sampling follows as many as
    /// there are results.
    pub beam: usize,
    /// How many results there are for a sentence: the best of the beam, or as many draws, which may be equal.
    pub n_best: usize,
    /// Whether token scores are wanted. If not, greedy search leaves out the sum over the vocabulary, and its tokens have a score of 0,
    /// unless a filter needs all logits. Beam search and sampling always compute scores.
    pub scores: bool,
    /// The divisor of the sum of log-probabilities.
    pub penalty: LengthPenalty,
    /// When a beam search ends.
    pub early_stopping: EarlyStopping,
    /// A beam search keeps `patience · beam` finished hypotheses; above 1 it ends later (Kasai et al. 2022).
    pub patience: f32,
    /// Draws tokens instead of searching for the best.
    pub sampling: Option<Sampling>,
    /// The seed of sampling: the same seed draws the same tokens for the same sentences in the same order.
    pub seed: u64,
    /// Divides the score of tokens that were written before if it is positive, and multiplies it otherwise; 1 does nothing.
    pub repetition_penalty: f32,
    /// No sequence of as many tokens is written twice; 0 does nothing.
    pub no_repeat_ngram: usize,
    /// Sequences of tokens that are never written.
    pub banned: Vec<Vec<u32>>,
    /// How many tokens must be written before the end token.
    pub min_length: usize,
    /// How many tokens may be written, the end token included.
    pub max_length: MaxLength,
    /// The tokens that end a target; the model's own if there are none here.
    pub ends: Vec<u32>,
    /// The first token of each target, whatever the model says: the language, for some models of several languages.
    pub forced_bos: Option<u32>,
    /// The last token that may be written, whatever the model says: mostly an end token.
    pub forced_eos: Option<u32>,
}

/// The most hypotheses that are followed, or given, for a sentence: each takes memory.
pub(crate) const MOST_RESULTS: usize = 1024;
/// The most sentences that are decoded together.
const MOST_SENTENCES: usize = 1 << 22;
const MOST_PATIENCE: f32 = 1000.0;

impl Default for Options {
    fn default() -> Options {
        Options {
            batch: 32,
            beam: 4,
            n_best: 1,
            scores: true,
            penalty: LengthPenalty::Power(1.0),
            early_stopping: EarlyStopping::No,
            patience: 1.0,
            sampling: None,
            seed: 0,
            repetition_penalty: 1.0,
            no_repeat_ngram: 0,
            banned: Vec::new(),
            min_length: 0,
            max_length: MaxLength::SourceAnd(50),
            ends: Vec::new(),
            forced_bos: None,
            forced_eos: None,
        }
    }
}

/// When a beam search ends before the greatest length: transformers' `early_stopping`. A search always ends when no hypothesis is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyStopping {
    /// When the best running hypothesis, if it ended now, would be no better than the worst finished one: `false`.
    No,
    /// As soon as a beam of hypotheses is finished: `true`.
    Yes,
    /// When no running hypothesis can become better than the worst finished one, at any length that it may still reach: `"never"`.
    Never,
}

/// The most tokens of a target, end token included. If the model continues its source, the tokens of the source count, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxLength {
    /// So many more than the source has. A text that is continued becomes at most so much longer.
    SourceAnd(usize),
    /// So many. A text that is continued becomes at most so long.
    Tokens(usize),
}

impl MaxLength {
    /// The most tokens for a source of this many.
    pub fn of(self, source: usize) -> usize {
        match self {
            MaxLength::SourceAnd(more) => source.saturating_add(more),
            MaxLength::Tokens(most) => most,
        }
    }
}

impl Options {
    /// Greedy search: the best token at each step.
    pub fn greedy() -> Options {
        Options { beam: 1, ..Options::default() }
    }

    /// The default of models that continue texts: greedy search, at most 128 new tokens.
    pub fn continuing() -> Options {
        Options { beam: 1, max_length: MaxLength::SourceAnd(128), ..Options::default() }
    }

    /// Whether these options make sense for a model.
    pub fn check(&self, spec: &Spec) -> Result<(), Error> {
        let counts = [
            ("batch", self.batch, MOST_SENTENCES),
            ("beam", self.beam, MOST_RESULTS),
            ("n_best", self.n_best, MOST_RESULTS),
        ];
        for (option, count, most) in counts {
            if count == 0 {
                return Err(Error::option(option, "must be at least 1, not 0"));
            }
            if count > most {
                return Err(Error::option(option, format!("must be at most {most}, not {count}")));
            }
        }
        if self.max_length == MaxLength::Tokens(0) {
            return Err(Error::option("max_length", "must be at least 1, not 0"));
        }
        if let MaxLength::Tokens(most) = self.max_length
            && !spec.continues
            && self.min_length > most
        {
            let problem = format!("{} is more than the maximum length {most}", self.min_length);
            return Err(Error::option("min_length", problem));
        }
        let most = self.beam.min(self.finished());
        if self.sampling.is_none() && self.n_best > most {
            let problem = format!("{0} results need a beam of at least {0}, not {most}", self.n_best);
            return Err(Error::option("n_best", problem));
        }
        let above_zero = [("patience", self.patience), ("repetition_penalty", self.repetition_penalty)];
        if let Some((option, value)) =
            above_zero.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0))
        {
            return Err(Error::option(option, format!("must be a number above 0, not {value}")));
        }
        if self.patience > MOST_PATIENCE {
            let problem = format!("must be at most {MOST_PATIENCE}, not {}", self.patience);
            return Err(Error::option("patience", problem));
        }
        let (LengthPenalty::Paper(exponent) | LengthPenalty::Power(exponent)) = self.penalty;
        if !exponent.is_finite() {
            return Err(Error::option("penalty", format!("must be a number, not {exponent}")));
        }
        let vocabulary = spec.vocabulary;
        let forced = self.forced_bos.iter().chain(&self.forced_eos);
        let named = self.banned.iter().flatten().chain(&self.ends).chain(forced);
        match named.into_iter().find(|&&token| token as usize >= vocabulary) {
            Some(&token) => return Err(Error::Token { token, vocabulary }),
            None if self.banned.iter().any(Vec::is_empty) => {
                return Err(Error::option("banned", "a sequence without tokens cannot be banned"));
            }
            None => {}
        }
        self.sampling.as_ref().map_or(Ok(()), Sampling::check)
    }

    /// How many finished hypotheses a beam search keeps.
    pub(crate) fn finished(&self) -> usize {
        if self.beam == 1 { 1 } else { ((self.beam as f32 * self.patience).round() as usize).max(1) }
    }
}
