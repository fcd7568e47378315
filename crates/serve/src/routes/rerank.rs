//! Cohere's `POST /v1/rerank`: documents in the order of how well they fit a query.

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

/// The request. Documents that are too long are cut, as there; how long they may be says the model.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    model: Option<String>,
    query: String,
    documents: Vec<Document>,
    top_n: Option<usize>,
    return_documents: Option<bool>,
    /// Not supported.
    max_tokens_per_doc: Option<usize>,
    rank_fields: Option<Vec<String>>,
}

/// A text, or an object with a text.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "must be a text, or an object with `text`")]
enum Document {
    Text(String),
    Object { text: String },
}

impl Document {
    fn text(&self) -> &str {
        match self {
            Document::Text(text) | Document::Object { text } => text,
        }
    }
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    model: String,
    results: Vec<Ranked>,
    usage: Usage,
}

/// A document, by its place in the request.
#[derive(Debug, Serialize)]
struct Ranked {
    index: usize,
    relevance_score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Returned>,
}

#[derive(Debug, Serialize)]
struct Returned {
    text: String,
}

#[derive(Debug, Serialize)]
struct Usage {
    total_tokens: usize,
}

pub(super) async fn rerank(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let asked = app.encoder(ask.model.as_deref(), Kind::Rerank)?;
    if ask.top_n == Some(0) {
        return Err(Refusal::field("top_n", "at least 1 document is returned"));
    }
    if ask.max_tokens_per_doc.is_some() {
        let problem = "not supported: a document is cut where the model has read all that it can";
        return Err(Refusal::field("max_tokens_per_doc", problem));
    }
    if ask.rank_fields.is_some_and(|fields| fields != ["text"]) {
        return Err(Refusal::field("rank_fields", "not supported: only the field `text` is read"));
    }
    let pair = |document: &Document| Source::Pair(ask.query.clone(), document.text().to_owned());
    let sources = ask.documents.iter().map(pair).collect();
    let encoded = app.encode(&asked, "documents", sources, true).await?;
    aside::json(move || {
        let mut ranks = asked.model.by_rank(&encoded.numbers, false);
        ranks.truncate(ask.top_n.unwrap_or(usize::MAX));
        let document = |index: usize| Returned { text: ask.documents[index].text().to_owned() };
        let returned = ask.return_documents == Some(true);
        let results = ranks.into_iter().map(|(index, score)| Ranked {
            index,
            relevance_score: finite(score),
            document: returned.then(|| document(index)),
        });
        Answer {
            model: asked.model.name.clone(),
            results: results.collect(),
            usage: Usage { total_tokens: encoded.tokens() },
        }
    })
    .await
}
