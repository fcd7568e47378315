//! Our own `POST /v1/tag`: the entities of texts, and the label of each word.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::refusal::Refusal;
use crate::texts::{OneOrMany, Source};
use attentive_tasks::{Kind, Tagged};
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    model: Option<String>,
    text: OneOrMany,
    truncate: Option<bool>,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    model: String,
    /// Of each text.
    tagged: Vec<Text>,
}

#[derive(Debug, Serialize)]
struct Text {
    entities: Vec<Entity>,
    words: Vec<Word>,
}

/// An entity, with the keys of transformers.
#[derive(Debug, Serialize)]
struct Entity {
    entity_group: String,
    #[serde(flatten)]
    span: Span,
}

#[derive(Debug, Serialize)]
struct Word {
    label: String,
    #[serde(flatten)]
    span: Span,
}

/// A part of a text. `start` and `end` count characters from 0.
#[derive(Debug, Serialize)]
struct Span {
    score: f32,
    word: String,
    start: usize,
    end: usize,
}

pub(super) async fn tag(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::Tag)?;
    let texts = ask.text.into_vec();
    let sources = texts.iter().cloned().map(Source::Text).collect();
    let encoded = app.encode(&asked, "text", sources, ask.truncate == Some(true)).await?;
    aside::json(move || {
        let read = encoded.texts.iter().zip(&encoded.numbers);
        let tagged = texts
            .iter()
            .zip(read)
            .map(|(text, (read, logits))| written(text, asked.model.tagged(read, logits)));
        Answer { model: asked.model.name.clone(), tagged: tagged.collect() }
    })
    .await
}

/// What is said of a text.
fn written(text: &str, tagged: Tagged) -> Text {
    let characters = |byte: usize| text[..byte].chars().count();
    let span = |score: f32, bytes: Range<usize>| Span {
        score,
        word: text[bytes.clone()].to_owned(),
        start: characters(bytes.start),
        end: characters(bytes.end),
    };
    let entities = tagged.entities.into_iter();
    let words = tagged.words.into_iter();
    Text {
        entities: entities
            .map(|one| Entity { entity_group: one.label, span: span(one.score, one.bytes) })
            .collect(),
        words: words.map(|one| Word { label: one.label, span: span(one.score, one.bytes) }).collect(),
    }
}
