//! Options of commands that translate, and the translator that they ask for.

use crate::error::Error;
use crate::options::{Compute, between};
use crate::precision::DecodingPrecision;
use crate::words;
use attentive_generate::{
    EarlyStopping, LengthPenalty, MaxLength, ModelFolder, Options, Sampling, TargetLanguages, Translator,
};
use attentive_text::tokenizer::Tokenizer;
use clap::{Args, ValueEnum};
use std::io::{Write, stderr};
use std::path::PathBuf;

/// How a command translates.
#[derive(Args)]
pub(crate) struct Decoding {
    /// Model folder, with config.json, model.safetensors and a tokenizer
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in [default: int8 if the model is stored in int8, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<DecodingPrecision>,
    /// Target language, such as de, if the model has several: adds its token (>>de<<) to lines without one
    #[arg(long, value_name = "LANG", visible_alias = "target-lang")]
    to: Option<String>,
    /// Print the model, precision, instruction set, threads and search options to stderr
    #[arg(long, short)]
    verbose: bool,
    /// Number of sentences that each thread translates at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = between::<1, 4096>)]
    batch: usize,
    /// Beam size; 1 is greedy search [default: the model's, else 4]
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
    /// Minimum length of a translation in tokens [default: the model's, else 0]
    #[arg(long, value_name = "N", value_parser = between::<0, 1_000_000>, help_heading = SEARCH)]
    min_length: Option<usize>,
    /// Maximum length of a translation in tokens [default: the model's, else source length + 50]
    #[arg(long, value_name = "N", value_parser = between::<1, 1_000_000>, help_heading = SEARCH)]
    max_length: Option<usize>,
    /// Penalize tokens that were generated before by FACTOR; 1 is no penalty [default: the model's, else 1]
    #[arg(long, value_name = "FACTOR", value_parser = above_zero, help_heading = SEARCH)]
    repetition_penalty: Option<f32>,
    /// Never generate the same N-gram of tokens twice; 0 allows it [default: the model's, else 0]
    #[arg(long, value_name = "N", value_parser = between::<0, 1000>, help_heading = SEARCH)]
    no_repeat_ngram: Option<usize>,
    /// Sample tokens by their probability instead of searching for the best translation
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

const SEARCH: &str = "Search";

/// Where options of a search come from, for the help of commands that search.
pub(crate) const SEARCH_RULE: &str = "\
Search options: a flag overrides generation_config.json in the model folder (config.json, if there is no such file). \
Without either, the beam is 4, the length penalty is 1 (score / length), and a translation has at most 50 tokens more \
than its source. Models of attentive train have these values.";
const SAMPLING: &str = "Sampling";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Early {
    /// When as many hypotheses are finished as the beam is wide
    Yes,
    /// When the best unfinished hypothesis would not improve the result if it ended now
    No,
    /// When no unfinished hypothesis can improve the result
    Never,
}

impl Decoding {
    /// Reads the model and makes a translator of it that gives `n_best` results, if a number is asked for, and knows how sure
    /// it is if somebody wants the scores.
    pub(crate) fn translator(&self, n_best: Option<usize>, scores: bool) -> Result<Translator, Error> {
        let ModelFolder { copies, codec, options, .. } = self.open(n_best, scores)?;
        Ok(Translator::new(copies, codec, options)?)
    }

    /// Reads the model, to be decoded with on each thread, with the options of the flags.
    pub(crate) fn open(&self, n_best: Option<usize>, scores: bool) -> Result<ModelFolder, Error> {
        let decoders = self.compute.decoders(self.precision)?;
        let mut folder = decoders.open(&self.model)?;
        folder.options = self.options(folder.options, n_best, scores);
        if self.verbose {
            let computed = decoders.description(folder.int8);
            let search = words::search(&folder.options);
            // Where nobody reads this, the translation is there all the same.
            let _ = writeln!(stderr(), "attentive: model {}: {computed}; {search}", self.model.display());
        }
        Ok(folder)
    }

    /// The languages of a model, with the one that is asked for.
    pub(crate) fn languages(&self, tokenizer: &Tokenizer) -> Result<TargetLanguages, Error> {
        let languages = TargetLanguages::of(tokenizer);
        let Some(code) = &self.to else { return Ok(languages) };
        let unknown =
            |error: attentive_generate::Error| Error::Flag { option: "to", problem: error.to_string() };
        languages.with_target(code).map_err(unknown)
    }

    /// What the model asks for, changed by what was asked for here.
    fn options(&self, model: Options, n_best: Option<usize>, scores: bool) -> Options {
        let alpha = self.alpha.map(LengthPenalty::Paper);
        let n_best = n_best.unwrap_or(model.n_best);
        let early_stopping = self.early_stopping.map(|early| match early {
            Early::Yes => EarlyStopping::Yes,
            Early::No => EarlyStopping::No,
            Early::Never => EarlyStopping::Never,
        });
        Options {
            batch: self.batch * self.compute.threads(),
            // Who asks for more results than the model's beam has, and for no beam, gets a beam that has them.
            beam: self.beam.unwrap_or(model.beam.max(n_best)),
            n_best,
            scores,
            penalty: alpha.or(self.length_penalty.map(LengthPenalty::Power)).unwrap_or(model.penalty),
            early_stopping: early_stopping.unwrap_or(model.early_stopping),
            patience: self.patience.unwrap_or(model.patience),
            sampling: self.sampling(model.sampling),
            seed: self.seed,
            repetition_penalty: self.repetition_penalty.unwrap_or(model.repetition_penalty),
            no_repeat_ngram: self.no_repeat_ngram.unwrap_or(model.no_repeat_ngram),
            min_length: self.min_length.unwrap_or(model.min_length),
            max_length: self.max_length.map_or(model.max_length, MaxLength::Tokens),
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
