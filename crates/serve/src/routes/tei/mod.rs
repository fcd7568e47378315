//! The addresses of text-embeddings-inference, for clients that have them: `/embed`, `/predict`, `/rerank`, `/info`, `/health`, and
//! `POST /`.

pub(super) mod embed;
pub(super) mod info;
pub(super) mod predict;
pub(super) mod rerank;

use super::{answer, fill_mask, summarize};
use crate::app::App;
use crate::model::Model;
use crate::refusal::Refusal;
use attentive_tasks::Kind;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;

/// `POST /`, where the clients of Hugging Face ask: it is `/embed` if there is an embedding model, else `/predict`, else `/rerank`, else
/// `/v1/fill-mask`, else `/v1/answer`, else `/v1/summarize`. The page, which has the same address, is open to everybody, so the key is looked for here.
pub(super) async fn root(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    app.keys.check(request.headers(), None)?;
    let models = app.models()?;
    let is_there = |kind: &Kind| models.iter().filter_map(Model::encoder).any(|model| model.kind() == *kind);
    let kinds = [Kind::Embed, Kind::Classify, Kind::Rerank, Kind::FillMask, Kind::Answer];
    match kinds.into_iter().find(is_there) {
        Some(Kind::Classify) => predict::predict(State(app), request).await,
        Some(Kind::Rerank) => rerank::rerank(State(app), request).await,
        Some(Kind::FillMask) => fill_mask::fill(State(app), request).await,
        Some(Kind::Answer) => answer::answer(State(app), request).await,
        None if app.summarizer(None).is_ok() => summarize::summarize(State(app), request).await,
        _ => embed::embed(State(app), request).await,
    }
}
