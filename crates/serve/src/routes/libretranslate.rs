//! LibreTranslate's `POST /translate`.

use crate::app::App;
use crate::body::{Forms, fields};
use crate::decode::{Done, Order};
use crate::html::{Piece, escape, pieces, unescape};
use crate::options::{SearchAsk, within};
use crate::refusal::Refusal;
use attentive_generate::Split;
use axum::Json;
use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request, in LibreTranslate's words; others that it has are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    q: OneOrMany,
    source: String,
    target: String,
    #[serde(default)]
    format: Format,
    alternatives: Option<usize>,
    api_key: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "must be a text or a list of texts")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Text,
    Html,
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    translated_text: OneOrMany,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternatives: Option<Alternatives>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detected_language: Option<Detected>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Alternatives {
    One(Vec<String>),
    Many(Vec<Vec<String>>),
}

/// Nothing is detected here: it is the language that the model reads.
#[derive(Debug, Serialize)]
struct Detected {
    confidence: f32,
    language: String,
}

pub(super) async fn translate(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Answer>, Refusal> {
    let headers = request.headers().clone();
    // A key in the headers is looked at before anything is read.
    if headers.contains_key("authorization") {
        app.keys.check(&headers, None)?;
    }
    let ask: Ask = fields(&app, request, Forms::JsonOrForm).await?;
    app.keys.check(&headers, ask.api_key.as_deref())?;
    let is_auto = ask.source == "auto";
    let chosen = app.model_for((!is_auto).then_some(&*ask.source), &ask.target)?;
    let limits = &app.settings.limits;
    let others = ask.alternatives.unwrap_or(0);
    let n_best = within("alternatives", others.saturating_add(1), limits.results)?;
    let search = SearchAsk { n_best: Some(n_best), ..SearchAsk::default() };
    let options = search.options(&chosen.model.options, limits)?;
    let detected_language = match &chosen.model.languages.source {
        Some(source) if is_auto => Some(Detected { confidence: 100.0, language: source.code.clone() }),
        _ => None,
    };
    let order = Order { chosen, options, prefix: Vec::new(), split: Split::Auto, align: false };
    let texts = match &ask.q {
        OneOrMany::One(text) => std::slice::from_ref(text),
        OneOrMany::Many(texts) => texts,
    };
    if app.settings.log_texts {
        tracing::info!(?texts, "to be translated");
    }
    let mut best = match ask.format {
        Format::Text => translate_texts(&app, &order, texts, n_best).await?,
        Format::Html => translate_html(&app, &order, texts, n_best).await?,
    };
    let asked = others > 0;
    let first = |best: &mut Vec<String>| if best.is_empty() { String::new() } else { best.remove(0) };
    let firsts: Vec<String> = best.iter_mut().map(first).collect();
    let (translated_text, alternatives) = match ask.q {
        OneOrMany::One(_) => {
            let text = firsts.into_iter().next().unwrap_or_default();
            (OneOrMany::One(text), Alternatives::One(best.into_iter().next().unwrap_or_default()))
        }
        OneOrMany::Many(_) => (OneOrMany::Many(firsts), Alternatives::Many(best)),
    };
    Ok(Json(Answer { translated_text, alternatives: asked.then_some(alternatives), detected_language }))
}

/// The translations of each text, best first, each once.
async fn translate_texts(
    app: &Arc<App>,
    order: &Order,
    texts: &[String],
    n_best: usize,
) -> Result<Vec<Vec<String>>, Refusal> {
    let done = app.translate(order, "q", texts).await?;
    Ok(done.into_iter().map(|done| distinct(done, n_best)).collect())
}

fn distinct(done: Done, n_best: usize) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for best in done.best {
        if !texts.contains(&best.text) && texts.len() < n_best {
            texts.push(best.text);
        }
    }
    texts
}

/// The same for HTML: the pieces of text of all documents together.
async fn translate_html(
    app: &Arc<App>,
    order: &Order,
    documents: &[String],
    n_best: usize,
) -> Result<Vec<Vec<String>>, Refusal> {
    app.check("q", documents)?;
    let cut: Vec<Vec<Piece>> = documents.iter().map(|document| pieces(document)).collect();
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => Some(unescape(text)),
        Piece::Markup(_) => None,
    };
    let texts: Vec<String> = cut.iter().flatten().filter_map(text).collect();
    let done = app.all(app.begin(order, &texts, false)?).await?;
    let mut done = done.iter();
    let mut documents = Vec::with_capacity(cut.len());
    for pieces in &cut {
        let mut versions = vec![String::new(); n_best];
        for piece in pieces {
            match piece {
                Piece::Markup(markup) => versions.iter_mut().for_each(|version| version.push_str(markup)),
                Piece::Text(_) => {
                    let best = done.next().map_or(&[][..], |done| &done.best);
                    for (rank, version) in versions.iter_mut().enumerate() {
                        let found = best.get(rank).or(best.last());
                        version.push_str(&escape(found.map_or("", |found| &found.text)));
                    }
                }
            }
        }
        let mut once: Vec<String> = Vec::with_capacity(n_best);
        for version in versions {
            if !once.contains(&version) {
                once.push(version);
            }
        }
        documents.push(once);
    }
    Ok(documents)
}
