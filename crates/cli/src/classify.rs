//! `attentive classify`: labels of texts, or of pairs of texts.

use crate::error::Error;
use crate::output;
use crate::texts::Reading;
use attentive_tasks::Classifier;
use attentive_text::tokenizer::Input;
use clap::Args;
use serde::Serialize;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Classify {
    #[command(flatten)]
    reading: Reading,
    /// Each text is two texts, with a tab between them
    #[arg(long)]
    pairs: bool,
    /// Write one JSON object per text, with the scores of all labels
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive classify --model sentiment \"A wonderful film.\"
  attentive classify --model sentiment --input reviews.txt --json
  printf 'A dog runs.\\tAn animal moves.\\n' | attentive classify --model nli --pairs

A text is a line. The labels are those of config.json (id2label).";

#[derive(Serialize)]
struct Line<'a> {
    text: &'a str,
    label: &'a str,
    score: f32,
    scores: Vec<Label<'a>>,
}

#[derive(Serialize)]
struct Label<'a> {
    label: &'a str,
    score: f32,
}

pub(crate) fn run(classify: &Classify) -> Result<(), Error> {
    let (backend, form) = classify.reading.backend()?;
    let classifier = Classifier::open(&backend, &classify.reading.folder()?, form)?;
    let classifier = classifier.with_encoder(|encoder| classify.reading.change(encoder));
    let mut before = 0;
    classify.reading.each(|texts| {
        let input = |(i, text): (usize, &'_ String)| -> Result<(usize, Option<usize>), Error> {
            match (classify.pairs, text.find('\t')) {
                (false, _) => Ok((i, None)),
                (true, Some(tab)) => Ok((i, Some(tab))),
                (true, None) => {
                    let problem = "has no tab between two texts, which --pairs needs".to_owned();
                    Err(Error::Text { text: before + i + 1, problem })
                }
            }
        };
        let tabs: Vec<_> = texts.iter().enumerate().map(input).collect::<Result<_, _>>()?;
        let input = |&(i, tab): &(usize, Option<usize>)| match tab {
            Some(tab) => Input::Pair(&texts[i][..tab], &texts[i][tab + 1..]),
            None => Input::Text(&texts[i]),
        };
        let inputs: Vec<Input> = tabs.iter().map(input).collect();
        let (read, classified) = classifier.classify(&inputs)?;
        for (text, found) in texts.iter().zip(&classified) {
            let Some((label, score)) = found.scores.first() else { continue };
            if classify.json {
                let scores =
                    found.scores.iter().map(|(label, score)| Label { label, score: *score }).collect();
                output::json(&Line { text, label, score: *score, scores })?;
            } else {
                output::write(&format!("{label}\t{score:.4}\n"))?;
            }
        }
        before += texts.len();
        Ok(read)
    })
}
