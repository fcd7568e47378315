//! Whether the server lives, whether it can be asked, and what it has done so far.

use crate::app::App;
use crate::refusal::Refusal;
use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::sync::Arc;

/// It lives.
pub(super) async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// It can be asked: the models are there, and it is not on its way out.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<Json<Value>, Refusal> {
    if app.is_leaving() {
        return Err(Refusal::busy("the server is shutting down", 1));
    }
    app.models()?;
    Ok(Json(json!({"status": "ready"})))
}

/// What it has done.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.text(&app.queue))
}
