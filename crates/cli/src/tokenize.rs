//! `attentive tokenize`: text to tokens and back, line by line, and training of tokenizers.

use crate::error::Error;
use crate::lines::not_utf8;
use crate::model;
use crate::options::between;
use attentive_hub::Need;
use attentive_text::tokenizer::train::{Kind, Trainer};
use attentive_text::tokenizer::{Side, Tokenizer};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{BufRead, BufReader, StdoutLock, Write, stderr, stdin, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Command {
    /// Tokenizer: a folder, a file (tokenizer.json, .model, .spm, vocab.txt), or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|FILE|NAME", required_unless_present = "train")]
    model: Option<PathBuf>,
    /// Write token ids instead of pieces; with --decode, read token ids
    #[arg(long)]
    ids: bool,
    /// Read tokens and write text, with the vocabulary of the target if it has its own
    #[arg(long)]
    decode: bool,
    /// Vocabulary to encode with, if source and target have their own
    #[arg(long, value_name = "SIDE", default_value = "source", conflicts_with = "decode")]
    side: SideName,
    /// Train a tokenizer on FILES
    #[arg(long, requires_all = ["files", "out"])]
    #[arg(conflicts_with_all = ["model", "ids", "decode", "side"])]
    train: bool,
    /// Vocabulary size with special tokens, from 8 to 1,000,000; with --target, of each side
    #[arg(long, value_name = "N", value_parser = between::<8, 1_000_000>, requires = "train")]
    vocab_size: Option<usize>,
    /// Kind of tokenizer to train
    #[arg(long, value_name = "KIND", default_value = "bpe", requires = "train")]
    kind: KindName,
    /// Share of the characters of the text that the vocabulary covers; 0.9995 is usual for Chinese and Japanese
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share, requires = "train")]
    character_coverage: f64,
    /// Files to read instead of stdin; with --train the training text, one sentence per line, of both sides or, with
    /// --target, of the source
    #[arg(value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Training text of the target, which gets its own vocabulary
    #[arg(long, value_name = "FILES", num_args = 1.., requires = "train")]
    target: Vec<PathBuf>,
    /// Folder to write the trained tokenizer to
    #[arg(long, value_name = "DIR", requires = "train")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SideName {
    Source,
    Target,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindName {
    /// Byte pair encoding: merges the most frequent pairs
    Bpe,
    /// Unigram language model: keeps the pieces that explain the text best
    Unigram,
    /// WordPiece, as in BERT
    Wordpiece,
    /// Byte pair encoding of bytes, as in GPT-2: no text is unknown
    ByteBpe,
    /// A token for each character; --vocab-size is not needed
    Characters,
}

const EXAMPLES: &str = "\
Examples:
  attentive tokenize --model opus-mt-en-de text.en                 write the pieces of each line
  attentive tokenize --model source.spm --ids < text.en            write token ids
  attentive tokenize --model source.spm --ids --decode < ids       join them into text
  attentive tokenize --train --vocab-size 8000 train.en train.de --out tokenizer
                                                                   one vocabulary for both sides
  attentive tokenize --train --vocab-size 8000 train.en --target train.de --out tokenizer
                                                                   a vocabulary for each side

bpe and unigram write a Marian folder (source.spm, target.spm, vocab.json), with tokenizer.json if
both sides share a vocabulary. wordpiece writes tokenizer.json and vocab.txt, byte-bpe tokenizer.json,
vocab.json and merges.txt, characters tokenizer.json; with --target, into the folders source and target.";

pub(crate) fn run(command: &Command) -> Result<(), Error> {
    match (&command.model, &command.out) {
        (Some(model), _) => read_files(command, &Tokenizer::load(model::folder(model, Need::Tokenizer)?)?),
        (None, Some(out)) => train_and_save(command, out),
        (None, None) => unreachable!("clap asks for one of the two"),
    }
}

fn train_and_save(command: &Command, out: &Path) -> Result<(), Error> {
    let kind = match command.kind {
        KindName::Bpe => Kind::Bpe,
        KindName::Unigram => Kind::Unigram,
        KindName::Wordpiece => Kind::WordPiece,
        KindName::ByteBpe => Kind::ByteBpe,
        KindName::Characters => Kind::Characters,
    };
    let size = vocabulary_size(command, kind)?;
    let trainer = || Trainer::new(kind, size).character_coverage(command.character_coverage);
    if !kind.is_of_translators() && !command.target.is_empty() {
        // A folder has room for one such vocabulary: each side gets a folder of its own.
        for (side, files) in [("source", &command.files), ("target", &command.target)] {
            let mut trainer = trainer();
            for file in files {
                trainer.file(file, Side::Source)?;
            }
            let tokenizer = trainer.joint()?;
            tokenizer.save(out.join(side))?;
            report(&tokenizer, size, &out.join(side));
        }
        return Ok(());
    }
    let mut trainer = trainer();
    for file in &command.files {
        trainer.file(file, Side::Source)?;
    }
    for file in &command.target {
        trainer.file(file, Side::Target)?;
    }
    let tokenizer = if command.target.is_empty() { trainer.joint()? } else { trainer.separate()? };
    tokenizer.save(out)?;
    report(&tokenizer, size, out);
    Ok(())
}

