//! `attentive`: the Transformer on the command line.
//!
//! Here arguments become calls of the library and results become text; one file for each command.

mod answer;
mod bench;
mod blocks;
mod classify;
mod convert;
mod dashes;
mod decoding;
mod demo;
mod detect;
mod downloads;
mod embed;
mod error;
mod evaluate;
mod fill_mask;
mod generate;
mod heatmap;
mod html;
mod info;
mod inspect;
mod interrupt;
mod lines;
mod lost;
mod machine;
mod model;
mod models;
mod options;
mod output;
mod perplexity;
mod pictures;
mod precision;
mod pull;
mod ranks;
mod rerank;
mod score;
mod search;
mod serve;
mod split;
mod squad;
mod summarize;
mod tag;
mod terminal;
mod texts;
mod tokenize;
mod train;
mod translate;
mod warnings;
mod words;

use attentive_text::tokenizer::panic_is_caught;
use clap::{CommandFactory, Parser};
use error::Error;
use std::io::{ErrorKind, Write};
use std::panic::{PanicHookInfo, catch_unwind, set_hook};
use std::process::ExitCode;

/// Train Transformers, run them, serve them and look inside
#[derive(Parser)]
#[command(name = "attentive", version, arg_required_else_help = true, after_help = EXAMPLES)]
enum Command {
    /// Watch a Transformer learn to translate numbers, in about a minute
    Demo(demo::Demo),
    /// Train a model on texts or pictures: to translate, write, classify, tag, answer or detect
    Train(Box<train::Train>),
    /// Translate text, line by line
    Translate(Box<translate::Translate>),
    /// Continue texts with a language model, or turn them into others with T5
    Generate(Box<generate::Generate>),
    /// Make long texts short
    Summarize(Box<summarize::Summarize>),
    /// Turn texts or pictures into vectors, or rank them by their similarity to one
    Embed(Box<embed::Embed>),
    /// Find words for the masks of a text
    FillMask(Box<fill_mask::FillMask>),
    /// Label texts, pairs of texts, or pictures
    Classify(Box<classify::Classify>),
    /// Find objects in pictures
    Detect(Box<detect::Detect>),
    /// Find the entities in texts
    Tag(Box<tag::Tag>),
    /// Answer questions with words of a text
    Answer(Box<answer::Answer>),
    /// Rank texts by how well they fit a query
    Rerank(Box<rerank::Rerank>),
    /// Serve models over HTTP, with a web page that shows attention
    Serve(Box<serve::Serve>),
    /// Draw what a model attends to in a text
    Inspect(inspect::Inspect),
    /// Measure how well and how fast a model translates a file
    Evaluate(Box<evaluate::Evaluate>),
    /// Measure how well a language model predicts a text
    Perplexity(perplexity::Command),
    /// Score translations against references with BLEU, chrF, chrF++ and TER, or summaries with ROUGE
    Score(score::Score),
    /// Download models of the Hugging Face Hub
    Pull(pull::Pull),
    /// List the models in the cache of the Hub, or remove some
    Models(models::Models),
    /// Describe a model and its training
    Info(info::Info),
    /// Convert a model to another precision or layout
    Convert(convert::Convert),
    /// Split text into tokens, join tokens into text, or train a tokenizer
    Tokenize(tokenize::Command),
    /// Measure speed and memory on this machine
    #[command(subcommand)]
    Bench(bench::Command),
}

