//! `POST /v1/fill-mask`: words for the masks of texts, asked and answered as by the Inference API of Hugging Face.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::encode::Encoded;
use crate::model::EncoderModel;
use crate::options::within;
use crate::refusal::Refusal;
use crate::texts::{OneOrMany, Source};
use crate::token::finite;
use attentive_tasks::{Guess, Kind};
use attentive_text::tokenizer::Encoding;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The request, and `model` and `truncate`, which are ours. What would change the answer, and cannot be had, is refused.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    inputs: OneOrMany,
    parameters: Option<Parameters>,
    model: Option<String>,
    truncate: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    top_k: Option<usize>,
    targets: Option<Value>,
}

/// A word for a mask, with the keys of transformers.
#[derive(Debug, Serialize)]
struct Word {
    score: f32,
    token: u32,
    token_str: String,
    sequence: String,
}

/// The words for a text with one mask, or for each mask of a text with several.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Filled {
    One(Vec<Word>),
    Several(Vec<Vec<Word>>),
}

/// Of one text, or of each of a list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Text(Filled),
    Texts(Vec<Filled>),
}

/// How many words a mask gets where a request says nothing else, and at most.
const USUAL: usize = 5;
const MOST: usize = 1000;
/// The most masks of all texts: each has a number for every token.
const MOST_MASKS: usize = 256;

pub(super) async fn fill(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::FillMask)?;
    let Parameters { top_k, targets } = ask.parameters.unwrap_or_default();
    if targets.is_some_and(|targets| !targets.is_null()) {
        return Err(Refusal::field("parameters.targets", "not supported: all tokens are compared"));
    }
    let count = within("parameters.top_k", top_k.unwrap_or(USUAL), MOST)?;
    let is_list = matches!(ask.inputs, OneOrMany::Many(_));
    let sources = ask.inputs.into_vec().into_iter().map(Source::Text).collect();
    let truncate = ask.truncate == Some(true);
    let check = |texts: &[Encoding]| check(&asked.model, texts);
    let encoded = app.encode_checked(&asked, "inputs", sources, truncate, check).await?;
    let answer = aside::aside(move || answer(&asked.model, &encoded, count, is_list)).await?;
    aside::json(move || answer).await
}

/// Whether each text has a mask, and all together not too many.
fn check(model: &EncoderModel, texts: &[Encoding]) -> Result<(), Refusal> {
    let filler = model.filler().ok_or_else(Refusal::fault)?;
    let masks = |(number, text)| filler.masks(number, text).map(|masks| masks.len());
    let masks = texts.iter().enumerate().map(masks).sum::<Result<usize, _>>();
    match masks.map_err(|error| Refusal::field("inputs", error))? {
        masks if masks > MOST_MASKS => {
            let problem =
                format!("there are {masks} masks, but the maximum is {MOST_MASKS}: send fewer texts");
            Err(Refusal::too_large("inputs", problem))
        }
        _ => Ok(()),
    }
}

fn answer(model: &EncoderModel, encoded: &Encoded, count: usize, is_list: bool) -> Result<Answer, Refusal> {
    let filler = model.filler().ok_or_else(Refusal::fault)?;
    let mut all = Vec::with_capacity(encoded.texts.len());
    for (text, logits) in encoded.texts.iter().zip(&encoded.numbers) {
        let masks = filler.guesses(text, logits, count)?.into_iter();
        let mut masks: Vec<Vec<Word>> =
            masks.map(|mask| mask.into_iter().map(Word::from).collect()).collect();
        let one = if masks.len() == 1 { masks.pop() } else { None };
        all.push(one.map_or_else(|| Filled::Several(masks), Filled::One));
    }
    match all.pop() {
        Some(only) if !is_list => Ok(Answer::Text(only)),
        last => Ok(Answer::Texts(all.into_iter().chain(last).collect())),
    }
}

impl From<Guess> for Word {
    fn from(Guess { token, word, score, sequence }: Guess) -> Word {
        Word { score: finite(score), token, token_str: word, sequence }
    }
}
