//! The addresses of text-embeddings-inference, for clients that have them: `/embed`, `/predict`, `/info`, `/health`, and `POST /`.

pub(super) mod embed;
pub(super) mod info;
pub(super) mod predict;

use crate::app::App;
use crate::refusal::Refusal;
use attentive_tasks::Kind;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;

/// `POST /`, where the clients of Hugging Face ask: it is `/embed` if there is an embedding model, else `/predict`. The page, which has
/// the same address, is open to everybody, so the key is looked for here.
pub(super) async fn root(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    app.keys.check(request.headers(), None)?;
    if app.encoder(None, Kind::Embed).is_err() && app.encoder(None, Kind::Classify).is_ok() {
        return predict::predict(State(app), request).await;
    }
    embed::embed(State(app), request).await
}
