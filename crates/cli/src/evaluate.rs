//! `attentive evaluate`: how well and how fast a model translates a file.

use crate::decoding::{Decoding, SEARCH_RULE};
use crate::error::Error;
use crate::interrupt;
use crate::lost::Lost;
use crate::machine::peak_mb;
use crate::output;
use crate::ranks::{Mpi, gather, is_first, join};
use crate::score::{self, Report};
use crate::split::Split;
use attentive_ranks::Group;
use attentive_tasks::{Translated, Translation};
use attentive_text::score::{Lines, Options, Signatures};
use clap::Args;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[derive(Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{SEARCH_RULE}"))]
pub(crate) struct Evaluate {
    #[command(flatten)]
    decoding: Decoding,
    /// Text to translate, one segment per line
    #[arg(long, value_name = "FILE")]
    source: PathBuf,
    /// Reference translation, one segment per line; several files are several references
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    reference: Vec<PathBuf>,
    /// Unit to translate
    #[arg(long, value_name = "UNIT", default_value = "lines")]
    split: Split,
    /// Write the translations to FILE
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one line of JSON, with unrounded scores, instead of a table
    #[arg(long)]
    json: bool,
    /// MPI of the launcher, if the environment does not say it
    #[arg(long, value_enum, value_name = "MPI")]
    mpi: Option<Mpi>,
}

const EXAMPLES: &str = "\
Examples:
  attentive evaluate --model opus-mt-en-de --source test.en --reference test.de
  attentive evaluate --model opus-mt-en-de --source test.en --reference test.de --beam 1 --json
  mpirun -n 8 attentive evaluate --model opus-mt-en-de --source test.en --reference test.de

The scores are those of `attentive score`. The time includes tokenizing, but not loading the model. \
Target tokens include the end-of-sentence tokens, which `attentive bench translate` does not count.";

/// What the command says.
#[derive(Serialize)]
struct Evaluation {
    #[serde(flatten)]
    scores: Report,
    sentences: usize,
    source_tokens: usize,
    target_tokens: usize,
    seconds: f64,
    sentences_per_s: f64,
    target_tokens_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_mb: Option<f64>,
}

/// Lines that a rank translates in a row.
const RUN: usize = 16;

/// What is evaluated of a line's translation.
#[derive(Serialize, Deserialize)]
struct Found {
    text: String,
    lost: String,
    source_tokens: usize,
    target_tokens: usize,
}

impl Found {
    fn of(translation: Translation) -> Found {
        let source_tokens = translation.source_tokens;
        let Translated { text, lost, tokens, .. } = translation.best.into_iter().next().unwrap_or_default();
        Found { text, lost, source_tokens, target_tokens: tokens.len() }
    }
}

pub(crate) fn run(evaluate: &Evaluate) -> Result<(), Error> {
    let group = join(evaluate.mpi)?;
    for (flag, input) in evaluate.inputs() {
        output::must_differ([flag, "--output"], [input, evaluate.output.as_deref()])?;
    }
    let source = Lines::read(&evaluate.source)?;
    let references =
        evaluate.reference.iter().map(|path| Lines::read(path)).collect::<Result<Vec<_>, _>>()?;
    references.iter().try_for_each(|reference| source.belongs_to(reference))?;

    let (translations, seconds) = translate(evaluate, &source.segments(), group.as_ref())?;
    if !is_first(group.as_ref()) {
        return Ok(());
    }
    let mut lost = Lost::default();
    translations.iter().for_each(|found| lost.count_text(&found.lost));
    lost.warn();
    let text = translations.iter().map(|found| format!("{}\n", found.text)).collect::<String>();
    if let Some(path) = &evaluate.output {
        output::to_file(path, |file| Ok(file.write_all(text.as_bytes())?))?;
    }
    let hypothesis = Lines::new(&PathBuf::from("the translations"), text.into_bytes())?;
    let options = Options::default();
    let scores = score::count(&hypothesis, &references, options)?.scores();
    let target_tokens = translations.iter().map(|found| found.target_tokens).sum();
    let per_second = |count: usize| count as f64 / seconds;
    let evaluation = Evaluation {
        scores: Report::new(&scores, Signatures::new(references.len(), options, None), None),
        sentences: translations.len(),
        source_tokens: translations.iter().map(|found| found.source_tokens).sum(),
        target_tokens,
        seconds,
        sentences_per_s: per_second(translations.len()),
        target_tokens_per_s: per_second(target_tokens),
        peak_mb: peak_mb(),
    };
    if evaluate.json { output::json(&evaluation) } else { print(&evaluation) }
}

impl Evaluate {
    /// The files that are read, with their flags.
    fn inputs(&self) -> impl Iterator<Item = (&'static str, Option<&Path>)> {
        let references = self.reference.iter().map(|path| ("--reference", Some(path.as_path())));
        [("--source", Some(self.source.as_path()))].into_iter().chain(references)
    }
}

/// Translates all lines, with all ranks, and says how long it took.
fn translate(
    evaluate: &Evaluate,
    lines: &[&str],
    group: Option<&Rc<dyn Group>>,
) -> Result<(Vec<Found>, f64), Error> {
    let (rank, size) = group.map_or((0, 1), |group| (group.rank(), group.size()));
    let mine: Vec<(usize, &str)> =
        lines.iter().copied().enumerate().filter(|(number, _)| number / RUN % size == rank).collect();
    let mut translator = evaluate.decoding.translator(None, false)?.with_split(evaluate.split.into());
    let languages = evaluate.decoding.languages(translator.tokenizer())?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    interrupt::on_signal(move || flag.store(true, Ordering::Relaxed));
    let progress = if rank == 0 { output::progress(mine.len()) } else { ProgressBar::hidden() };
    if let Some(group) = group {
        // All have read the model.
        gather(&**group, &())?;
    }
    let (begin, mut translations) = (Instant::now(), Vec::with_capacity(mine.len()));
    let mut rest = mine.iter();
    while translations.len() < mine.len() {
        while translator.has_room() {
            let Some(&(number, line)) = rest.next() else {
                translator.expect_no_more();
                break;
            };
            let input = evaluate.source.display().to_string();
            let problem = |error: attentive_tasks::Error| match error {
                missing @ attentive_tasks::Error::NoLanguage { .. } => missing.into(),
                error => Error::Line { input: input.clone(), line: number + 1, problem: error.to_string() },
            };
            let line = languages.prepare(line).map_err(problem)?;
            translator.push(&line).map_err(problem)?;
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        translator.step()?;
        while let Some(translation) = translator.pop()? {
            translations.push(Found::of(translation));
        }
        progress.set_position(translations.len() as u64);
    }
    if let Some(group) = group {
        let mut of_ranks: Vec<_> = gather(&**group, &translations)?.into_iter().map(Vec::into_iter).collect();
        let places = (0..lines.len()).map(|number| number / RUN % size);
        translations = places.filter_map(|rank| of_ranks[rank].next()).collect();
    }
    let seconds = begin.elapsed().as_secs_f64();
    progress.finish_and_clear();
    Ok((translations, seconds))
}

fn print(evaluation: &Evaluation) -> Result<(), Error> {
    score::print(&evaluation.scores)?;
    let Evaluation { sentences, seconds, sentences_per_s, target_tokens_per_s, .. } = evaluation;
    let row = |name: &str, value: String| [name.to_owned(), value];
    let speed = [
        row("translated", format!("{sentences} lines in {seconds:.1} s")),
        row("speed", format!("{sentences_per_s:.1} lines/s, {target_tokens_per_s:.0} tokens/s")),
    ];
    output::table(&speed, 2)
}
