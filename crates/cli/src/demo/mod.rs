//! `attentive demo`: a Transformer learns from nothing, while one watches: to translate numbers, or to find shapes in pictures.

mod answer;
mod lesson;
mod pictures;
mod question;
mod score;
mod translator;

use crate::error::Error;
use crate::heatmap::Heatmap;
use crate::options::between;
use crate::words::thousands;
use crate::{output, terminal};
use answer::{Answer, answers, said, text};
use attentive_train::metrics::ValidationMetric;
use attentive_train::numbers::{self, Language, NumberCorpus, NumberPair, SHOWN};
use attentive_train::{Begin, Outcome, Run, Sample, Settings};
use clap::Args;
use lesson::{Lesson, Subject};
use question::Question;
use score::Score;
use serde::Serialize;
use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use translator::Translator;

/// The options of `attentive demo`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// Numbers below a million to translate at the end, in digits or in English words
    #[arg(value_name = "NUMBER", value_parser = Question::parse)]
    numbers: Vec<Question>,
    /// Learn to find shapes in pictures instead, with a box around each
    #[arg(long, conflicts_with_all = ["numbers", "write_corpus"])]
    pictures: bool,
    /// Keep the model in DIR; a model that is there already is not trained again
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only write the corpus and its tokenizer to DIR, to try `attentive train`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "numbers", "steps", "threads", "json"])]
    write_corpus: Option<PathBuf>,
    /// Random seed of the choice of numbers, of initial weights and of the order of training
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of training steps [default: enough to learn the task]
    #[arg(long, value_name = "N", value_parser = between::<1, 1_000_000>)]
    steps: Option<usize>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>)]
    threads: Option<usize>,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
    /// Print one line of JSON at the end instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive demo                            train, show the result, translate what you type
  attentive demo 97 \"two hundred and one\"   translate these numbers at the end
  attentive demo --out numbers              keep the model, its training report and its settings
  attentive demo --pictures --out shapes    learn to find shapes, and draw what was found as PNG
  attentive demo --write-corpus corpus      write the training data

The task is to translate numbers below a million, written out, from English into German and French. \
The word order differs: twenty-one is one-and-twenty in German, and ninety-seven is \
four-twenties-seventeen in French. The program generates the corpus and knows all correct \
translations. The model trains on one number in a hundred and is tested on others.

With --pictures the task is to find circles, squares, triangles, rings, crosses and diamonds in \
pictures that the program draws, with a DETR. It takes a quarter of an hour.

The same seed gives the same model, to the bit, with the same instruction set.";

/// The number whose translation into German is looked into.
const LOOKED_INTO: u32 = 4_321;

pub(crate) fn run(demo: &Demo) -> Result<(), Error> {
    match &demo.write_corpus {
        Some(folder) => write_corpus(folder, demo.seed),
        None if demo.pictures => pictures::run(demo),
        None => learn_and_show(demo),
    }
}

fn write_corpus(folder: &Path, seed: u64) -> Result<(), Error> {
    let corpus = numbers::prepare(folder, seed)?;
    let NumberCorpus { train, validation, test } = corpus;
    let name = folder.display();
    output::write(&format!(
        "Wrote {} training pairs, {} validation pairs and {} test pairs to {name}. Try:\n\n  \
         attentive train --source {name}/train.source --target {name}/train.target \\\n    \
         --valid-source {name}/valid.source --valid-target {name}/valid.target \\\n    \
         --tokenizer {name}/tokenizer --preset tiny --minutes 2 --out model\n",
        train.len(),
        validation.len(),
        test.len()
    ))
}

fn learn_and_show(demo: &Demo) -> Result<(), Error> {
    let folder = Folder::new(demo.out.as_deref());
    let numbers = folder.path.join("numbers");
    let settings = numbers::settings(&numbers, demo.seed);
    let settings = Settings {
        steps: demo.steps.map_or(settings.steps, |steps| Some(steps as u64)),
        threads: demo.threads,
        ..settings
    };
    // Another run or model in the folder must not be touched.
    Run::refuse_folder(&folder.path, &settings)?;
    let corpus = numbers::prepare(&numbers, demo.seed)?;
    let outcome = Lesson::new(Numbers, demo.quiet || demo.json).learn(&folder.path, &settings)?;
    let mut translator = Translator::load(&folder.path, &settings)?;
    // The model is in memory; what is not to be kept goes before a person may leave without a word.
    drop(folder);

    let score = Score::of(&mut translator, &corpus.test)?;
    if demo.json {
        let translations = answers(&mut translator, &demo.numbers)?;
        return output::json(&Report::new(demo, &outcome, &translator, &score, translations));
    }
    let width = terminal::width();
    output::write(&score.text())?;
    if demo.numbers.is_empty() {
        let shown = SHOWN.map(Question::number);
        output::write(&format!(
            "\nSome translations:\n\n{}",
            text(&answers(&mut translator, &shown)?, width)
        ))?;
        output::write(&attention(&mut translator)?)?;
        if let Some(out) = &demo.out {
            let out = out.display();
            output::write(&format!(
                "\nThe model is in {out}, and its training report in {out}/report.html.\n"
            ))?;
        }
        if stdin().is_terminal() {
            converse(&mut translator)?;
        }
    } else {
        output::write(&format!("\n{}", text(&answers(&mut translator, &demo.numbers)?, width)))?;
    }
    Ok(())
}

