//! `attentive translate`: line by line or as a document, from stdin to stdout or from file to file.

use crate::decoding::{Decoding, SEARCH_RULE};
use crate::error::Error;
use crate::html::{self, Format};
use crate::lines::{Line, Lines, Next};
use crate::lost::Lost;
use crate::options::between;
use crate::split::Split;
use crate::{dashes, output, words};
use attentive_generate::pharaoh;
use attentive_tasks::{TargetLanguages, Translated, Translation, Translator};
use attentive_text::tokenizer::Side;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor, IsTerminal, Seek, Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{SEARCH_RULE}"))]
pub(crate) struct Translate {
    #[command(flatten)]
    decoding: Decoding,
    /// Text to translate, one line per argument [default: the lines of --input or stdin]
    #[arg(value_name = "TEXT", conflicts_with = "input", value_parser = dashes::text)]
    text: Vec<String>,
    /// Translate the lines of FILE [default: stdin]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Write the translations to FILE (it appears when it is complete) [default: stdout]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the input [default: text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Unit to translate [default: auto; lines with --prefix or --alternatives]
    #[arg(long, value_name = "UNIT")]
    split: Option<Split>,
    /// Write the N best translations of each line as `line ||| translation ||| score` (the first line is 1)
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>)]
    n_best: Option<usize>,
    /// Begin every translation with TEXT
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Write N translations, one for each of the N most probable tokens after --prefix, best first
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>, conflicts_with_all = ["n_best", "alignments"])]
    alternatives: Option<usize>,
    /// Add word alignments (source-target, the first word is 0): `translation ||| 0-0 1-2`
    #[arg(long)]
    alignments: bool,
    /// Write one JSON object per line, with scores and tokens
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive translate --model opus-mt-en-de < text.en > text.de
  attentive translate --model opus-mt-en-de --input text.en --output text.de --beam 1
  attentive translate --model opus-mt-en-de \"A dog runs.\" --n-best 4
  attentive translate --model opus-mt-en-de \"A dog runs.\" --prefix \"Der Hund\" --alternatives 3
  attentive translate --model opus-mt-en-de --alignments --json < text.en
  attentive translate --model opus-mt-en-de --format html --input page.html --output page.de.html

Empty lines stay empty. A line with several sentences is translated sentence by sentence, and the \
white space between them is kept. A model that attentive trained translates whole lines if at least \
5 % of its training lines had several sentences. --split overrides this. Files must be UTF-8. A last line without a line \
break stays without one, except on a terminal. A text may begin with a dash and a space; one that begins with a dash and \
no space must follow `--`.

With --format html the input is one document of at most 16 MiB. Each sentence is translated as a \
whole, and inline tags are placed around the translations of their words. All other markup is kept. \
Not translated are script, style, code, kbd, samp, var, pre, textarea, svg, math, and elements with \
translate=\"no\" or the class notranslate. A <br> ends a sentence unless the next text begins with a \
lower-case letter.";

pub(crate) fn run(translate: &Translate) -> Result<(), Error> {
    output::must_differ(["--input", "--output"], [translate.input.as_deref(), translate.output.as_deref()])?;
    match translate.format.unwrap_or(Format::Text) {
        Format::Text => translate_lines(translate),
        Format::Html => translate_document(translate),
    }
}

fn translate_document(translate: &Translate) -> Result<(), Error> {
    translate.check_for_document()?;
    let html = translate.document()?;
    let translator = translate.decoding.translator(None, false)?.with_split(translate.split().into());
    let languages = translate.decoding.languages(translator.tokenizer())?;
    let html = html::translate(&html, translator, &languages)?;
    match &translate.output {
        None => output::write(&html),
        Some(path) => output::to_file(path, |file| Ok(file.write_all(html.as_bytes())?)),
    }
}

