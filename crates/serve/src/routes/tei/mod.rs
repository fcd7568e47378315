//! The addresses of text-embeddings-inference, for clients that have them: `/embed`, `/predict`, `/rerank`, `/info`, `/health`, and
//! `POST /`.

pub(super) mod embed;
pub(super) mod info;
pub(super) mod predict;
pub(super) mod rerank;

use crate::app::App;
use crate::refusal::Refusal;
use attentive_tasks::Kind;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;

/// `POST /`, where the clients of Hugging Face ask: it is `/embed` if there is an embedding model, else `/predict`, else `/rerank`. The
/// page, which has the same address, is open to everybody, so the key is looked for here.
pub(super) async fn root(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    app.keys.check(request.headers(), None)?;
    let first =
        [Kind::Embed, Kind::Classify, Kind::Rerank].into_iter().find(|&kind| app.encoder(None, kind).is_ok());
    match first {
        Some(Kind::Classify) => predict::predict(State(app), request).await,
        Some(Kind::Rerank) => rerank::rerank(State(app), request).await,
        _ => embed::embed(State(app), request).await,
    }
}
