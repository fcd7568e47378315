//! `POST /rerank`: texts in the order of how well they fit a query.

use crate::app::App;
use crate::aside;
use crate::body::json;

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
    query: String,
    texts: Vec<String>,
    truncate: Option<bool>,
    raw_scores: Option<bool>,
    return_text: Option<bool>,
    model: Option<String>,
}

/// A text, by its place in the request.
#[derive(Debug, Serialize)]
struct Rank {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    score: f32,
}

pub(in crate::routes) async fn rerank(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::Rerank)?;
    let sources = ask.texts.iter().map(|text| Source::Pair(ask.query.clone(), text.clone())).collect();
    let encoded = app.encode(&asked, "texts", sources, ask.truncate == Some(true)).await?;
    aside::json(move || {
        let text = |index: usize| (ask.return_text == Some(true)).then(|| ask.texts[index].clone());
        let ranks = asked.model.by_rank(&encoded.numbers, ask.raw_scores == Some(true)).into_iter();
        ranks
            .map(|(index, score)| Rank { index, text: text(index), score: finite(score) })
            .collect::<Vec<_>>()
    })
    .await
}