fn translate_lines(translate: &Translate) -> Result<(), Error> {
    if let (None, Some(path)) = (translate.format, &translate.input)
        && html::is_named_so(path)
    {
        let name = path.display();
        // Where nobody reads this, the text is translated all the same.
        let _ = writeln!(
            stderr(),
            "attentive: {name} is translated as plain text, tags included; --format html keeps the tags"
        );
    }
    let mut translator = translate.decoding.translator(translate.n_best, translate.shows_scores())?;
    translator = translator.with_split(translate.split().into());
    if let Some(prefix) = &translate.prefix {
        translator = translator.with_prefix(prefix)?;
    }
    if translate.alignments {
        translator = translator.with_alignments();
    }
    match &translate.output {
        None => translate_to(translate, translator, stdout().lock()),
        Some(path) => output::to_file(path, |file| translate_to(translate, translator, BufWriter::new(file))),
    }
}

/// Translates all there is, and writes it as soon as it can be written.
fn translate_to(translate: &Translate, translator: Translator, output: impl Write) -> Result<(), Error> {
    let languages = translate.decoding.languages(translator.tokenizer())?;
    let (lines, size) = translate.lines()?;
    let progress = progress(translate, size);
    let pending = VecDeque::new();
    let work = Work {
        translate,
        translator,
        languages,
        lines,
        output,
        is_on_terminal: is_on_terminal(translate),
        progress,
        pending,
        written: 0,
        needless: 0,
        lost: Lost::default(),
    };
    work.run()
}

impl Translate {
    /// Whether there may be several translations of a line, each with its score.
    fn lists(&self) -> bool {
        self.n_best.is_some() || self.alternatives.is_some()
    }

    /// A prefix, and ways to go on behind it, are of a line as a whole.
    fn split(&self) -> Split {
        let is_whole = self.prefix.is_some() || self.alternatives.is_some();
        self.split.unwrap_or(if is_whole { Split::Lines } else { Split::Auto })
    }

    fn shows_scores(&self) -> bool {
        self.json || self.lists()
    }

    /// Refuses what makes no sense with a document.
    fn check_for_document(&self) -> Result<(), Error> {
        let refused = [
            ("n-best", self.n_best.is_some()),
            ("prefix", self.prefix.is_some()),
            ("alternatives", self.alternatives.is_some()),
            ("alignments", self.alignments),
            ("json", self.json),
        ];
        match refused.iter().find(|(_, is_asked)| *is_asked) {
            Some((flag, _)) => {
                let problem =
                    format!("html cannot be used together with --{flag}: the result is one document");
                Err(Error::Flag { option: "format", problem })
            }
            None => Ok(()),
        }
    }

    /// The document that is to be translated.
    fn document(&self) -> Result<String, Error> {
        if !self.text.is_empty() {
            let text: String = self.text.iter().flat_map(|text| [text, "\n"]).collect();
            return html::read("the arguments", text.as_bytes());
        }
        let Some(path) = &self.input else { return html::read("standard input", stdin()) };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Input { input: name.clone(), source })?;
        html::read(&name, file)
    }

    /// What is to be translated, and how many bytes that is, if it is known.
    fn lines(&self) -> Result<(Lines, Option<u64>), Error> {
        if !self.text.is_empty() {
            // A line each, the last one too if it is empty.
            let text: String = self.text.iter().flat_map(|text| [text, "\n"]).collect();
            let size = text.len() as u64;
            return Ok((Lines::read("the arguments".to_owned(), Cursor::new(text)), Some(size)));
        }
        let Some(path) = &self.input else {
            if stdin().is_terminal() {
                // Where nobody reads this, lines are translated all the same.
                let _ = writeln!(stderr(), "{PROMPT}");
            }
            return Ok((Lines::read("standard input".to_owned(), BufReader::new(stdin())), stdin_size()));
        };
        let name = path.display().to_string();
        let failed = |source| Error::Input { input: name.clone(), source };
        let file = File::open(path).map_err(failed)?;
        let size = file.try_clone().ok().and_then(rest_of);
        Ok((Lines::read(name, BufReader::new(file)), size))
    }
}

