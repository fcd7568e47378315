//! Attention within a picture: where each head looks from one patch, or from the class token.

use super::{Ask, Wanted};
use crate::app::App;
use crate::aside;
use crate::attention::rounded;
use crate::given::Given;
use crate::job::Subject;
use crate::model::PictureModel;
use crate::refusal::Refusal;
use attentive_generate::{AttentionMatrix, AttentionSelector};
use attentive_image::{Picture, Problem};
use axum::body::Bytes;
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use std::sync::Arc;

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    model: String,
    /// Rows and columns of patches.
    grid: [usize; 2],
    /// The patch that looks, its row and its column; none for the class token.
    patch: Option<[usize; 2]>,
    attention: Vec<Gaze>,
    /// The part of the picture that has patches, as the model sees it: a data URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
}

/// Where one head looks, or the mean of all heads of a layer.
#[derive(Debug, Serialize)]
struct Gaze {
    layer: usize,
    head: Option<usize>,
    /// The weights of the tokens before the patches: the class token, one of a teacher, registers.
    before: Vec<f32>,
    /// The weights of the patches, row by row.
    weights: Vec<Vec<f32>>,
}

/// Looks into a picture.
pub(super) async fn attention(app: &App, ask: Ask, files: Vec<Bytes>) -> Result<Response, Refusal> {
    for (field, is_asked) in [
        ("text", ask.text.is_some()),
        ("source", ask.source.is_some()),
        ("target", ask.target.is_some()),
        ("translation", ask.translation.is_some()),
        ("translation_tokens", ask.translation_tokens.is_some()),
        ("part", ask.part.is_some()),
        ("vectors", ask.vectors.is_some()),
        ("hidden", ask.hidden.is_some()),
    ] {
        if is_asked {
            return Err(Refusal::field(field, "not supported: the model reads pictures"));
        }
    }
    let (place, model) = app.patch_model(ask.model.as_deref())?;
    let sizes = model.sizes();
    // Weights of all layers would be many: without a word it is the last one.
    let layers = ask.layers.clone().unwrap_or_else(|| vec![sizes.encoder_layers - 1]);
    let (patch, shows) = (ask.patch, ask.return_image == Some(true));
    let given = given(ask.image.clone(), files)?;
    let wanted = Wanted::new(&Ask { layers: Some(layers), ..ask }, &sizes)?;
    let until = app.until();
    let read = move |model: &PictureModel, picture: &Picture| {
        let Some(encoder) = model.encoder() else { return Err(Problem::new("needs a model with patches")) };
        let image = shows.then(|| encoder.seen(picture)).transpose()?.map(|seen| data_url(&seen));
        Ok((encoder.ready(picture)?, image))
    };
    let (pixels, image) = app.read_picture(&model, ("image", 0), given, until, read).await?;
    let Some(encoder) = model.encoder() else { return Err(Refusal::fault()) };
    let grid = encoder.grid(&pixels);
    let token = encoder.token_of(grid, patch).ok_or_else(|| {
        let [rows, columns] = grid;
        let problem = format!("must be [row, column], counted from 0: the picture has {rows} rows and {columns} columns of patches");
        Refusal::field("patch", problem)
    })?;
    wanted.check_picture(encoder.tokens(&pixels))?;
    let seen = app.inspect(place, Subject::Picture(pixels), wanted.views.clone(), until).await?;
    let model = Arc::clone(&model);
    aside::json(move || {
        let gaze = |(selector, matrix): (&AttentionSelector, AttentionMatrix)| {
            Gaze::new(*selector, matrix.row(token), grid)
        };
        let attention = wanted.views.selectors.iter().zip(seen.weights).map(gaze).collect();
        Answer { model: model.name.clone(), grid, patch, attention, image }
    })
    .await
}

impl Gaze {
    fn new(selector: AttentionSelector, weights: &[f32], [rows, columns]: [usize; 2]) -> Gaze {
        let weights: Vec<f32> = weights.iter().map(|weight| rounded(*weight)).collect();
        let (before, patches) = weights.split_at(weights.len() - rows * columns);
        Gaze {
            layer: selector.layer,
            head: selector.head,
            before: before.to_vec(),
            weights: patches.chunks_exact(columns).map(<[f32]>::to_vec).collect(),
        }
    }
}

/// The one picture of a request.
fn given(image: Option<String>, mut files: Vec<Bytes>) -> Result<Given, Refusal> {
    match (image, files.pop()) {
        (Some(_), Some(_)) => Err(Refusal::field("image", "cannot be used together with a file")),
        (Some(text), None) => Ok(Given::Text(text)),
        (None, Some(file)) if files.is_empty() => Ok(Given::File(file)),
        (None, Some(_)) => Err(Refusal::field("image", "must be one picture")),
        (None, None) => Err(Refusal::field(
            "image",
            "is missing: send a picture in base64, or a form with a file in `image`",
        )),
    }
}

fn data_url(picture: &Picture) -> String {
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(picture.to_png()))
}
