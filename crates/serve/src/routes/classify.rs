//! Our own `POST /v1/classify`: the classes of texts, or of pictures.

use crate::app::App;
use crate::aside;
use crate::body::{WithFiles, with_files};
use crate::model::Model;
use crate::refusal::Refusal;
use crate::see::{has_pictures, pictures_of};
use crate::texts::TextsOrTokens;
use crate::token::finite;
use attentive_tasks::{Kind, PictureKind};
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    model: Option<String>,
    /// Texts, or pictures in base64; the files of a form take its place.
    input: Option<TextsOrTokens>,
    /// How many labels are wanted of each; all without a word.
    top_k: Option<usize>,
    truncate: Option<bool>,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    object: &'static str,
    data: Vec<Classified>,
    model: String,
}

/// What is said of a text or a picture.
#[derive(Debug, Serialize)]
struct Classified {
    index: usize,
    label: String,
    score: f32,
    /// The best labels, this one first.
    scores: Vec<Score>,
}

#[derive(Debug, Serialize)]
struct Score {
    label: String,
    score: f32,
}

pub(super) async fn classify(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let WithFiles { fields: ask, files, place } = with_files::<Ask>(&app, request).await?;
    if ask.top_k == Some(0) {
        return Err(Refusal::field("top_k", "must be at least 1"));
    }
    let (name, top) = (ask.model.as_deref(), ask.top_k.unwrap_or(usize::MAX));
    let reads_texts = |model: &Model| model.encoder().is_some_and(|model| model.can(Kind::Classify));
    if has_pictures(ask.input.as_ref(), &files) || app.is_for_pictures(name, reads_texts)? {
        if ask.truncate.is_some() {
            return Err(Refusal::field("truncate", "not supported: pictures are not cut"));
        }
        let asked = app.picture_model(name, PictureKind::Classify)?;
        let seen = app.see(&asked, "input", pictures_of(ask.input, files)?).await?;
        drop(place);
        return aside::json(move || {
            let ranked = seen.numbers.iter().map(|logits| asked.model.ranked(logits).scores);
            Answer::new(asked.model.name.clone(), ranked, top)
        })
        .await;
    }
    let asked = app.encoder(name, Kind::Classify)?;
    let input =
        ask.input.ok_or_else(|| Refusal::field("input", "is missing: send a text or a list of texts"))?;
    let encoded = app.encode(&asked, "input", input.sources(), ask.truncate == Some(true)).await?;
    aside::json(move || {
        let ranked = encoded.numbers.iter().map(|logits| asked.model.ranked(logits, false));
        Answer::new(asked.model.name.clone(), ranked, top)
    })
    .await
}

impl Answer {
    /// Of the labels of each, best first, with their scores.
    fn new(model: String, ranked: impl Iterator<Item = Vec<(String, f32)>>, top: usize) -> Answer {
        let classified = |(index, ranked): (usize, Vec<(String, f32)>)| {
            let score = |(label, score)| Score { label, score: finite(score) };
            let scores: Vec<Score> = ranked.into_iter().take(top).map(score).collect();
            let first = scores.first();
            let (label, score) =
                first.map_or_else(Default::default, |first| (first.label.clone(), first.score));
            Classified { index, label, score, scores }
        };
        Answer { object: "list", data: ranked.enumerate().map(classified).collect(), model }
    }
}
