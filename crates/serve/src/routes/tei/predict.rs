//! `POST /predict`: classes of texts, or of pairs of texts.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::model::EncoderModel;
use crate::refusal::Refusal;
use crate::texts::Source;
use crate::token::finite;
use attentive_tasks::Kind;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request, and `model`, which is ours.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Ask {
    inputs: Inputs,
    truncate: Option<bool>,
    raw_scores: Option<bool>,
    model: Option<String>,
}

/// A text; a list of one text, or of two that are a pair; or a list of such lists.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text, a pair of texts, or a list of lists of one text or of a pair")]
enum Inputs {
    One(String),
    List(Vec<String>),
    Batch(Vec<Vec<String>>),
}

/// A label and its score.
#[derive(Debug, Serialize)]
struct Prediction {
    score: f32,
    label: String,
}

/// Of one text, or of each of a batch.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    One(Vec<Prediction>),
    Batch(Vec<Vec<Prediction>>),
}

pub(in crate::routes) async fn predict(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::Classify)?;
    let (sources, is_batch) = match ask.inputs {
        Inputs::One(text) => (vec![Source::Text(text)], false),
        Inputs::List(list) if list.is_empty() => (Vec::new(), false),
        Inputs::List(list) => (vec![source(list)?], false),
        Inputs::Batch(lists) => (lists.into_iter().map(source).collect::<Result<_, _>>()?, true),
    };
    let encoded = app.encode(&asked, "inputs", sources, ask.truncate == Some(true)).await?;
    let raw = ask.raw_scores == Some(true);
    aside::json(move || {
        let mut all: Vec<_> =
            encoded.numbers.iter().map(|logits| predictions(&asked.model, logits, raw)).collect();
        if is_batch { Answer::Batch(all) } else { Answer::One(all.pop().unwrap_or_default()) }
    })
    .await
}

/// One text or a pair.
fn source(list: Vec<String>) -> Result<Source, Refusal> {
    let count = list.len();
    let mut texts = list.into_iter();
    match (texts.next(), texts.next(), texts.next()) {
        (Some(text), None, _) => Ok(Source::Text(text)),
        (Some(first), Some(second), None) => Ok(Source::Pair(first, second)),
        _ => {
            let problem = format!(
                "a list has one text, or two that are a pair, but here it has {count}; a batch is a list of such lists"
            );
            Err(Refusal::field("inputs", problem))
        }
    }
}

/// The labels, best first.
fn predictions(model: &EncoderModel, logits: &[f32], raw: bool) -> Vec<Prediction> {
    let ranked = model.ranked(logits, raw);
    ranked.into_iter().map(|(label, score)| Prediction { score: finite(score), label }).collect()
}
