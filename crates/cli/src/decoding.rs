//! Options of commands that translate, and the translator that they ask for.

use crate::error::Error;
use crate::model::Model;
use crate::options::{Compute, between};
use crate::precision::DecodingPrecision;
use crate::search::{self, Search};
use crate::words;
use attentive_generate::{MaxLength, Options};
use attentive_tasks::{ModelFolder, SpokenLanguages, TargetLanguages, Translator};
use attentive_text::tokenizer::Tokenizer;
use clap::Args;
use std::io::{Write, stderr};

/// How a command translates.
#[derive(Args)]
pub(crate) struct Decoding {
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in [default: int8 if the model is stored in int8, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<DecodingPrecision>,
    /// Target language, such as de, if the model has several; lines that begin with a token such as >>de<< keep theirs
    #[arg(long, value_name = "LANG", visible_alias = "target-lang")]
    to: Option<String>,
    /// Source language, if the model reads several [default: the model's, else en]
    #[arg(long, value_name = "LANG", visible_alias = "source-lang")]
    from: Option<String>,
    /// Print the model, precision, instruction set, threads and search options to stderr
    #[arg(long, short)]
    verbose: bool,
    /// Number of sentences that each thread translates at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = between::<1, 4096>)]
    batch: usize,
    #[command(flatten)]
    search: Search,
    /// Minimum length of a translation in tokens [default: the model's, else 0]
    #[arg(long, value_name = "N", value_parser = between::<0, 1_000_000>, help_heading = search::SEARCH)]
    min_length: Option<usize>,
    /// Maximum length of a translation in tokens [default: the model's, else source length + 50]
    #[arg(long, value_name = "N", value_parser = between::<1, 1_000_000>, help_heading = search::SEARCH)]
    max_length: Option<usize>,
}

/// Where options of a search come from, for the help of commands that search.
pub(crate) const SEARCH_RULE: &str = "\
Search options: a flag overrides generation_config.json in the model folder (config.json, if there is no such file). \
Without either, the beam is 4, the length penalty is 1 (score / length), and a translation has at most 50 tokens more \
than its source. Models of attentive train have these values.";

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
        let mut folder = self.speaking(decoders.open(&self.model.folder()?)?)?;
        folder.options = self.options(folder.options, n_best, scores);
        if self.verbose {
            let computed = decoders.description(folder.int8);
            let search = words::search(&folder.options);
            // The translation is complete even if stderr is closed.
            let _ = writeln!(
                stderr(),
                "attentive: model {}: {computed}; {search}",
                self.model.written().display()
            );
        }
        Ok(folder)
    }

    /// A model that reads and writes the languages that are asked for, if its tokens say which these are.
    fn speaking(&self, folder: ModelFolder) -> Result<ModelFolder, Error> {
        let unknown =
            |option| move |error: attentive_tasks::Error| Error::Flag { option, problem: error.to_string() };
        let folder = folder.speaking(self.from.as_deref(), None).map_err(unknown("from"))?;
        if folder.codec.spoken().is_empty() {
            return Ok(folder);
        }
        let folder = folder.speaking(None, self.to.as_deref()).map_err(unknown("to"))?;
        match folder.options.forced_bos {
            Some(_) => Ok(folder),
            None => Err(unknown("to")(folder.codec.spoken().none_wanted())),
        }
    }

    /// The languages of a model, with the one that is asked for.
    pub(crate) fn languages(&self, tokenizer: &Tokenizer) -> Result<TargetLanguages, Error> {
        let languages = TargetLanguages::of(tokenizer);
        let is_spoken = || !SpokenLanguages::of(tokenizer).is_empty();
        let Some(code) = self.to.as_ref().filter(|_| !is_spoken()) else { return Ok(languages) };
        let unknown =
            |error: attentive_tasks::Error| Error::Flag { option: "to", problem: error.to_string() };
        languages.with_target(code).map_err(unknown)
    }

    /// What the model asks for, changed by what was asked for here.
    fn options(&self, model: Options, n_best: Option<usize>, scores: bool) -> Options {
        let options = self.search.change(model, n_best);
        Options {
            batch: self.batch * self.compute.threads(),
            scores,
            min_length: self.min_length.unwrap_or(options.min_length),
            max_length: self.max_length.map_or(options.max_length, MaxLength::Tokens),
            ..options
        }
    }
}
