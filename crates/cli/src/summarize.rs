//! `attentive summarize`: long texts to short ones.

use crate::error::Error;
use crate::html;
use crate::model::Model;
use crate::options::{Compute, between};
use crate::precision::DecodingPrecision;
use crate::search::{SEARCH, Search};
use crate::{dashes, output, words};
use attentive_generate::{MaxLength, Options};
use attentive_tasks::{Summarizer, Summary, SummaryModel};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Summarize {
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    /// Text to summarize; several arguments are several texts [default: all of --input or stdin]
    #[arg(value_name = "TEXT", conflicts_with = "input", value_parser = dashes::text)]
    texts: Vec<String>,
    /// Summarize FILE as one text; may be given several times [default: stdin]
    #[arg(long, value_name = "FILE")]
    input: Vec<PathBuf>,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: DecodingPrecision,
    /// Print the model, precision, instruction set, threads and search options to stderr
    #[arg(long, short)]
    verbose: bool,
    /// Minimum length of a summary in tokens [default: the model's, else 0]
    #[arg(long, value_name = "N", value_parser = between::<0, 1_000_000>, help_heading = SEARCH)]
    min_length: Option<usize>,
    /// Maximum length of a summary in tokens [default: the model's, else see below]
    #[arg(long, value_name = "N", value_parser = between::<1, 1_000_000>, help_heading = SEARCH)]
    max_length: Option<usize>,
    #[command(flatten)]
    search: Search,
    /// Text to put before each text [default: the model's, else `summarize: ` for a T5]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prefix: Option<String>,
    /// Write one JSON object per text, with the number of parts and of tokens
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive summarize --model bart-large-cnn --input article.txt
  attentive summarize --model t5-base < article.txt
  attentive summarize --model bart-large-cnn --input a.txt --input b.txt --max-length 60 --json

A text that is longer than the model reads is cut at the ends of sentences and summarized in parts, whose summaries are \
joined; that is told on stderr. Lengths are those of a part. Each text has a line.

Search options: a flag overrides what the model's config.json says of summaries (task_specific_params), and that \
overrides generation_config.json. Without any, the beam is 4, and a summary has at most 50 tokens more than its text.";

pub(crate) fn run(summarize: &Summarize) -> Result<(), Error> {
    let mut summarizer = summarize.summarizer()?;
    let mut tell = |text: &str| {
        let summary = summarizer.summarize(text)?;
        if summary.parts > 1 {
            let (parts, most) = (summary.parts, summarizer.most());
            // The summary is complete even if stderr is closed.
            let _ = writeln!(
                stderr(),
                "attentive: the text is longer than the {most} tokens that the model reads: it was summarized in {parts} parts"
            );
        }
        summarize.write(&summary)
    };
    if !summarize.texts.is_empty() {
        return summarize.texts.iter().try_for_each(|text| tell(text));
    }
    for path in &summarize.input {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Input { input: name.clone(), source })?;
        tell(&html::read(&name, file)?)?;
    }
    if !summarize.input.is_empty() {
        return Ok(());
    }
    if stdin().is_terminal() {
        let _ = writeln!(stderr(), "attentive: type a text; Ctrl-D ends it");
    }
    tell(&html::read("standard input", stdin())?)
}

impl Summarize {
    fn summarizer(&self) -> Result<Summarizer, Error> {
        let decoders = self.compute.decoder(self.precision)?;
        let int8 = decoders.int8.unwrap_or(false);
        let mut model = SummaryModel::open_on(&decoders.backends, int8, &self.model.folder()?)?;
        let options = self.search.change(model.options, None);
        model.options = Options {
            scores: false,
            min_length: self.min_length.unwrap_or(options.min_length),
            max_length: self.max_length.map_or(options.max_length, MaxLength::Tokens),
            ..options
        };
        if let Some(prefix) = &self.prefix {
            model.codec.prefix.clone_from(prefix);
        }
        if self.verbose {
            let (computed, search) = (decoders.description(int8), words::search(&model.options));
            let _ = writeln!(
                stderr(),
                "attentive: model {}: {computed}; {search}",
                self.model.written().display()
            );
        }
        Ok(Summarizer::new(model)?)
    }

    fn write(&self, summary: &Summary) -> Result<(), Error> {
        let Summary { text, parts, tokens: [read, written] } = summary;
        if self.json {
            return output::json(&Told {
                summary: text,
                parts: *parts,
                tokens_read: *read,
                tokens_written: *written,
            });
        }
        output::write(&format!("{}\n", text.replace(['\n', '\r'], " ")))
    }
}

/// A line of `--json`.
#[derive(Serialize)]
struct Told<'a> {
    summary: &'a str,
    parts: usize,
    tokens_read: usize,
    tokens_written: usize,
}
