//! OpenAI's `POST /v1/embeddings`: vectors of texts, or of pictures.
//!
//! A vector is made as the folder of the model says, so that it is that of `attentive embed`. As base64 it is its numbers one after
//! the other, each a little-endian float32; OpenAI's own clients ask for that.

use crate::app::App;
use crate::aside;
use crate::body::{WithFiles, with_files};
use crate::model::Model;
use crate::refusal::Refusal;
use crate::see::{has_pictures, pictures_of};
use crate::texts::TextsOrTokens;
use attentive_tasks::{Kind, PictureKind, Vectors};
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
    /// Texts, or pictures in base64; the files of a form take its place.
    input: Option<TextsOrTokens>,
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
    let WithFiles { fields: ask, files, place } = with_files::<Ask>(&app, request).await?;
    let name = ask.model.as_deref();
    let format = ask.encoding_format.unwrap_or(Format::Float);
    let reads_texts = |model: &Model| model.encoder().is_some_and(|model| model.can(Kind::Embed));
    if has_pictures(ask.input.as_ref(), &files) || app.is_for_pictures(name, reads_texts)? {
        let asked = app.picture_model(name, PictureKind::Embed)?;
        check_width(ask.dimensions, asked.model.sizes().d_model)?;
        let seen = app.see(&asked, "input", pictures_of(ask.input, files)?).await?;
        drop(place);
        return aside::json(move || {
            let tokens = seen.pictures.iter().map(|picture| asked.model.tokens(picture)).sum();
            let name = ask.model.unwrap_or_else(|| asked.model.name.clone());
            Answer::new(name, &asked.model.finished(seen.numbers), tokens, format)
        })
        .await;
    }
    let asked = app.encoder(name, Kind::Embed)?;
    check_width(ask.dimensions, asked.model.encoder().model().config().d_model)?;
    let input =
        ask.input.ok_or_else(|| Refusal::field("input", "is missing: send a text or a list of texts"))?;
    let encoded = app.encode(&asked, "input", input.sources(), false).await?;
    aside::json(move || {
        let tokens = encoded.tokens();
        let name = ask.model.unwrap_or_else(|| asked.model.name.clone());
        Answer::new(name, &asked.model.finished(encoded.numbers, None), tokens, format)
    })
    .await
}

/// Refuses another width than that of the model.
fn check_width(dimensions: Option<usize>, width: usize) -> Result<(), Refusal> {
    match dimensions.filter(|&dimensions| dimensions != width) {
        None => Ok(()),
        Some(dimensions) => Err(Refusal::field(
            "dimensions",
            format!("the vectors of this model have {width} numbers, and cannot have {dimensions} instead"),
        )),
    }
}

impl Answer {
    fn new(model: String, vectors: &Vectors, tokens: usize, format: Format) -> Answer {
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
        Answer { object: "list", data, model, usage }
    }
}
