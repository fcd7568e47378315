//! `attentive classify`: labels of texts, of pairs of texts, or of pictures.

use crate::error::Error;
use crate::texts::Reading;
use crate::{output, pictures};
use attentive_tasks::{Classified, Classifier, PictureClassifier, task_of_pictures};
use attentive_tensor::{Backend, Form};
use attentive_text::tokenizer::Input;
use clap::Args;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Classify {
    #[command(flatten)]
    reading: Reading,
    /// Each text is two texts, with a tab between them
    #[arg(long)]
    pairs: bool,
    /// Write one JSON object per text or picture, with the scores of all labels
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive classify --model sentiment \"A wonderful film.\"
  attentive classify --model sentiment --input reviews.txt --json
  printf 'A dog runs.\\tAn animal moves.\\n' | attentive classify --model nli --pairs
  attentive classify --model vit-base-patch16-224 photo.jpg

A text is a line. A model for pictures (ViT, DeiT, DINOv2) takes names of PNG, JPEG and WebP files instead of texts. The labels are those of config.json (id2label).";

#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a str>,
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
    let folder = classify.reading.folder()?;
    match task_of_pictures(&folder)? {
        Some(_) => classify_pictures(classify, &backend, &folder, form),
        None => classify_texts(classify, &backend, &folder, form),
    }
}

fn classify_pictures(
    classify: &Classify,
    backend: &Arc<dyn Backend>,
    folder: &Path,
    form: Form,
) -> Result<(), Error> {
    if classify.pairs {
        let problem = "the model classifies pictures, one by one: remove the option".to_owned();
        return Err(Error::Flag { option: "pairs", problem });
    }
    let classifier = PictureClassifier::open(backend, folder, form)?;
    let classifier = classifier.with_encoder(|encoder| classify.reading.change_pictures(encoder));
    pictures::each(&classify.reading, classifier.encoder(), |paths, pictures| {
        for (path, found) in paths.iter().zip(&classifier.classify(pictures)?) {
            write(classify.json, [None, Some(path)], found)?;
        }
        Ok(())
    })
}

fn classify_texts(
    classify: &Classify,
    backend: &Arc<dyn Backend>,
    folder: &Path,
    form: Form,
) -> Result<(), Error> {
    let classifier = Classifier::open(backend, folder, form)?;
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
            write(classify.json, [Some(text), None], found)?;
        }
        before += texts.len();
        Ok(read)
    })
}

/// Writes what was found of a text or of a picture.
fn write(json: bool, [text, picture]: [Option<&str>; 2], found: &Classified) -> Result<(), Error> {
    let Some((label, score)) = found.scores.first() else { return Ok(()) };
    if !json {
        return output::write(&format!("{label}\t{score:.4}\n"));
    }
    let scores = found.scores.iter().map(|(label, score)| Label { label, score: *score }).collect();
    output::json(&Line { text, picture, label, score: *score, scores })
}
