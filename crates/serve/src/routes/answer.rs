//! `POST /v1/answer`: words of a text that answer a question, asked and answered as by the Inference API of Hugging Face.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::encode::Encoded;
use crate::model::EncoderModel;
use crate::options::within;
use crate::refusal::Refusal;
use crate::texts::Source;
use crate::token::finite;
use attentive_tasks::{Asking, Kind, best_answers};
use attentive_text::tokenizer::Encoding;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request, and `model`, which is ours. What would change the answer, and cannot be had, is refused.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    inputs: Inputs,
    parameters: Option<Parameters>,
    model: Option<String>,
}

/// A question, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be an object with `question` and `context`, or a list of such objects")]
enum Inputs {
    One(Question),
    Many(Vec<Question>),
}

/// A question, and the text to look for its answer in.
#[derive(Debug, Clone, Deserialize)]
struct Question {
    question: String,
    context: String,
}

/// The words of transformers for how answers are looked for.
#[derive(Debug, Default, Deserialize)]
struct Parameters {
    top_k: Option<usize>,
    max_seq_len: Option<usize>,
    doc_stride: Option<usize>,
    max_answer_len: Option<usize>,
    handle_impossible_answer: Option<bool>,
    align_to_words: Option<bool>,
    max_question_len: Option<usize>,
}

/// An answer, with the characters of the text that it is.
#[derive(Debug, Serialize)]
struct Answer {
    score: f32,
    start: usize,
    end: usize,
    answer: String,
}

/// The best answer, or a list of them if more than one is asked for.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answers {
    Best(Answer),
    List(Vec<Answer>),
}

/// Of one question, or of each of a list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Reply {
    One(Answers),
    Many(Vec<Answers>),
}

/// The most answers, the most tokens of one, and of a window.
const MOST: usize = 1000;
const MOST_TOKENS: usize = 1000;
const MOST_WINDOW: usize = 1_000_000;

pub(super) async fn answer(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::Answer)?;
    let asking = ask.parameters.unwrap_or_default().asking()?;
    let is_list = matches!(ask.inputs, Inputs::Many(_));
    let questions: Arc<[Question]> = match ask.inputs {
        Inputs::One(one) => [one].into(),
        Inputs::Many(many) => many.into(),
    };
    let sources: Vec<Source> =
        questions.iter().map(|one| Source::Pair(one.question.clone(), one.context.clone())).collect();
    app.check_sources("inputs", &sources)?;
    let reading = (Arc::clone(&asked.model), Arc::clone(&questions));
    let most = app.queue.size();
    let read = move || windows(&reading.0, &reading.1, &asking, most);
    let (encoded, counts) = app.encode_read(&asked, "inputs", read).await?;
    aside::json(move || {
        let mut all = answers(&questions, &encoded, &counts, &asking);
        match (is_list, all.len()) {
            (false, 1) => Reply::One(all.remove(0)),
            _ => Reply::Many(all),
        }
    })
    .await
}

impl Parameters {
    fn asking(&self) -> Result<Asking, Refusal> {
        if self.align_to_words == Some(false) {
            return Err(Refusal::field(
                "parameters.align_to_words",
                "not supported: answers are whole words",
            ));
        }
        if self.max_question_len.is_some() {
            return Err(Refusal::field(
                "parameters.max_question_len",
                "not supported: a question is read as a whole",
            ));
        }
        let usual = Asking::default();
        let limited = |field: &str, asked: Option<usize>, usual: usize, most: usize| match asked {
            Some(asked) => within(&format!("parameters.{field}"), asked, most),
            None => Ok(usual),
        };
        Ok(Asking {
            window: limited("max_seq_len", self.max_seq_len, usual.window, MOST_WINDOW)?,
            overlap: limited("doc_stride", self.doc_stride, usual.overlap, MOST_WINDOW)?,
            longest: limited("max_answer_len", self.max_answer_len, usual.longest, MOST_TOKENS)?,
            count: limited("top_k", self.top_k, usual.count, MOST)?,
            may_be_empty: self.handle_impossible_answer == Some(true),
        })
    }
}

/// What is read of all questions, and how many windows each has. Windows that overlap much may be thousands.
fn windows(
    model: &EncoderModel,
    questions: &[Question],
    asking: &Asking,
    most: usize,
) -> Result<(Vec<Encoding>, Vec<usize>), Refusal> {
    let answerer = model.answerer().ok_or_else(Refusal::fault)?;
    let (mut all, mut counts) = (Vec::new(), Vec::with_capacity(questions.len()));
    for (number, Question { question, context }) in questions.iter().enumerate() {
        let own = answerer.windows(number, question, context, asking);
        let own = own.map_err(|error| Refusal::of_text("inputs", error))?;
        counts.push(own.len());
        all.extend(own);
        if all.len() > most {
            let problem = format!(
                "the questions read more than {most} windows of text: send fewer, or a smaller `doc_stride`"
            );
            return Err(Refusal::too_large("inputs", problem));
        }
    }
    Ok((all, counts))
}

fn answers(questions: &[Question], encoded: &Encoded, counts: &[usize], asking: &Asking) -> Vec<Answers> {
    let mut end = 0;
    let answers = |(Question { context, .. }, count): (&Question, &usize)| {
        let own = end..end + count;
        end = own.end;
        let found = best_answers(context, &encoded.texts[own.clone()], &encoded.numbers[own], asking);
        let characters = |byte: usize| context[..byte].chars().count();
        let told = |found: attentive_tasks::Answer| Answer {
            score: finite(found.score),
            start: characters(found.bytes.start),
            end: characters(found.bytes.end),
            answer: found.text,
        };
        let mut found: Vec<Answer> = found.into_iter().map(told).collect();
        match (asking.count, found.len()) {
            (1, 1) => Answers::Best(found.remove(0)),
            _ => Answers::List(found),
        }
    };
    questions.iter().zip(counts).map(answers).collect()
}