const EXAMPLES: &str = "\
Examples:
  attentive demo                            train a small model that translates numbers
  attentive train --source train.en --target train.de --out en-de --minutes 60
  attentive translate --model en-de < text.en
  attentive generate --model gpt2 \"Once upon a time\"
  attentive summarize --model bart-large-cnn --input article.txt
  attentive embed --model all-MiniLM-L6-v2 --input texts.txt --similar \"a running dog\"
  attentive fill-mask --model bert-base-uncased \"The capital of France is [MASK].\"
  attentive classify --model sentiment \"A wonderful film.\"
  attentive classify --model vit-base-patch16-224 photo.jpg
  attentive detect --model detr-resnet-50 photo.jpg --out boxes.png
  attentive tag --model ner \"Ada Lovelace lived in London.\"
  attentive answer --model qa --context-file article.txt \"Who wrote it?\"
  attentive rerank --model ms-marco --query \"running dogs\" --input texts.txt
  attentive serve                           start a server and a web page at http://127.0.0.1:8080
  attentive inspect --model en-de Hello --out attention.html
  attentive evaluate --model en-de --source test.en --reference test.de
  attentive score --reference test.de --hypothesis out.de
  attentive perplexity test.txt --model gpt2
  attentive translate --model Helsinki-NLP/opus-mt-en-de \"A dog runs.\"
                                            download a model by its name on the Hugging Face Hub
  attentive pull Helsinki-NLP/opus-mt-en-fr
  attentive models                          list the models that were downloaded
  attentive info en-de
  attentive convert --model en-de --out small --precision int8
  attentive tokenize --model en-de < text.en
  attentive bench train --preset base       time training steps of the paper's base model
  attentive bench kernels                   compare each kernel with the limit of the machine

`attentive COMMAND --help` describes a command and its options.

Environment:
  ATTENTIVE_ISA=portable|avx2|avx512|avx512bf16|amx
                                            instruction set to use [default: the best of this processor]
  HF_HOME, HF_TOKEN, HF_HUB_OFFLINE, …      cache, token and more of the Hugging Face Hub; see `attentive pull --help`

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted with Ctrl-C.";

fn main() -> ExitCode {
    set_hook(Box::new(report_panic));
    attentive_kernels::allocator::keep_large_blocks_apart();
    let command = Command::parse_from(dashes::marked(&Command::command(), std::env::args_os()));
    interrupt::listen();
    // The hook has spoken already; what is left of a panic is that it was a failure.
    let Ok(result) = catch_unwind(|| run(&command)) else {
        ranks::abort();
        return ExitCode::FAILURE;
    };
    match ranks::leave(result) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough: `attentive … | head` is no failure.
        Err(Error::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            ranks::tell(None, &error);
            ExitCode::from(error.code())
        }
    }
}

fn run(command: &Command) -> Result<(), Error> {
    // A server has a log, and `info` lists what others warn about.
    if !matches!(command, Command::Serve(_) | Command::Info(_)) {
        warnings::show();
    }
    match command {
        Command::Demo(demo) => demo::run(demo),
        Command::Bench(command) => bench::run(command),
        Command::Tokenize(command) => tokenize::run(command),
        Command::Convert(command) => convert::run(command),
        Command::Score(score) => score::run(score),
        Command::Train(train) => train::run(train),
        Command::Summarize(summarize) => summarize::run(summarize),
        Command::Pull(pull) => pull::run(pull),
        Command::Models(models) => models::run(models),
        Command::Info(info) => info::run(info),
        Command::Translate(translate) => translate::run(translate),
        Command::Perplexity(command) => perplexity::run(command),
        Command::Generate(generate) => generate::run(generate),
        Command::Embed(embed) => embed::run(embed),
        Command::FillMask(fill) => fill_mask::run(fill),
        Command::Classify(classify) => classify::run(classify),
        Command::Detect(detect) => detect::run(detect),
        Command::Tag(tag) => tag::run(tag),
        Command::Answer(answer) => answer::run(answer),
        Command::Rerank(rerank) => rerank::run(rerank),
        Command::Evaluate(evaluate) => evaluate::run(evaluate),
        Command::Serve(serve) => serve::run(serve),
        Command::Inspect(inspect) => inspect::run(inspect),
    }
}

/// A panic is a bug, but it is reported like any other failure: in one sentence.
fn report_panic(panic: &PanicHookInfo) {
    if panic_is_caught() {
        return;
    }
    let message = panic.payload_as_str().unwrap_or("no reason given");
    let place = panic.location().map(|place| format!(" ({place})")).unwrap_or_default();
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "attentive: internal error, please report it: {message}{place}");
}
