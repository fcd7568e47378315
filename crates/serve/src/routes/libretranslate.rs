//! LibreTranslate's `POST /translate` and `POST /detect`.

use crate::app::App;
use crate::body::{Forms, fields};
use crate::detect::{Detected, sample};
use crate::document::Format;
use crate::options::{SearchAsk, within};
use crate::order::{Done, Order};
use crate::refusal::Refusal;
use crate::texts::OneOrMany;
use attentive_tasks::Split;
use attentive_text::language;
use axum::Json;
use axum::extract::{Request, State};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request, in LibreTranslate's words, and `model`, which is ours; others that it has are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    q: OneOrMany,
    source: String,
    target: String,
    #[serde(default)]
    format: Format,
    alternatives: Option<usize>,
    model: Option<String>,
    api_key: Option<String>,
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    translated_text: OneOrMany,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternatives: Option<Alternatives>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detected_language: Option<DetectedOnes>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Alternatives {
    One(Vec<String>),
    Many(Vec<Vec<String>>),
}

/// The language of all texts, once for each if they are a list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum DetectedOnes {
    One(Detected),
    Many(Vec<Detected>),
}

pub(super) async fn translate(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Answer>, Refusal> {
    let ask: Ask = read_with_key(&app, request, |ask: &Ask| ask.api_key.as_deref()).await?;
    let texts = ask.q.as_slice();
    app.check("q", texts)?;
    let is_auto = ask.source == "auto";
    let name = ask.model.as_deref();
    let detected = if is_auto { app.detect_source(name, &ask.target, ask.format, texts)? } else { None };
    let said = (!is_auto).then_some(&*ask.source);
    let source = detected.as_ref().map(|detected| &*detected.language).or(said);
    let chosen = app.model_for(name, source, &ask.target)?;
    let limits = &app.settings.limits;
    let others = ask.alternatives.unwrap_or(0);
    let n_best = within("alternatives", others.saturating_add(1), limits.results)?;
    let search = SearchAsk { n_best: Some(n_best), ..SearchAsk::default() };
    let options = search.options(&chosen.options(), limits)?;
    let order = Order::new(chosen, options, Split::Auto);
    if app.settings.log_texts {
        tracing::info!(?texts, "to be translated");
    }
    let done = app.translate_as(ask.format, &order, "q", texts).await?;
    let mut best: Vec<Vec<String>> = done.into_iter().map(|done| distinct(done, n_best)).collect();
    let asked = others > 0;
    let first = |best: &mut Vec<String>| if best.is_empty() { String::new() } else { best.remove(0) };
    let firsts: Vec<String> = best.iter_mut().map(first).collect();
    let detected_language = detected.map(|detected| match &ask.q {
        OneOrMany::One(_) => DetectedOnes::One(detected),
        OneOrMany::Many(texts) => DetectedOnes::Many(vec![detected; texts.len()]),
    });
    let (translated_text, alternatives) = match ask.q {
        OneOrMany::One(_) => {
            let text = firsts.into_iter().next().unwrap_or_default();
            (OneOrMany::One(text), Alternatives::One(best.into_iter().next().unwrap_or_default()))
        }
        OneOrMany::Many(_) => (OneOrMany::Many(firsts), Alternatives::Many(best)),
    };
    Ok(Json(Answer { translated_text, alternatives: asked.then_some(alternatives), detected_language }))
}

/// Reads a request that may have its key in a field.
async fn read_with_key<T: DeserializeOwned>(
    app: &App,
    request: Request,
    key: impl Fn(&T) -> Option<&str>,
) -> Result<T, Refusal> {
    let headers = request.headers().clone();
    // A key in the headers is looked at before anything is read.
    if headers.contains_key("authorization") {
        app.keys.check(&headers, None)?;
    }
    let ask = fields(app, request, Forms::JsonOrForm).await?;
    app.keys.check(&headers, key(&ask))?;
    Ok(ask)
}

/// A request to detect a language.
#[derive(Debug, Deserialize)]
pub(super) struct DetectAsk {
    q: OneOrMany,
    api_key: Option<String>,
}

/// The language of texts, of all that are detected; the server need not translate from it. A text without words may be in English,
/// as LibreTranslate has it.
pub(super) async fn detect(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Vec<Detected>>, Refusal> {
    let ask: DetectAsk = read_with_key(&app, request, |ask: &DetectAsk| ask.api_key.as_deref()).await?;
    let texts = ask.q.as_slice();
    app.check("q", texts)?;
    let found = language::detect(&sample(Format::Text, texts));
    let found = found.map_or(Detected::new("en", 0.0), |found| Detected::new(found.code, found.confidence));
    Ok(Json(vec![found]))
}

/// The translations of a text, best first, each once.
fn distinct(done: Done, n_best: usize) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for best in done.best {
        if !texts.contains(&best.text) && texts.len() < n_best {
            texts.push(best.text);
        }
    }
    texts
}
