//! OpenAI's `POST /v1/embeddings`: vectors of texts.
//!
//! A vector is made as the folder of the model says, so that it is that of `attentive embed`. As base64 it is its numbers one after
//! the other, each a little-endian float32; OpenAI's own clients ask for that.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::refusal::Refusal;
use crate::texts::TextsOrTokens;
use attentive_tasks::Kind;
use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request, in OpenAI's words. `user` has no meaning here and is ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    model: Option<String>,
    input: TextsOrTokens,
    encoding_format: Option<Format>,
    dimensions: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Float,
    Base64,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    object: &'static str,
    data: Vec<Embedding>,
    model: String,
    usage: Usage,
}

#[derive(Debug, Serialize)]
struct Embedding {
    object: &'static str,
    index: usize,
    embedding: Numbers,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Numbers {
    Float(Vec<f32>),
    Base64(String),
}

#[derive(Debug, Serialize)]
struct Usage {
    prompt_tokens: usize,
    total_tokens: usize,
}

pub(super) async fn embed(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::Embed)?;
    let width = asked.model.encoder().model().config().d_model;
    if let Some(dimensions) = ask.dimensions.filter(|&dimensions| dimensions != width) {
        let problem =
            format!("the vectors of this model have {width} numbers, and cannot have {dimensions} instead");
        return Err(Refusal::field("dimensions", problem));
    }
    let name = ask.model.unwrap_or_else(|| asked.model.name.clone());
    let encoded = app.encode(&asked, "input", ask.input.sources(), false).await?;
    let format = ask.encoding_format.unwrap_or(Format::Float);
    aside::json(move || {
        let tokens = encoded.tokens();
        let vectors = asked.model.finished(encoded.numbers, None);
        let embedding = |(index, vector): (usize, &[f32])| Embedding {
            object: "embedding",
            index,
            embedding: match format {
                Format::Float => Numbers::Float(vector.to_vec()),
                Format::Base64 => {
                    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                    Numbers::Base64(BASE64_STANDARD.encode(bytes))
                }
            },
        };
        let data = vectors.rows().enumerate().map(embedding).collect();
        let usage = Usage { prompt_tokens: tokens, total_tokens: tokens };
        Answer { object: "list", data, model: name, usage }
    })
    .await
}
