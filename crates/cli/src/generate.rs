//! `attentive generate`: prompts and what a model writes behind them, or for them.

use crate::error::Error;
use crate::lines::{Lines, Next};
use crate::model::Model;
use crate::options::{Compute, between};
use crate::precision::DecodingPrecision;
use crate::search::{SEARCH, Search};
use crate::{dashes, output, words};
use attentive_generate::Options;
use attentive_tasks::{Continuation, Finish, LanguageModel, Writer};
use clap::Args;
use serde::Serialize;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Cursor, IsTerminal, Write, stderr, stdin, stdout};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Generate {
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    /// Text to continue or to answer, one prompt per argument [default: the lines of --input or stdin]
    #[arg(value_name = "PROMPT", conflicts_with = "input", value_parser = dashes::text)]
    prompts: Vec<String>,
    /// Continue the lines of FILE [default: stdin]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: DecodingPrecision,
    /// Print the model, precision, instruction set, threads and search options to stderr
    #[arg(long, short)]
    verbose: bool,
    /// Number of prompts that are continued at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = between::<1, 4096>)]
    batch: usize,
    /// Maximum number of tokens to write for a prompt [default: the model's, else see below]
    #[arg(long, value_name = "N", value_parser = between::<1, 1_000_000>, help_heading = SEARCH)]
    max_new_tokens: Option<usize>,
    /// Minimum number of tokens to write for a prompt [default: the model's, else 0]
    #[arg(long, value_name = "N", value_parser = between::<0, 1_000_000>, help_heading = SEARCH)]
    min_new_tokens: Option<usize>,
    /// Continue when the model has no positions left: keep the later half of them, and read it again as a text of its own
    #[arg(long, help_heading = SEARCH)]
    slide: bool,
    /// End a text before TEXT; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = SEARCH)]
    stop: Vec<String>,
    #[command(flatten)]
    search: Search,
    /// Write the N best continuations of each prompt, or N draws
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>)]
    n_best: Option<usize>,
    /// Write one JSON object per prompt, with scores, tokens and why each text ends
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive generate --model gpt2 \"Once upon a time\"
  attentive generate --model gpt2 \"Once upon a time\" --sample --top-p 0.9 --seed 7
  attentive generate --model gpt2 --input prompts.txt --beam 4 --json
  attentive generate --model flan-t5-base \"translate English to German: A dog runs.\"
  attentive generate --model gpt2 \"Q: Who wrote Faust? A:\" --stop Q: --max-new-tokens 30
  attentive generate --model gpt2 \"Once upon a time\" --sample --max-new-tokens 5000 --slide

A model with an encoder and a decoder, such as T5, writes an answer to its prompt; any other continues it. The \
continuation is written without its prompt, token by token if there is one prompt. Several texts are separated by a \
line `---`; with --json, each prompt has a line. An empty prompt begins with the model's first token (bos_token_id). A \
text ends with the model's end token, at a --stop text, after --max-new-tokens, or where the model has no positions left, \
which is told on stderr. A prompt that fills all positions is refused. With --slide neither ends: when all positions are full, the \
model forgets the earlier half of them, reads the later half again from position 0 on, and writes on.

Search options: a flag overrides generation_config.json in the model folder (config.json, if there is no such file). \
Without either, search is greedy (a beam of 1) and writes at most 128 tokens; with an encoder, the beam is 4, and an \
answer has at most 50 tokens more than its prompt.";

/// How many prompts are read ahead, in batches.
const QUEUED_BATCHES: usize = 4;

pub(crate) fn run(generate: &Generate) -> Result<(), Error> {
    let mut writer = generate.writer()?;
    let mut lines = generate.lines()?;
    let (mut prompts, mut is_open) = (VecDeque::new(), true);
    // Whoever writes to stdin may wait for an answer; all else is there.
    let is_slow = generate.prompts.is_empty() && generate.input.is_none();
    let mut arguments = generate.prompts.iter().enumerate();
    let mut out = Out { separate: false };
    while is_open || arguments.len() > 0 || !writer.is_empty() {
        let room = QUEUED_BATCHES * writer.options().batch;
        while writer.len() < room
            && let Some((number, prompt)) = arguments.next()
        {
            // An argument may have several lines.
            let line = number + 1;
            let refused = |error: attentive_tasks::Error| Error::Line {
                input: "the arguments".to_owned(),
                line,
                problem: error.to_string(),
            };
            writer.push(prompt).map_err(refused)?;
            prompts.push_back(prompt.clone());
        }
        while is_open && writer.len() < room {
            match lines.next(writer.is_empty() || !is_slow)? {
                Next::Line(line) if line.is_cut => return Err(lines.problem("longer than 1 MiB")),
                Next::Line(line) => {
                    // Files of other systems have one more character at the end of a line.
                    let prompt = line.text.trim_end_matches('\r').to_owned();
                    writer.push(&prompt).map_err(|error| lines.problem(error))?;
                    prompts.push_back(prompt);
                }
                Next::Nothing => break,
                Next::End => is_open = false,
            }
        }
        lines.check()?;
        if writer.len() == 1 && !generate.json && writer.options().n_best == 1 {
            out.stream(&mut writer)?;
            prompts.clear();
            continue;
        }
        if writer.is_empty() {
            continue;
        }
        writer.step();
        while let Some(found) = writer.pop()? {
            let prompt = prompts.pop_front().unwrap_or_default();
            if generate.json {
                out.json(&prompt, &found)?;
            } else {
                found.iter().try_for_each(|found| out.text(&found.text, found.finish))?;
            }
        }
    }
    Ok(())
}

