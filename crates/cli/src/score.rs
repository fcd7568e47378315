//! `attentive score`: how good a translation, a summary or an answer is.

mod boxes;

use crate::error::Error;
use crate::{output, squad};
use attentive_text::score::bootstrap::{Comparison, Comparisons, Estimate, compare};
use attentive_text::score::{
    Counted, Lines, Options, Resampling, Rouge, RougeScores, Scores, Segments, Signatures, Tokenize, rouge,
};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};

/// sacreBLEU's numbers.
const RESAMPLING: Resampling = Resampling { samples: 1000, seed: 12345 };

/// The options of `attentive score`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Score {
    /// Reference translation, one segment per line; several files are several references
    #[arg(long, value_name = "FILE", required_unless_present_any = ["squad", "boxes"], num_args = 1..)]
    reference: Vec<PathBuf>,
    /// Translation to score, one segment per line; `-` is stdin
    #[arg(long, value_name = "FILE", required_unless_present = "boxes")]
    hypothesis: Option<PathBuf>,
    /// Translation of another system: test whether the difference of the scores is significant
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Ignore case in BLEU, chrF and chrF++; TER always ignores it
    #[arg(long)]
    lowercase: bool,
    /// Tokenization for BLEU
    #[arg(long, value_enum, default_value_t = TokenizeChoice(Tokenize::V13a))]
    tokenize: TokenizeChoice,
    /// Score summaries: ROUGE-1, ROUGE-2 and ROUGE-L instead of the scores of translations
    #[arg(long, conflicts_with_all = ["compare", "lowercase", "tokenize"])]
    rouge: bool,
    /// Score answers to the questions of a SQuAD file (1.1 or 2.0): exact match and F1. The hypothesis is a JSON object with an
    /// answer for the id of each question, as `attentive answer --squad` writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reference", "rouge", "compare", "lowercase", "tokenize"])]
    squad: Option<PathBuf>,
    /// Score boxes around things in pictures: COCO's twelve numbers
    #[arg(
        long,
        requires_all = ["references", "detections"],
        conflicts_with_all = ["reference", "hypothesis", "compare", "lowercase", "tokenize", "rouge"]
    )]
    boxes: bool,
    /// What is in the pictures, as COCO's annotations in JSON
    #[arg(long, value_name = "FILE", requires = "boxes")]
    references: Option<PathBuf>,
    /// What was found, as a list in COCO's form
    #[arg(value_name = "DETECTIONS", requires = "boxes")]
    detections: Option<PathBuf>,
    /// Print one line of JSON, with unrounded scores, instead of a table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive score --reference test.de --hypothesis out.de
  attentive score --reference a.de b.de --hypothesis - --json < out.de
  attentive score --reference test.de --hypothesis new.de --compare old.de
  attentive score --rouge --reference summaries.txt --hypothesis out.txt
  attentive score --squad dev-v1.1.json --hypothesis answers.json
  attentive score --boxes --references val.json found.json

The scores and their signatures are those of sacreBLEU 2.6.0. Higher is better for BLEU, chrF and \
chrF++; lower is better for TER. --compare uses paired bootstrap resampling with 1,000 samples; a \
p-value below 0.05 is commonly called significant. ROUGE is that of rouge-score without its stemmer: the mean over the \
lines; of several references, the best one counts. Exact match and F1 of answers are those of SQuAD's scripts. The numbers \
of --boxes are those of pycocotools: average precision and recall, from 0 to 1, or -1 if no box is so large.";

#[derive(Debug, Clone, Copy)]
struct TokenizeChoice(Tokenize);

