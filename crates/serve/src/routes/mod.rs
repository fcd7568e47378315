//! The addresses of the server, one file for each group.

mod answer;
mod attention;
mod chat;
mod classify;
mod completions;
mod detect;
mod embeddings;
mod fill_mask;
mod health;
mod languages;
mod libretranslate;
mod logprobs;
mod models;
mod next;
mod openai;
mod rerank;
mod summarize;
mod tag;
mod tei;
mod translate;

use crate::app::App;
use crate::cors::Origins;
use crate::finish::{Finish, finish};
use crate::hosts::Hosts;
use crate::refusal::Refusal;
use crate::{openapi, page};
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::Arc;

/// All of them.
pub(crate) fn router(app: &Arc<App>, origins: Origins, hosts: Hosts) -> Router {
    // These need a key, if the server has keys.
    let guarded = Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/completions", post(completions::complete))
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/next", post(next::next))
        .route("/v1/embeddings", post(embeddings::embed))
        .route("/v1/classify", post(classify::classify))
        .route("/v1/detect", post(detect::detect))
        .route("/v1/tag", post(tag::tag))
        .route("/v1/fill-mask", post(fill_mask::fill))
        .route("/v1/answer", post(answer::answer))
        .route("/v1/summarize", post(summarize::summarize))
        .route("/v1/translate", post(translate::translate))
        .route("/v1/attention", post(attention::attention))
        .route("/embed", post(tei::embed::embed))
        .route("/predict", post(tei::predict::predict))
        .route("/rerank", post(tei::rerank::rerank))
        .route("/v1/rerank", post(rerank::rerank))
        .route("/info", get(tei::info::info))
        .route_layer(from_fn_with_state(Arc::clone(app), guard));
    // These are for everybody, or look for the key themselves, since it is in the body.
    let open = Router::new()
        .route("/", get(page::index).post(tei::root))
        .route("/page/{name}", get(page::file))
        .route("/openapi.json", get(openapi::description))
        .route("/translate", post(libretranslate::translate))
        .route("/detect", post(libretranslate::detect))
        .route("/languages", get(languages::list))
        .route("/frontend/settings", get(languages::settings))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/health", get(health::readyz))
        .route("/metrics", get(health::metrics));
    let finishing = Finish { app: Arc::clone(app), origins, hosts };
    guarded
        .merge(open)
        .fallback(|| async { Refusal::no_route() })
        .layer(from_fn_with_state(finishing, finish))
        .with_state(Arc::clone(app))
}

async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Result<Response, Refusal> {
    app.keys.check(request.headers(), None)?;
    Ok(next.run(request).await)
}