impl Generate {
    /// Reads the model and makes a writer of it.
    fn writer(&self) -> Result<Writer, Error> {
        let decoders = self.compute.decoder(self.precision)?;
        let int8 = decoders.int8.unwrap_or(false);
        let mut folder = LanguageModel::open_on(&decoders.backends, int8, &self.model.folder()?)?;
        if self.slide && !folder.slide() {
            let problem =
                "only a model that continues its prompt can slide, such as GPT-2: remove the option";
            return Err(Error::Flag { option: "slide", problem: problem.to_owned() });
        }
        let new_tokens = self.max_new_tokens.map(|tokens| folder.length_of_new(tokens));
        let options = self.search.change(folder.options, self.n_best);
        folder.options = Options {
            batch: self.batch,
            scores: self.json,
            min_length: self.min_new_tokens.unwrap_or(options.min_length),
            max_length: new_tokens.unwrap_or(options.max_length),
            ..options
        };
        if self.verbose {
            let (computed, search) = (decoders.description(int8), words::search(&folder.options));
            // The text is complete even if stderr is closed.
            let _ = writeln!(
                stderr(),
                "attentive: model {}: {computed}; {search}",
                self.model.written().display()
            );
        }
        Ok(Writer::new(folder, &self.stop)?)
    }

    fn lines(&self) -> Result<Lines, Error> {
        if !self.prompts.is_empty() {
            return Ok(Lines::read("the arguments".to_owned(), Cursor::new("")));
        }
        let Some(path) = &self.input else {
            if stdin().is_terminal() {
                let _ = writeln!(stderr(), "attentive: type a prompt and press Enter; Ctrl-D ends");
            }
            return Ok(Lines::read("standard input".to_owned(), BufReader::new(stdin())));
        };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Input { input: name.clone(), source })?;
        Ok(Lines::read(name, BufReader::new(file)))
    }
}

/// Where texts go.
struct Out {
    /// Whether a text was written before.
    separate: bool,
}

impl Out {
    /// Continues the only prompt, and writes its text as it comes.
    fn stream(&mut self, writer: &mut Writer) -> Result<(), Error> {
        self.begin()?;
        let (mut written, mut result) = (0, Ok(()));
        let mut write = |text: &str| {
            if let Some(new) = text.get(written..).filter(|new| !new.is_empty()) {
                let mut out = stdout().lock();
                let done = out.write_all(new.as_bytes()).and_then(|()| out.flush());
                result = std::mem::replace(&mut result, Ok(())).and(done);
                written = text.len();
            }
        };
        let found = loop {
            if let Some(found) = writer.pop()? {
                break found;
            }
            writer.step_with(&mut write)?;
        };
        found.iter().for_each(|found| write(&found.text));
        result?;
        output::write("\n")?;
        found.iter().for_each(|found| warn(found.finish));
        Ok(())
    }

    /// What stands before a text.
    fn begin(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.separate, true) { output::write("---\n") } else { Ok(()) }
    }

    fn text(&mut self, text: &str, finish: Finish) -> Result<(), Error> {
        self.begin()?;
        output::write(&format!("{text}\n"))?;
        warn(finish);
        Ok(())
    }

    fn json(&mut self, prompt: &str, found: &[Continuation]) -> Result<(), Error> {
        let continuations = found.iter().map(Told::of).collect();
        output::json(&Line { prompt, continuations })?;
        found.iter().for_each(|found| warn(found.finish));
        Ok(())
    }
}

/// Says that a text ends where the model does.
fn warn(finish: Finish) {
    if finish == Finish::Context {
        // The text is complete even if stderr is closed.
        let _ = writeln!(stderr(), "attentive: the text ends because the model has no positions left");
    }
}

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    prompt: &'a str,
    continuations: Vec<Told<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    text: &'a str,
    score: f32,
    finish: &'static str,
    tokens: &'a [u32],
    token_scores: &'a [f32],
}

impl Told<'_> {
    fn of(found: &Continuation) -> Told<'_> {
        Told {
            text: &found.text,
            score: found.score,
            finish: match found.finish {
                Finish::End => "end",
                Finish::Stop => "stop",
                Finish::Length => "length",
                Finish::Context => "context",
            },
            tokens: &found.tokens,
            token_scores: &found.token_scores,
        }
    }
}