impl ValueEnum for TokenizeChoice {
    fn value_variants<'a>() -> &'a [TokenizeChoice] {
        const ALL: [TokenizeChoice; 4] = {
            let [a, b, c, d] = Tokenize::ALL;
            [TokenizeChoice(a), TokenizeChoice(b), TokenizeChoice(c), TokenizeChoice(d)]
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            Tokenize::V13a => "separates ASCII punctuation",
            Tokenize::International => "separates punctuation and symbols of all scripts",
            Tokenize::Character => "treats every character as a word",
            Tokenize::Nothing => "splits at spaces only",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

pub(crate) fn run(score: &Score) -> Result<(), Error> {
    if let (true, Some(references), Some(detections)) = (score.boxes, &score.references, &score.detections) {
        return boxes::run(references, detections, score.json);
    }
    let hypothesis = score.hypothesis.as_deref().unwrap_or(Path::new("-"));
    if let Some(questions) = &score.squad {
        return squad::score(questions, hypothesis, score.json);
    }
    let references = score.reference.iter().map(|path| Lines::read(path)).collect::<Result<Vec<_>, _>>()?;
    let options = Options { lowercase: score.lowercase, tokenize: score.tokenize.0 };
    let system = read(hypothesis)?;
    let other = score.compare.as_deref().map(read).transpose()?;
    for lines in [Some(&system), other.as_ref()].into_iter().flatten() {
        references.iter().try_for_each(|reference| lines.belongs_to(reference))?;
    }

    if score.rouge {
        let references: Vec<_> = references.iter().map(Lines::segments).collect();
        return print_rouge(&rouge(&system.segments(), &references)?, score.json);
    }
    let counted = count(&system, &references, options)?;
    let comparisons = match &other {
        Some(other) => Some(compare(&counted, &count(other, &references, options)?, RESAMPLING)),
        None => None,
    };
    let signatures = Signatures::new(references.len(), options, other.map(|_| RESAMPLING));
    let report = Report::new(&counted.scores(), signatures, comparisons);
    match (score.json, report.compare) {
        (true, _) => output::json(&report),
        (false, None) => print(&report),
        (false, Some(compare)) => print_comparison(&report.signature, &compare),
    }
}

fn read(path: &Path) -> Result<Lines, Error> {
    if path != Path::new("-") {
        return Ok(Lines::read(path)?);
    }
    let mut bytes = Vec::new();
    let path = PathBuf::from("standard input");
    match std::io::stdin().lock().read_to_end(&mut bytes) {
        Ok(_) => Ok(Lines::new(&path, bytes)?),
        Err(source) => Err(attentive_text::score::Error::File { path, source }.into()),
    }
}

pub(crate) fn count(hypothesis: &Lines, references: &[Lines], options: Options) -> Result<Counted, Error> {
    let references: Vec<_> = references.iter().map(Lines::segments).collect();
    Ok(Segments::new(&hypothesis.segments(), &references)?.count(options))
}

/// Something of each score.
#[derive(Serialize, Clone, Copy)]
struct Each<T> {
    bleu: T,
    chrf: T,
    #[serde(rename = "chrf++")]
    chrf_pp: T,
    ter: T,
}

impl<T> Each<T> {
    /// With the names as papers write them.
    fn named(&self) -> [(&'static str, &T); 4] {
        [("BLEU", &self.bleu), ("chrF2", &self.chrf), ("chrF2++", &self.chrf_pp), ("TER", &self.ter)]
    }
}

/// What the command says.
#[derive(Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    scores: Each<f64>,
    signature: Each<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Each<Compared>>,
}

/// A score of both systems.
#[derive(Serialize, Clone, Copy)]
struct Compared {
    hypothesis: Estimated,
    other: Estimated,
    p: f64,
}

/// A score, the mean of its samples, and half the width of the interval that 95 % of them are in.
#[derive(Serialize, Clone, Copy)]
struct Estimated {
    score: f64,
    mean: f64,
    ci: f64,
}

impl Report {
    pub(crate) fn new(scores: &Scores, signatures: Signatures, comparisons: Option<Comparisons>) -> Report {
        let estimated = |e: Estimate| Estimated { score: e.score, mean: e.mean, ci: e.interval };
        let compared =
            |c: Comparison| Compared { hypothesis: estimated(c.system), other: estimated(c.other), p: c.p };
        let Signatures { bleu, chrf, chrf_pp, ter } = signatures;
        Report {
            scores: Each { bleu: scores.bleu, chrf: scores.chrf, chrf_pp: scores.chrf_pp, ter: scores.ter },
            signature: Each { bleu, chrf, chrf_pp, ter },
            compare: comparisons.map(|c| Each {
                bleu: compared(c.bleu),
                chrf: compared(c.chrf),
                chrf_pp: compared(c.chrf_pp),
                ter: compared(c.ter),
            }),
        }
    }
}

pub(crate) fn print(report: &Report) -> Result<(), Error> {
    let row = |((name, score), (_, signature)): ((&str, &f64), (&str, &String))| {
        [name.to_owned(), format!("{score:>6.2}"), signature.clone()]
    };
    let rows = report.scores.named().into_iter().zip(report.signature.named()).map(row);
    output::table(&rows.collect::<Vec<_>>(), 3)
}

fn print_rouge(scores: &RougeScores, json: bool) -> Result<(), Error> {
    if json {
        return output::json(scores);
    }
    let row = |(name, score): (&str, Rouge)| {
        let numbers = [score.f1, score.precision, score.recall].map(|number| format!("{number:.2}"));
        let [f1, precision, recall] = numbers;
        [name.to_owned(), f1, precision, recall]
    };
    let scores = [("ROUGE-1", scores.rouge1), ("ROUGE-2", scores.rouge2), ("ROUGE-L", scores.rouge_l)];
    let header = ["score", "F1", "precision", "recall"].map(str::to_owned);
    output::table(&std::iter::once(header).chain(scores.into_iter().map(row)).collect::<Vec<_>>(), 1)
}

fn print_comparison(signatures: &Each<String>, compare: &Each<Compared>) -> Result<(), Error> {
    let header = ["score", "hypothesis", "mean ± 95 %", "other", "mean ± 95 %", "p", "signature"];
    let system = |e: &Estimated| (format!("{:>6.2}", e.score), format!("{:.2} ± {:.2}", e.mean, e.ci));
    let row = |((name, compared), (_, signature)): ((&str, &Compared), (&str, &String))| {
        let ((score, mean), (other, other_mean)) = (system(&compared.hypothesis), system(&compared.other));
        let p = format!("{:.4}", compared.p);
        [name.to_owned(), score, mean, other, other_mean, p, signature.clone()]
    };
    let rows = compare.named().into_iter().zip(signatures.named()).map(row);
    output::table(&std::iter::once(header.map(str::to_owned)).chain(rows).collect::<Vec<_>>(), 7)
}
