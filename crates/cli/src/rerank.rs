//! `attentive rerank`: texts in the order of how well they fit a query.

use crate::error::Error;
use crate::output;
use crate::texts::Reading;
use attentive_tasks::Reranker;
use clap::Args;
use serde::Serialize;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rerank {
    #[command(flatten)]
    reading: Reading,
    /// What the texts should fit
    #[arg(long, value_name = "TEXT")]
    query: String,
    /// Number of texts to write, the best first [default: all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Write the model's numbers themselves instead of scores from 0 to 1
    #[arg(long)]
    raw_scores: bool,
    /// Write one JSON object per text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive rerank --model ms-marco-MiniLM-L6-v2 --query \"running dogs\" --input texts.txt --top 3
  attentive rerank --model bge-reranker-base --query \"What is a panda?\" \"A bear.\" \"Hello.\" --json

A text is a line. The model is a cross-encoder: it reads the query together with each text and has one \
class. A score is the sigmoid of its number, unless config.json asks for the number itself, as \
sentence-transformers understands it. `line` in JSON counts from 1.";

#[derive(Serialize)]
struct Ranked<'a> {
    text: &'a str,
    line: usize,
    score: f32,
}

pub(crate) fn run(rerank: &Rerank) -> Result<(), Error> {
    let (backend, form) = rerank.reading.backend()?;
    let reranker = Reranker::open(&backend, &rerank.reading.folder()?, form)?;
    let reranker = reranker.with_encoder(|encoder| rerank.reading.change(encoder));
    let reranker = if rerank.raw_scores { reranker.with_raw_scores() } else { reranker };
    let mut ranked: Vec<(String, f32)> = Vec::new();
    rerank.reading.each(|texts| {
        let (read, scores) =
            reranker.scores(&rerank.query, &texts.iter().map(String::as_str).collect::<Vec<_>>())?;
        ranked.extend(texts.iter().cloned().zip(scores));
        Ok(read)
    })?;
    let mut order: Vec<usize> = (0..ranked.len()).collect();
    order.sort_by(|&a, &b| ranked[b].1.total_cmp(&ranked[a].1));
    order.truncate(rerank.top.unwrap_or(usize::MAX));
    for place in order {
        let (text, score) = &ranked[place];
        if rerank.json {
            output::json(&Ranked { text, line: place + 1, score: *score })?;
        } else {
            output::write(&format!("{score:.4}  {text}\n"))?;
        }
    }
    Ok(())
}
