//! Options of commands that search for tokens or draw them.

use crate::options::between;
use attentive_generate::{EarlyStopping, LengthPenalty, Options, Sampling};
use clap::{Args, ValueEnum};

pub(crate) const SEARCH: &str = "Search";
const SAMPLING: &str = "Sampling";

/// How a command searches.
#[derive(Args)]
pub(crate) struct Search {
    /// Beam size; 1 is greedy search [default: the model's, else see below]
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>, help_heading = SEARCH)]
    beam: Option<usize>,
    /// Length penalty of the paper: divide scores by ((5 + length) / 6)^ALPHA instead of length^P
    #[arg(long, value_name = "ALPHA", value_parser = number, help_heading = SEARCH)]
    #[arg(allow_negative_numbers = true, conflicts_with = "length_penalty")]
    alpha: Option<f32>,
    /// Length penalty of transformers: divide scores by length^P [default: the model's, else 1]
    #[arg(long, value_name = "P", value_parser = number, help_heading = SEARCH, allow_negative_numbers = true)]
    length_penalty: Option<f32>,
    /// When beam search stops [default: the model's, else no]
    #[arg(long, value_name = "WHEN", help_heading = SEARCH)]
    early_stopping: Option<Early>,
    /// Finish FACTOR × beam hypotheses before beam search stops [default: the model's, else 1]
    #[arg(long, value_name = "FACTOR", value_parser = above_zero, help_heading = SEARCH)]
    patience: Option<f32>,
    /// Penalize tokens that were generated before by FACTOR; 1 is no penalty [default: the model's, else 1]
    #[arg(long, value_name = "FACTOR", value_parser = above_zero, help_heading = SEARCH)]
    repetition_penalty: Option<f32>,
    /// Never generate the same N-gram of tokens twice; 0 allows it [default: the model's, else 0]
    #[arg(long, value_name = "N", value_parser = between::<0, 1000>, help_heading = SEARCH)]
    no_repeat_ngram: Option<usize>,
    /// Sample tokens by their probability instead of searching for the best
    #[arg(long, help_heading = SAMPLING)]
    sample: bool,
    /// Temperature; below 1 sharpens the distribution, above 1 flattens it [default: the model's, else 1]
    #[arg(long, value_name = "T", value_parser = above_zero, help_heading = SAMPLING)]
    temperature: Option<f32>,
    /// Sample among the N most probable tokens; 0 means all [default: the model's, else 0]
    #[arg(long, value_name = "N", value_parser = between::<0, 1_000_000>, help_heading = SAMPLING)]
    top_k: Option<usize>,
    /// Sample among the most probable tokens whose probabilities sum to P [default: the model's, else 1]
    #[arg(long, value_name = "P", value_parser = probability, help_heading = SAMPLING)]
    top_p: Option<f32>,
    /// Sample among tokens at least P times as probable as the best token [default: the model's, else 0]
    #[arg(long, value_name = "P", value_parser = probability, help_heading = SAMPLING)]
    min_p: Option<f32>,
    /// Random seed of sampling
    #[arg(long, value_name = "SEED", default_value_t = 0, help_heading = SAMPLING)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Early {
    /// When as many hypotheses are finished as the beam is wide
    Yes,
    /// When the best unfinished hypothesis would not improve the result if it ended now
    No,
    /// When no unfinished hypothesis can improve the result
    Never,
}

impl Search {
    /// What the model asks for, changed by what was asked for here, with `n_best` results if a number is asked for.
    pub(crate) fn change(&self, model: Options, n_best: Option<usize>) -> Options {
        let alpha = self.alpha.map(LengthPenalty::Paper);
        let n_best = n_best.unwrap_or(model.n_best);
        let early_stopping = self.early_stopping.map(|early| match early {
            Early::Yes => EarlyStopping::Yes,
            Early::No => EarlyStopping::No,
            Early::Never => EarlyStopping::Never,
        });
        Options {
            // Who asks for more results than the model's beam has, and for no beam, gets a beam that has them.
            beam: self.beam.unwrap_or(model.beam.max(n_best)),
            n_best,
            penalty: alpha.or(self.length_penalty.map(LengthPenalty::Power)).unwrap_or(model.penalty),
            early_stopping: early_stopping.unwrap_or(model.early_stopping),
            patience: self.patience.unwrap_or(model.patience),
            sampling: self.sampling(model.sampling),
            seed: self.seed,
            repetition_penalty: self.repetition_penalty.unwrap_or(model.repetition_penalty),
            no_repeat_ngram: self.no_repeat_ngram.unwrap_or(model.no_repeat_ngram),
            ..model
        }
    }

    /// Any of its options asks for sampling; a beam asks for none.
    fn sampling(&self, model: Option<Sampling>) -> Option<Sampling> {
        let asked = self.sample
            || self.temperature.is_some()
            || self.top_k.is_some()
            || self.top_p.is_some()
            || self.min_p.is_some();
        if !asked {
            return model.filter(|_| self.beam.is_none());
        }
        let model = model.unwrap_or_default();
        Some(Sampling {
            temperature: self.temperature.unwrap_or(model.temperature),
            top_k: self.top_k.unwrap_or(model.top_k),
            top_p: self.top_p.unwrap_or(model.top_p),
            min_p: self.min_p.unwrap_or(model.min_p),
        })
    }
}

fn number(text: &str) -> Result<f32, String> {
    text.parse().ok().filter(|number: &f32| number.is_finite()).ok_or_else(|| "a number is needed".to_owned())
}

fn above_zero(text: &str) -> Result<f32, String> {
    number(text).ok().filter(|number| *number > 0.0).ok_or_else(|| "a number above 0 is needed".to_owned())
}

fn probability(text: &str) -> Result<f32, String> {
    let probability = number(text).ok().filter(|number| (0.0..=1.0).contains(number));
    probability.ok_or_else(|| "a number from 0 to 1 is needed".to_owned())
}