/// What people who type are told.
const PROMPT: &str = "attentive: type a line and press Enter to translate it; press Ctrl-D to quit";

/// How much is to be read from stdin, in bytes, if it is a file: `< text.en`.
#[cfg(unix)]
fn stdin_size() -> Option<u64> {
    use std::os::fd::AsFd;
    rest_of(File::from(stdin().as_fd().try_clone_to_owned().ok()?))
}

#[cfg(not(unix))]
fn stdin_size() -> Option<u64> {
    None
}

/// The bytes of a plain file from where it is to be read on.
fn rest_of(mut file: File) -> Option<u64> {
    let size = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    Some(size.saturating_sub(file.stream_position().ok()?))
}

/// Whether translations are written to a terminal.
fn is_on_terminal(translate: &Translate) -> bool {
    translate.output.is_none() && stdout().is_terminal()
}

/// A bar for who watches, but not between the lines of what is written to the same terminal.
fn progress(translate: &Translate, size: Option<u64>) -> ProgressBar {
    if is_on_terminal(translate) {
        return ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
    }
    let template = if size.is_some() { "{bar:30} {percent} % {msg}" } else { "{spinner} {msg}" };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(size, ProgressDrawTarget::stderr()).with_style(style)
}

/// A run of the command.
struct Work<'a, W> {
    translate: &'a Translate,
    translator: Translator,
    languages: TargetLanguages,
    lines: Lines,
    output: W,
    /// Whether a person reads the output: the next prompt is to begin a line of its own.
    is_on_terminal: bool,
    progress: ProgressBar,
    /// The lines whose translations have not been written.
    pending: VecDeque<Line>,
    /// How many have been.
    written: usize,
    /// How many lines began with a language token, although the model has none.
    needless: usize,
    lost: Lost,
}

