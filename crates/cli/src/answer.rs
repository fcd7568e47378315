//! `attentive answer`: spans of a text that answer questions.

use crate::error::Error;
use crate::options::between;
use crate::texts::Reading;
use crate::{output, squad};
use attentive_tasks::{Answerer, Asking, Texts};
use attentive_text::squad::Squad;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Answer {
    #[command(flatten)]
    reading: Reading,
    /// Text to look for the answers in
    #[arg(long, value_name = "TEXT", conflicts_with = "context_file")]
    context: Option<String>,
    /// File with the text to look for the answers in
    #[arg(long, value_name = "FILE")]
    context_file: Option<PathBuf>,
    /// Number of answers to write for each question
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between::<1, 1000>)]
    top: usize,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = between::<1, 1000>)]
    longest: usize,
    /// Most tokens of question and text to read at once; a longer text is read in windows that overlap
    #[arg(long, value_name = "N", default_value_t = 384, value_parser = between::<8, 1_000_000>)]
    window: usize,
    /// Number of tokens that two windows share
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = between::<0, 1_000_000>)]
    overlap: usize,
    /// Let an answer be that the text has none, for models that were trained with such questions
    #[arg(long)]
    no_answer: bool,
    /// Answer the questions of a SQuAD file (1.1 or 2.0), and write one JSON object with an answer for the id of each question, which
    /// `attentive score --squad` scores
    #[arg(long, value_name = "FILE", conflicts_with_all = ["context", "context_file", "input", "texts", "json", "top"])]
    squad: Option<PathBuf>,
    /// Write one JSON object per question
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive answer --model roberta-base-squad2 --context-file article.txt \"Who wrote it?\"
  attentive answer --model qa --context \"Ada lived in London.\" \"Where did Ada live?\" --json
  attentive answer --model qa --squad dev-v1.1.json > answers.json
  printf 'Where did Ada live?\\tAda lived in London.\\n' | attentive answer --model qa

A text is a question. Without --context and --context-file it is a question and the text to look in, with a \
tab between them. Each answer is a line: its score, the answer, and the answer in brackets among the \
words around it. `start` and `end` in JSON count characters of the text from 0.";

#[derive(Serialize)]
struct Line<'a> {
    question: &'a str,
    answers: Vec<Found<'a>>,
}

/// The keys are those of transformers.
#[derive(Serialize)]
struct Found<'a> {
    answer: &'a str,
    score: f32,
    start: usize,
    end: usize,
}

pub(crate) fn run(answer: &Answer) -> Result<(), Error> {
    let squad = answer.squad.as_deref().map(Squad::read).transpose()?;
    let (backend, form) = answer.reading.backend()?;
    let answerer = Answerer::open(&backend, &answer.reading.folder()?, form)?;
    let answerer = answerer.with_encoder(|encoder| answer.reading.change(encoder)).with_asking(Asking {
        window: answer.window,
        overlap: answer.overlap,
        longest: answer.longest,
        count: answer.top,
        may_be_empty: answer.no_answer || squad.as_ref().is_some_and(|squad| squad.may_be_empty),
    });
    if let Some(squad) = &squad {
        return squad::answer(&answerer, squad);
    }
    let context = answer.context()?;
    let mut before = 0;
    answer.reading.each(|texts| {
        let asked = texts.iter().enumerate().map(|(i, text)| match (&context, text.split_once('\t')) {
            (Some(context), _) => Ok((&text[..], &context[..])),
            (None, Some(asked)) => Ok(asked),
            (None, None) => {
                let problem = "has no tab between question and text: write one, or use --context".to_owned();
                Err(Error::Text { text: before + i + 1, problem })
            }
        });
        let asked: Vec<(&str, &str)> = asked.collect::<Result<_, Error>>()?;
        for (&(question, context), answers) in asked.iter().zip(answerer.answer(&asked)?) {
            output::write(&answer.written(question, context, &answers)?)?;
        }
        before += texts.len();
        // Nothing is cut: long texts are read in windows.
        Ok(Texts::default())
    })
}

impl Answer {
    /// The text that all questions are about, if there is one.
    fn context(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.context_file else { return Ok(self.context.clone()) };
        let failed = |source| Error::Input { input: path.display().to_string(), source };
        std::fs::read_to_string(path).map(Some).map_err(failed)
    }

    fn written(
        &self,
        question: &str,
        context: &str,
        answers: &[attentive_tasks::Answer],
    ) -> Result<String, Error> {
        if self.json {
            let characters = |byte: usize| context[..byte].chars().count();
            let found = |answer: &'_ attentive_tasks::Answer| {
                (characters(answer.bytes.start), characters(answer.bytes.end))
            };
            let answers = answers.iter().map(|answer| {
                let (start, end) = found(answer);
                Found { answer: &answer.text, score: answer.score, start, end }
            });
            return Ok(serde_json::to_string(&Line { question, answers: answers.collect() })? + "\n");
        }
        let line = |answer: &attentive_tasks::Answer| {
            let around = if answer.text.is_empty() { String::new() } else { around(context, answer) };
            format!("{:.4}\t{}\t{around}\n", answer.score, in_one_line(&answer.text))
        };
        Ok(answers.iter().map(line).collect())
    }
}

/// Characters of the text that are shown on each side of an answer.
const AROUND: usize = 40;

/// An answer in brackets among the words around it.
fn around(context: &str, answer: &attentive_tasks::Answer) -> String {
    let (before, after) = (&context[..answer.bytes.start], &context[answer.bytes.end..]);
    let begin = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(byte, _)| byte);
    let end = after.char_indices().nth(AROUND).map_or(after.len(), |(byte, _)| byte);
    let (left, right) = (if begin > 0 { "…" } else { "" }, if end < after.len() { "…" } else { "" });
    in_one_line(&format!("{left}{}[{}]{}{right}", &before[begin..], answer.text, &after[..end]))
}

/// A text with its line breaks and tabs as spaces.
fn in_one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_among_its_words() {
        let context = format!("{} Ada lived in\tLondon, é{}", "x".repeat(60), "y".repeat(60));
        let begin = context.find("London").unwrap();
        let answer =
            attentive_tasks::Answer { text: "London".to_owned(), score: 0.5, bytes: begin..begin + 6 };
        let shown = around(&context, &answer);
        assert_eq!(shown, format!("…{} Ada lived in [London], é{}…", "x".repeat(26), "y".repeat(37)));
        let whole = attentive_tasks::Answer { bytes: 0..6, ..answer };
        assert_eq!(around("London", &whole), "[London]");
    }
}
