//! The description of the server's interface, for programs: `/openapi.json`.

use crate::app::App;
use crate::settings::Limits;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use std::sync::Arc;

const DESCRIPTION: &str = include_str!("openapi.json");

/// A JSON pointer into the description, and the limit of the server that belongs there.
type LimitField = (&'static str, fn(&Limits) -> usize);

/// All fields with limits.
const LIMITS: [LimitField; 24] = [
    ("/components/schemas/Text/maxLength", |limits| limits.characters),
    ("/components/schemas/Texts/maxItems", |limits| limits.texts),
    ("/components/schemas/TranslateRequest/properties/beam/maximum", |limits| limits.beam),
    ("/components/schemas/TranslateRequest/properties/n_best/maximum", |limits| limits.results),
    ("/components/schemas/TranslateRequest/properties/alternatives/maximum", |limits| limits.results),
    ("/components/schemas/LibreTranslateRequest/properties/alternatives/maximum", |limits| {
        limits.results - 1
    }),
    ("/components/schemas/LibreTranslateForm/properties/alternatives/maximum", |limits| limits.results - 1),
    ("/components/schemas/CompletionRequest/properties/n/maximum", |limits| limits.results),
    ("/components/schemas/CompletionRequest/properties/best_of/maximum", |limits| limits.results),
    ("/components/schemas/Prompt/anyOf/2/maxItems", |limits| limits.texts),
    ("/components/schemas/NextRequest/properties/text/maxLength", |limits| limits.characters),
    ("/components/schemas/ChatRequest/properties/n/maximum", |limits| limits.results),
    ("/components/schemas/ChatMessage/properties/content/anyOf/0/maxLength", |limits| limits.characters),
    ("/components/schemas/AttentionRequest/properties/translation/maxLength", |limits| limits.characters),
    ("/components/schemas/TranslateRequest/properties/prefix/maxLength", |limits| limits.characters),
    ("/components/schemas/EncoderText/maxLength", |limits| limits.characters),
    ("/components/schemas/EncoderTexts/maxItems", |limits| limits.texts),
    ("/components/schemas/EmbeddingsRequest/properties/input/anyOf/5/maxItems", |limits| limits.texts),
    ("/components/schemas/AnswerRequest/properties/inputs/anyOf/1/maxItems", |limits| limits.texts),
    ("/components/schemas/PictureTexts/maxItems", |limits| limits.pictures),
    ("/components/schemas/PictureFiles/anyOf/1/maxItems", |limits| limits.pictures),
    ("/components/schemas/ClassifyRequest/properties/input/anyOf/5/maxItems", |limits| limits.texts),
    ("/components/schemas/PairText/maxLength", |limits| limits.characters),
    ("/components/schemas/PredictRequest/properties/inputs/anyOf/2/maxItems", |limits| limits.texts),
];

/// The description, with the limits of this server.
pub(crate) async fn description(State(app): State<Arc<App>>) -> Json<Value> {
    let mut description: Value = serde_json::from_str(DESCRIPTION).unwrap_or_default();
    for (place, limit) in LIMITS {
        if let Some(value) = description.pointer_mut(place) {
            *value = json!(limit(&app.settings.limits));
        }
    }
    description["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    Json(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_a_place_for_every_limit() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        for (place, _) in LIMITS {
            assert!(description.pointer(place).is_some_and(Value::is_number), "{place}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        for (at, _) in DESCRIPTION.match_indices("\"#/") {
            let reference = DESCRIPTION[at + 2..].split('"').next().unwrap();
            assert!(description.pointer(reference).is_some(), "{reference}");
        }
    }
}
