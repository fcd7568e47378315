//! `attentive fill-mask`: words for the masks of texts.

use crate::error::Error;
use crate::options::between;
use crate::output;
use crate::texts::Reading;
use attentive_tasks::{Guess, MaskFiller};
use clap::Args;
use serde::Serialize;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FillMask {
    #[command(flatten)]
    reading: Reading,
    /// Number of words to write for each mask
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = between::<1, 1000>)]
    top: usize,
    /// Write one JSON object per text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive fill-mask --model bert-base-uncased \"The capital of France is [MASK].\"
  attentive fill-mask --model bert-base-uncased --top 1 --json < texts.txt

A text is a line with at least one mask, which is written as the model's tokenizer writes it. Each \
mask is filled while all others stay masked.";

#[derive(Serialize)]
struct Line<'a> {
    text: &'a str,
    masks: Vec<Vec<Word>>,
}

/// The keys are those of transformers.
#[derive(Serialize)]
struct Word {
    score: f32,
    token: u32,
    token_str: String,
    sequence: String,
}

impl From<Guess> for Word {
    fn from(guess: Guess) -> Word {
        Word { score: guess.score, token: guess.token, token_str: guess.word, sequence: guess.sequence }
    }
}

pub(crate) fn run(fill: &FillMask) -> Result<(), Error> {
    let (backend, form) = fill.reading.backend()?;
    let filler = MaskFiller::open(&backend, &fill.reading.folder()?, form)?;
    let filler = filler.with_encoder(|encoder| fill.reading.change(encoder));
    fill.reading.each(|texts| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (read, filled) = filler.fill(&texts, fill.top)?;
        for (text, masks) in texts.iter().zip(filled) {
            if fill.json {
                let masks =
                    masks.into_iter().map(|mask| mask.into_iter().map(Word::from).collect()).collect();
                output::json(&Line { text, masks })?;
                continue;
            }
            for mask in masks {
                let line = |guess: &Guess| format!("{:.4}  {}\n", guess.score, guess.sequence);
                output::write(&mask.iter().map(line).collect::<String>())?;
            }
        }
        Ok(read)
    })
}
