//! `POST /embed`: vectors of texts.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::refusal::Refusal;
use crate::texts::{OneOrMany, Source};
use attentive_tasks::Kind;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;

/// The request, and `model`, which is ours. What would change the vectors, and cannot be had, is refused.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Ask {
    inputs: OneOrMany,
    truncate: Option<bool>,
    normalize: Option<bool>,
    model: Option<String>,
    dimensions: Option<usize>,
    prompt_name: Option<String>,
    truncation_direction: Option<Direction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Direction {
    #[serde(alias = "left")]
    Left,
    #[serde(alias = "right")]
    Right,
}

pub(in crate::routes) async fn embed(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::Embed)?;
    let width = asked.model.encoder().model().config().d_model;
    for (field, is_asked, reason) in [
        (
            "dimensions",
            ask.dimensions.is_some_and(|dimensions| dimensions != width),
            format!("vectors have {width} numbers"),
        ),
        ("prompt_name", ask.prompt_name.is_some(), "write the prompt before the text".to_owned()),
        (
            "truncation_direction",
            ask.truncation_direction == Some(Direction::Left),
            "a text is cut at its end".to_owned(),
        ),
    ] {
        if is_asked {
            return Err(Refusal::field(field, format!("not supported: {reason}")));
        }
    }
    let sources = ask.inputs.into_vec().into_iter().map(Source::Text).collect();
    let encoded = app.encode(&asked, "inputs", sources, ask.truncate == Some(true)).await?;
    let normalise = ask.normalize.unwrap_or(true);
    aside::json(move || {
        let vectors = asked.model.finished(encoded.numbers, Some(normalise));
        vectors.rows().map(<[f32]>::to_vec).collect::<Vec<_>>()
    })
    .await
}