/// Translating numbers, as a person watches it.
struct Numbers;

impl Subject for Numbers {
    fn begin(&self, begin: &Begin) -> String {
        let Begin { parameters, examples: pairs, device, .. } = begin;
        let (parameters, pairs) = (thousands(*parameters), thousands(*pairs));
        format!(
            "A Transformer with {parameters} parameters learns to translate numbers from English\n\
             into German and French. It starts from random weights and trains on {pairs}\n\
             pairs, in about a minute on two cores (here: {device}).\n"
        )
    }

    fn heading(&self, samples: &[Sample]) -> Option<String> {
        samples.first().map(|sample| sample.source.clone())
    }

    fn result(&self, _: &ValidationMetric, samples: &[Sample]) -> String {
        cut(samples.first().map_or("", |sample| said(&sample.translation)))
    }
}

/// A model that has just begun can go on and on.
fn cut(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST - 1).collect::<String>() + "…"
    }
}

/// Where a run is: a folder that a person has named, or one that is gone in the end.
struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    fn new(out: Option<&Path>) -> Folder {
        let scratch = || std::env::temp_dir().join(format!("attentive-demo-{}", std::process::id()));
        Folder { path: out.map_or_else(scratch, Path::to_owned), kept: out.is_some() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The picture of one translation.
fn attention(translator: &mut Translator) -> Result<String, Error> {
    let pair = NumberPair::new(LOOKED_INTO, Language::German);
    let look = translator.look(&pair.source)?;
    let map = Heatmap { rows: &look.written, columns: &look.read, weights: &look.weights };
    Ok(format!(
        "\nCross-attention while translating {} (layer {}, head {}, in %).\n\
         A row is an output token, a column an input token; tens and units cross:\n\n{}",
        thousands(LOOKED_INTO as usize),
        look.layer + 1,
        look.head + 1,
        map.draw(terminal::width(), terminal::colours())
    ))
}

/// Translates what a person types.
fn converse(translator: &mut Translator) -> Result<(), Error> {
    output::write("\nYour turn: type a number below a million, in digits or in words (Ctrl-D quits).\n")?;
    loop {
        output::write("> ")?;
        let mut line = String::new();
        let read = stdin().read_line(&mut line);
        let read = read.map_err(|source| Error::Input { input: "standard input".to_owned(), source })?;
        if read == 0 {
            return output::write("\n");
        }
        if line.trim().is_empty() {
            continue;
        }
        match Question::parse(&line) {
            Ok(question) => output::write(&text(&answers(translator, &[question])?, terminal::width()))?,
            Err(problem) => output::write(&format!("{problem}\n"))?,
        }
    }
}

/// What the command says with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    seed: u64,
    parameters: usize,
    steps: u64,
    seconds: f64,
    loss: Option<f64>,
    #[serde(flatten)]
    score: &'a Score,
    accuracy: f64,
    translations: Vec<Answer>,
    out: Option<&'a Path>,
}

impl<'a> Report<'a> {
    fn new(
        demo: &'a Demo,
        outcome: &Outcome,
        translator: &Translator,
        score: &'a Score,
        translations: Vec<Answer>,
    ) -> Report<'a> {
        Report {
            seed: demo.seed,
            parameters: translator.parameters(),
            steps: outcome.step,
            seconds: outcome.seconds,
            loss: outcome.best.as_ref().map(|best| best.loss),
            score,
            accuracy: score.exact as f64 / score.tested as f64,
            translations,
            out: demo.out.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("kurz"), "kurz");
        assert_eq!(cut(&"ü".repeat(50)).chars().count(), 40);
    }
}
