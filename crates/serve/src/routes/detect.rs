//! Our own `POST /v1/detect`: what is in pictures, and where, as COCO writes it.

use crate::app::App;
use crate::aside;
use crate::body::{WithFiles, with_files};
use crate::refusal::Refusal;
use crate::see::pictures_of;
use crate::texts::TextsOrTokens;
use attentive_image::boxes::Detection;
use attentive_tasks::{Detected, PictureKind};
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is less certain is left out, unless a request says otherwise.
const THRESHOLD: f64 = 0.5;

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    model: Option<String>,
    /// Pictures in base64; the files of a form take their place.
    input: Option<TextsOrTokens>,
    threshold: Option<f64>,
}

/// A thing, as `attentive detect --json` prints it: `image_id` is the number of the picture, counted from 1, and `category_id` that of
/// the class in `config.json`.
#[derive(Debug, Serialize)]
struct Thing {
    #[serde(flatten)]
    detection: Detection,
    label: String,
}

pub(super) async fn detect(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let WithFiles { fields: ask, files, place } = with_files::<Ask>(&app, request).await?;
    let threshold = ask.threshold.unwrap_or(THRESHOLD);
    if !(0.0..=1.0).contains(&threshold) {
        return Err(Refusal::field("threshold", "must be a number from 0 to 1"));
    }
    let asked = app.picture_model(ask.model.as_deref(), PictureKind::Detect)?;
    let seen = app.see(&asked, "input", pictures_of(ask.input, files)?).await?;
    drop(place);
    aside::json(move || {
        let labels = asked.model.labels().unwrap_or_default();
        let mut things = Vec::new();
        for ((image_id, picture), outputs) in (1..).zip(&*seen.pictures).zip(&seen.numbers) {
            for Detected { class, score, bbox } in asked.model.things(outputs, picture.size, threshold) {
                let detection = Detection { image_id, category_id: class as i64, bbox, score };
                things.push(Thing { detection, label: labels[class].clone() });
            }
        }
        things
    })
    .await
}
