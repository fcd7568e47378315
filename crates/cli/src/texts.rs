//! How commands read texts with an encoder: the model, the input, and what is said of texts that are too long.

use crate::error::Error;
use crate::lines::{Lines, Next};
use crate::model::Model;
use crate::options::{Compute, between};
use crate::precision::DecodingPrecision;
use crate::words;
use attentive_tasks::{Encoder, PictureEncoder, Texts, TooLong};
use attentive_tensor::{Backend, Form};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{BufReader, IsTerminal, Write, stderr, stdin};
use std::path::PathBuf;
use std::sync::Arc;

/// A model and the texts for it.
#[derive(Args)]
pub(crate) struct Reading {
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in; with int8 products, activations are in bf16 on processors with AMX, else in f32
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: DecodingPrecision,
    /// Number of tokens to compute at once
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = between::<1, 1_000_000>)]
    batch_tokens: usize,
    /// What to do with texts that are longer than the model can read
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Long::Cut)]
    too_long: Long,
    /// Text to read, one per argument [default: the lines of --input or stdin]
    #[arg(value_name = "TEXT", conflicts_with = "input")]
    texts: Vec<String>,
    /// Read the lines of FILE [default: stdin]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Long {
    /// Cut them at the end, and say how many
    Cut,
    /// Refuse them
    Error,
}

/// The most texts that are read before they are computed: enough for full batches, few enough that a program that waits for an answer gets it
/// soon.
const READ_AT_ONCE: usize = 1024;

impl Reading {
    /// The folder of the model.
    pub(crate) fn folder(&self) -> Result<PathBuf, Error> {
        self.model.folder()
    }

    /// The backend, and the number format of weights.
    pub(crate) fn backend(&self) -> Result<(Arc<dyn Backend>, Form), Error> {
        self.compute.encoder(self.precision)
    }

    /// How many threads compute.
    pub(crate) fn threads(&self) -> usize {
        self.compute.threads()
    }

    /// Applies the flags to an encoder.
    pub(crate) fn change(&self, encoder: Encoder) -> Encoder {
        let too_long = match self.too_long {
            Long::Cut => TooLong::Cut,
            Long::Error => TooLong::Refuse,
        };
        encoder.with_too_long(too_long).with_batch_tokens(self.batch_tokens)
    }

    /// Applies the flags to an encoder of pictures.
    pub(crate) fn change_pictures(&self, encoder: PictureEncoder) -> PictureEncoder {
        encoder.with_batch_tokens(self.batch_tokens)
    }

    /// Calls `answer` with all texts in order, up to [`READ_AT_ONCE`] at a time, and prints at the end how many were cut.
    pub(crate) fn each(
        &self,
        mut answer: impl FnMut(&[String]) -> Result<Texts, Error>,
    ) -> Result<(), Error> {
        let (mut cut, mut begun) = (0, 0);
        let mut take = |texts: &[String]| -> Result<(), Error> {
            let read = answer(texts).map_err(|error| self.in_line(error, begun))?;
            begun += texts.len();
            cut += read.cut();
            Ok(())
        };
        if self.texts.is_empty() {
            self.each_of_lines(&mut take)?;
        } else {
            self.texts.chunks(READ_AT_ONCE).try_for_each(&mut take)?;
        }
        if cut > 0 {
            let texts = words::count(cut, "text");
            // The answers are complete even if stderr is closed.
            let _ = writeln!(
                stderr(),
                "attentive: {texts} cut: longer than the model can read (--too-long error refuses them)"
            );
        }
        Ok(())
    }

    /// Calls `take` with the lines of a file or of stdin: those that are available without waiting.
    fn each_of_lines(&self, take: &mut impl FnMut(&[String]) -> Result<(), Error>) -> Result<(), Error> {
        let mut lines = self.lines()?;
        let mut is_open = true;
        while is_open {
            let mut texts = Vec::new();
            while is_open && texts.len() < READ_AT_ONCE {
                match lines.next(texts.is_empty())? {
                    Next::Line(line) if line.is_cut => return Err(lines.problem("longer than 1 MiB")),
                    // Files of other systems have one more character at the end of a line.
                    Next::Line(line) => texts.push(line.text.trim_end_matches('\r').to_owned()),
                    Next::Nothing => break,
                    Next::End => is_open = false,
                }
            }
            if !texts.is_empty() {
                take(&texts)?;
            }
        }
        Ok(())
    }

    /// An error of a text, with its number among all of them.
    fn in_line(&self, error: Error, before: usize) -> Error {
        use attentive_tasks::Error::{LongQuestion, NoMask, NoTokens, TooLong};
        match error {
            Error::Tasks(TooLong { text, tokens, limit }) => {
                Error::Tasks(TooLong { text: text + before, tokens, limit })
            }
            Error::Tasks(NoTokens { text }) => Error::Tasks(NoTokens { text: text + before }),
            Error::Tasks(LongQuestion { text, tokens, limit }) => {
                Error::Tasks(LongQuestion { text: text + before, tokens, limit })
            }
            Error::Tasks(NoMask { text, mask }) => Error::Tasks(NoMask { text: text + before, mask }),
            other => other,
        }
    }

    fn lines(&self) -> Result<Lines, Error> {
        let Some(path) = &self.input else {
            if stdin().is_terminal() {
                let _ = writeln!(stderr(), "attentive: type a text and press Enter; Ctrl-D ends");
            }
            return Ok(Lines::read("standard input".to_owned(), BufReader::new(stdin())));
        };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Input { input: name.clone(), source })?;
        Ok(Lines::read(name, BufReader::new(file)))
    }
}
