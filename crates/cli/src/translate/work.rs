//! The loop of translating: lines in, translations out, in order.

use super::ranks::Told;
use super::{Translate, is_on_terminal};
use crate::error::Error;
use crate::lines::{Line, Lines, Next};
use crate::words;
use attentive_generate::pharaoh;
use attentive_tasks::{TargetLanguages, Translated, Translation, Translator};
use attentive_text::tokenizer::Side;
use indicatif::ProgressBar;
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{self, Write, stderr};
use std::time::Instant;

/// Where lines come from.
pub(super) trait Source {
    /// The next line; waits for it if `patient`.
    fn next(&mut self, patient: bool) -> Result<Next, Error>;
    /// Fails after Ctrl-C.
    fn check(&self) -> Result<(), Error>;
    /// What is wrong with the line that was handed out last.
    fn problem(&self, problem: String) -> Error;
}

impl Source for Lines {
    fn next(&mut self, patient: bool) -> Result<Next, Error> {
        Lines::next(self, patient)
    }

    fn check(&self) -> Result<(), Error> {
        Lines::check(self)
    }

    fn problem(&self, problem: String) -> Error {
        Lines::problem(self, problem)
    }
}

/// Where translations go.
pub(super) trait Sink: Write {
    /// All was written that belongs to a line.
    fn end_line(&mut self) -> Result<(), Error>;
}

/// A sink that does not care what belongs to which line.
pub(super) struct Plain<'a>(pub &'a mut dyn Write);

impl Write for Plain<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for Plain<'_> {
    fn end_line(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A run of the command.
pub(super) struct Work<'a, S, W> {
    translate: &'a Translate,
    translator: Translator,
    languages: TargetLanguages,
    lines: S,
    output: W,
    /// Whether a person reads the output: the next prompt is to begin a line of its own.
    is_on_terminal: bool,
    progress: ProgressBar,
    /// The lines whose translations have not been written.
    pending: VecDeque<Line>,
    /// How many have been.
    written: usize,
    told: Told,
}

impl<'a, S: Source, W: Sink> Work<'a, S, W> {
    pub(super) fn new(
        translate: &'a Translate,
        translator: Translator,
        lines: S,
        output: W,
        progress: ProgressBar,
    ) -> Result<Self, Error> {
        let languages = translate.decoding.languages(translator.tokenizer())?;
        let is_on_terminal = is_on_terminal(translate);
        let (pending, told) = (VecDeque::new(), Told::default());
        Ok(Work {
            translate,
            translator,
            languages,
            lines,
            output,
            is_on_terminal,
            progress,
            pending,
            written: 0,
            told,
        })
    }

    /// Translates all lines. Returns the messages for the end.
    pub(super) fn run(mut self) -> Result<Told, Error> {
        let begin = Instant::now();
        let mut tokens = 0;
        let mut end = Ok(false);
        loop {
            if let Ok(false) = end {
                end = self.fill();
            }
            if let Err(Error::Interrupted) = end {
                return Err(Error::Interrupted);
            }
            if self.translator.is_empty() {
                // What came before a line that could not be read has been answered.
                self.progress.finish_and_clear();
                if end.is_err() {
                    self.told.warn();
                }
                return end.map(|_| self.told);
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
            self.told.needless += 1;
        }
        let text = self.languages.prepare(&line.text).map_err(|error| match error {
            missing @ attentive_tasks::Error::NoLanguage { .. } => missing.into(),
            other => self.lines.problem(other.to_string()),
        })?;
        match self.translate.alternatives {
            Some(count) => self.write_alternatives(&line, &text, count),
            None => {
                self.translator.push(&text).map_err(|error| self.lines.problem(error.to_string()))?;
                self.pending.push_back(line);
                Ok(())
            }
        }
    }

    fn write(&mut self, translation: &Translation) -> Result<(), Error> {
        let line = self.pending.pop_front().expect("a line for each translation");
        self.progress.inc(line.bytes);
        self.written += 1;
        self.told.lost.count(translation.best.first());
        if line.is_cut {
            self.warn(&line, "the line is longer than 1 MiB: the rest was not translated");
        }
        self.write_best(&line, &translation.best)?;
        self.output.end_line()
    }

    fn write_alternatives(&mut self, line: &Line, text: &str, count: usize) -> Result<(), Error> {
        let found = if text.trim().is_empty() {
            vec![Translated::default()]
        } else {
            let found = self.translator.alternatives(text, count);
            found.map_err(|error| self.lines.problem(error.to_string()))?
        };
        self.progress.inc(line.bytes);
        self.written += 1;
        self.told.lost.count(found.first());
        self.write_best(line, &found)?;
        self.output.end_line()?;
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
                line: line.number,
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
                write!(self.output, "{} ||| {text} ||| {:.4}", line.number, found.score)?;
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

    /// Says something about the line that is being written.
    fn warn(&self, line: &Line, problem: &str) {
        let text = format!("attentive: line {}: {problem}", line.number);
        // The translation is complete even if stderr is closed.
        self.progress.suspend(|| drop(writeln!(stderr(), "{text}")));
    }
}

impl Told {
    /// Says what concerns many lines once.
    pub(super) fn warn(&self) {
        self.lost.warn();
        if self.needless > 0 {
            let lines = words::count(self.needless, "line");
            // The translation is complete even if stderr is closed.
            let _ = writeln!(
                stderr(),
                "attentive: {lines} began with a language token such as `>>de<<`, but the model has only one target language: \
                 remove the token"
            );
        }
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
