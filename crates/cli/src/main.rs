//! `attentive`: the Transformer on the command line.
//!
//! Here arguments become calls of the library and results become text; one file for each command.

mod bench;
mod convert;
mod decoding;
mod demo;
mod error;
mod evaluate;
mod heatmap;
mod html;
mod info;
mod inspect;
mod interrupt;
mod lines;
mod lost;
mod machine;
mod options;
mod output;
mod precision;
mod score;
mod serve;
mod split;
mod terminal;
mod tokenize;
mod train;
mod translate;
mod words;

use clap::Parser;
use error::Error;
use std::io::{ErrorKind, Write};
use std::panic::{PanicHookInfo, catch_unwind, set_hook};
use std::process::ExitCode;

/// The Transformer, whole, in one program
#[derive(Parser)]
#[command(name = "attentive", version, arg_required_else_help = true, after_help = EXAMPLES)]
enum Command {
    /// Watch a Transformer learn to translate numbers, in about a minute
    Demo(demo::Demo),
    /// Measure speed and memory on this machine
    #[command(subcommand)]
    Bench(bench::Command),
    /// Cut text into tokens and join them again, or train the tokenizer for it
    Tokenize(tokenize::Command),
    /// Store a model in another precision or layout
    Convert(convert::Convert),
    /// Say how good a translation is: BLEU, chrF, chrF++ and TER
    Score(score::Score),
    /// Train a Transformer on two text files
    Train(Box<train::Train>),
    /// Say what a model is and how it was trained
    Info(info::Info),
    /// Translate text, line by line
    Translate(Box<translate::Translate>),
    /// Say how well and how fast a model translates a file
    Evaluate(Box<evaluate::Evaluate>),
    /// Translate for others, over HTTP, with a page that shows what a model looks at
    Serve(Box<serve::Serve>),
    /// Draw what a model looks at
    Inspect(inspect::Inspect),
}

const EXAMPLES: &str = "\
Examples:
  attentive demo                            a Transformer learns to translate numbers
  attentive train --source train.en --target train.de --out en-de --minutes 60
  attentive info en-de                      what a model is and how it was trained
  attentive bench train --preset base       a training step of the paper's base model
  attentive bench train --preset small --threads 1 --json
  attentive bench kernels                   every kernel beside what the machine can do
  attentive tokenize --model opus-mt-en-de  pieces of the lines of stdin
  attentive convert --model opus-mt-en-de --out small --precision int8
  attentive score --reference test.de --hypothesis out.de
  attentive translate --model opus-mt-en-de < text.en
  attentive evaluate --model opus-mt-en-de --source test.en --reference test.de
  attentive serve                           a server and a page at http://127.0.0.1:8080
  attentive inspect --model opus-mt-en-de Hello --out attention.html

Environment:
  ATTENTIVE_ISA=portable|avx2|avx512|avx512bf16|amx
                                            use these instructions instead of the best there are

Exit codes: 0 done, 1 it failed, 2 wrong usage, 130 interrupted with Ctrl-C.";

fn main() -> ExitCode {
    set_hook(Box::new(report_panic));
    let command = Command::parse();
    interrupt::listen();
    // The hook has spoken already; what is left of a panic is that it was a failure.
    let Ok(result) = catch_unwind(|| run(&command)) else { return ExitCode::FAILURE };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough: `attentive … | head` is no failure.
        Err(Error::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // Where even this cannot be written, the exit code still tells.
            let _ = writeln!(std::io::stderr(), "attentive: {error}");
            error.exit_code()
        }
    }
}

fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Demo(demo) => demo::run(demo),
        Command::Bench(command) => bench::run(command),
        Command::Tokenize(command) => tokenize::run(command),
        Command::Convert(command) => convert::run(command),
        Command::Score(score) => score::run(score),
        Command::Train(train) => train::run(train),
        Command::Info(info) => info::run(info),
        Command::Translate(translate) => translate::run(translate),
        Command::Evaluate(evaluate) => evaluate::run(evaluate),
        Command::Serve(serve) => serve::run(serve),
        Command::Inspect(inspect) => inspect::run(inspect),
    }
}

/// A panic is our mistake, but it is told like any other failure: in one sentence.
fn report_panic(panic: &PanicHookInfo) {
    let message = panic.payload_as_str().unwrap_or("no reason given");
    let place = panic.location().map(|place| format!(" ({place})")).unwrap_or_default();
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "attentive: this should not have happened, please report it: {message}{place}");
}