impl<W: Write> Work<'_, W> {
    fn run(mut self) -> Result<(), Error> {
        let begin = Instant::now();
        let mut tokens = 0;
        let mut end = Ok(false);
        loop {
            if let Ok(false) = end {
                end = self.fill();
            }
            if matches!(end, Err(Error::Interrupted)) {
                return end.map(drop);
            }
            if self.translator.is_empty() {
                // What came before a line that could not be read has been answered.
                self.progress.finish_and_clear();
                self.warn_at_the_end();
                return end.map(drop);
            }
            self.lines.check()?;
            self.translator.step()?;
            while let Some(translation) = self.translator.pop()? {
                tokens += translation.best.first().map_or(0, |best| best.tokens.len());
                self.write(&translation)?;
            }
            self.output.flush()?;
            let rate = tokens as f64 / begin.elapsed().as_secs_f64();
            self.progress.set_message(format!("{} lines, {rate:.0} tokens/s", self.written));
        }
    }

    /// Takes lines as long as there are any and the translator has room; waits only where there is nothing else to do.
    /// Returns whether it was the last.
    fn fill(&mut self) -> Result<bool, Error> {
        while self.translator.has_room() {
            match self.lines.next(self.translator.is_empty())? {
                Next::Nothing => break,
                Next::End => {
                    self.translator.expect_no_more();
                    return Ok(true);
                }
                Next::Line(line) => self.take(line)?,
            }
        }
        Ok(false)
    }

    /// Begins to translate a line, with the token of its language.
    fn take(&mut self, line: Line) -> Result<(), Error> {
        if self.languages.needless(&line.text).is_some() {
            self.needless += 1;
        }
        let text = self.languages.prepare(&line.text).map_err(|error| match error {
            missing @ attentive_tasks::Error::NoLanguage { .. } => missing.into(),
            other => self.lines.problem(other),
        })?;
        match self.translate.alternatives {
            Some(count) => self.write_alternatives(&line, &text, count),
            None => {
                self.translator.push(&text).map_err(|error| self.lines.problem(error))?;
                self.pending.push_back(line);
                Ok(())
            }
        }
    }

    fn write(&mut self, translation: &Translation) -> Result<(), Error> {
        let line = self.pending.pop_front().expect("a line for each translation");
        self.progress.inc(line.bytes);
        self.written += 1;
        self.lost.count(translation.best.first());
        if line.is_cut {
            self.warn("the line is longer than 1 MiB: the rest was not translated");
        }
        self.write_best(&line, &translation.best)
    }

    fn write_alternatives(&mut self, line: &Line, text: &str, count: usize) -> Result<(), Error> {
        let found = if text.trim().is_empty() {
            vec![Translated::default()]
        } else {
            let found = self.translator.alternatives(text, count);
            found.map_err(|error| self.lines.problem(error))?
        };
        self.progress.inc(line.bytes);
        self.written += 1;
        self.lost.count(found.first());
        self.write_best(line, &found)?;
        Ok(self.output.flush()?)
    }

    fn write_best(&mut self, line: &Line, best: &[Translated]) -> Result<(), Error> {
        if self.translate.json {
            let tokenizer = self.translator.tokenizer();
            let piece = |&token: &u32| tokenizer.piece(token, Side::Target).unwrap_or_default();
            let hypothesis = |found: &Translated| Hypothesis {
                text: found.text.clone(),
                score: found.score,
                tokens: found.tokens.iter().map(piece).collect(),
                token_scores: found.token_scores.clone(),
                alignment: self.translate.alignments.then(|| pharaoh(&found.alignment)),
            };
            let report = Report {
                line: self.written,
                source: &line.text,
                translation: best.first().map_or("", |best| &best.text),
                hypotheses: best.iter().map(hypothesis).collect(),
            };
            serde_json::to_writer(&mut self.output, &report)?;
            return Ok(writeln!(self.output)?);
        }
        let has_fields = self.translate.lists() || self.translate.alignments;
        for found in best {
            // The white space around a line would be between fields.
            let text = if has_fields { found.text.trim() } else { &found.text };
            if self.translate.lists() {
                write!(self.output, "{} ||| {text} ||| {:.4}", self.written, found.score)?;
            } else {
                write!(self.output, "{text}")?;
            }
            if self.translate.alignments {
                write!(self.output, " ||| {}", pharaoh(&found.alignment))?;
            }
            if has_fields || line.has_end || self.is_on_terminal {
                writeln!(self.output)?;
            }
        }
        Ok(())
    }

    /// Says what concerns many lines once.
    fn warn_at_the_end(&self) {
        self.lost.warn();
        if self.needless > 0 {
            let lines = words::count(self.needless, "line");
            // Where nobody reads this, the translation is there all the same.
            let _ = writeln!(
                stderr(),
                "attentive: {lines} began with a language token such as `>>de<<`, but the model has only one target language: \
                 remove the token"
            );
        }
    }

    /// Says something about the line that is being written.
    fn warn(&self, problem: &str) {
        let text = format!("attentive: line {}: {problem}", self.written);
        // Where nobody reads this, the translation is there all the same.
        self.progress.suspend(|| drop(writeln!(stderr(), "{text}")));
    }
}

/// A line of JSON.
#[derive(Serialize)]
struct Report<'a> {
    line: usize,
    source: &'a str,
    translation: &'a str,
    hypotheses: Vec<Hypothesis>,
}

#[derive(Serialize)]
struct Hypothesis {
    text: String,
    score: f32,
    tokens: Vec<String>,
    token_scores: Vec<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_left_of_a_file_is_known_and_of_a_pipe_it_is_not() {
        let mut file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let size = file.metadata().unwrap().len();
        assert_eq!(rest_of(file.try_clone().unwrap()), Some(size));
        file.read_exact(&mut [0; 7]).unwrap();
        assert_eq!(rest_of(file), Some(size - 7));
        #[cfg(unix)]
        {
            let (reader, _writer) = std::io::pipe().unwrap();
            assert_eq!(rest_of(File::from(std::os::fd::OwnedFd::from(reader))), None);
        }
    }
}