/// How many tokens are learned. A tokenizer of characters does not need the number.
fn vocabulary_size(command: &Command, kind: Kind) -> Result<usize, Error> {
    let problem = match (command.vocab_size, kind) {
        (Some(_), Kind::Characters) => "each character of the text has a token: remove the option",
        (None, Kind::Characters) => return Ok(0),
        (None, _) => "a number of tokens is needed to train this kind of tokenizer",
        (Some(size), _) => return Ok(size),
    };
    Err(Error::Flag { option: "vocab-size", problem: problem.to_owned() })
}

/// Says what there is now.
fn report(tokenizer: &Tokenizer, wanted: usize, folder: &Path) {
    let found = tokenizer.vocabulary_size(Side::Source);
    let fewer = if found < wanted { "; the text has no more pieces that occur twice" } else { "" };
    // The tokenizer is written even if stderr is closed.
    let _ = writeln!(stderr(), "wrote a tokenizer with {found} tokens to {}{fewer}", folder.display());
}

/// Parses a share above zero, up to one.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "a number above 0, at most 1, is needed".to_owned())
}

/// Answers the lines of all files, or of stdin where there are none.
fn read_files(command: &Command, tokenizer: &Tokenizer) -> Result<(), Error> {
    if command.files.is_empty() {
        return translate_lines(command, tokenizer, "standard input".to_owned(), stdin().lock());
    }
    for path in &command.files {
        let input = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Input { input: input.clone(), source })?;
        translate_lines(command, tokenizer, input, BufReader::new(file))?;
    }
    Ok(())
}

/// Answers each line with a line on stdout, as soon as it is there.
fn translate_lines(
    command: &Command,
    tokenizer: &Tokenizer,
    name: String,
    mut input: impl BufRead,
) -> Result<(), Error> {
    let mut output = stdout().lock();
    let mut lines = Lines { command, tokenizer, name, number: 0, answer: Vec::new() };
    // The beginning of a line whose end has not been read yet.
    let mut begun = Vec::new();
    loop {
        let chunk = input.fill_buf().map_err(|source| Error::Input { input: lines.name.clone(), source })?;
        if chunk.is_empty() {
            break;
        }
        let length = chunk.len();
        let answered = lines.chunk(chunk, &mut begun);
        input.consume(length);
        // What was answered before a line that could not be is written all the same.
        lines.write(&mut output)?;
        answered?;
    }
    if !begun.is_empty() {
        lines.line(&begun)?;
    }
    lines.write(&mut output)
}

struct Lines<'a> {
    command: &'a Command,
    tokenizer: &'a Tokenizer,
    /// Of the input.
    name: String,
    number: usize,
    answer: Vec<u8>,
}

impl Lines<'_> {
    /// Answers the lines that end in a piece of the input; `begun` is what came of the first of them before, and then what
    /// has come of the next.
    fn chunk(&mut self, mut rest: &[u8], begun: &mut Vec<u8>) -> Result<(), Error> {
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            if begun.is_empty() {
                self.line(&rest[..end])?;
            } else {
                begun.extend(&rest[..end]);
                self.line(begun)?;
                begun.clear();
            }
            rest = &rest[end + 1..];
        }
        begun.extend(rest);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        self.number += 1;
        let line = std::str::from_utf8(line).map_err(|_| self.problem(not_utf8(&self.name)))?;
        if self.command.decode {
            self.decode(line)?
        } else {
            self.encode(line)?
        }
        self.answer.push(b'\n');
        Ok(())
    }

    fn encode(&mut self, line: &str) -> Result<(), Error> {
        let side = match self.command.side {
            SideName::Source => Side::Source,
            SideName::Target => Side::Target,
        };
        if self.command.ids {
            let ids = self.tokenizer.encode(line, side).map_err(|error| self.problem(error))?;
            for (i, &id) in ids.iter().enumerate() {
                if i > 0 {
                    self.answer.push(b' ');
                }
                push_number(&mut self.answer, id);
            }
        } else {
            let pieces = self.tokenizer.encode_pieces(line, side).map_err(|error| self.problem(error))?;
            self.answer.extend(pieces.join(" ").bytes());
        }
        Ok(())
    }

    fn decode(&mut self, line: &str) -> Result<(), Error> {
        let tokens = line.split([' ', '\r']).filter(|token| !token.is_empty());
        let text = if self.command.ids {
            let ids = tokens
                .map(|token| token.parse().map_err(|_| self.problem(format!("`{token}` is not a token id"))));
            self.tokenizer.decode(&ids.collect::<Result<Vec<u32>, Error>>()?)
        } else {
            self.tokenizer.decode_pieces(&tokens.collect::<Vec<&str>>())
        };
        self.answer.extend(text.map_err(|error| self.problem(error))?.bytes());
        Ok(())
    }

    fn problem(&self, problem: impl ToString) -> Error {
        Error::Line { input: self.name.clone(), line: self.number, problem: problem.to_string() }
    }

    fn write(&mut self, output: &mut StdoutLock) -> Result<(), Error> {
        output.write_all(&self.answer)?;
        self.answer.clear();
        Ok(output.flush()?)
    }
}

/// Appends a number. There are millions of them, and the formatting of the standard library takes as long as
/// encoding.
fn push_number(text: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0u8; 10];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[first..]);
}
