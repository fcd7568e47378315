//! `GET /info`: what the model is, and what requests may have.

use crate::app::App;
use crate::model::EncoderModel;
use crate::refusal::Refusal;
use attentive_tasks::{Kind, Pooling};
use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Of the first embedding model, or else of the first classifier, or else of the first that ranks.
pub(in crate::routes) async fn info(State(app): State<Arc<App>>) -> Result<Json<Value>, Refusal> {
    let first = |kind| app.encoder(None, kind);
    let others = || first(Kind::Classify).or_else(|_| first(Kind::Rerank));
    let asked = first(Kind::Embed).or_else(|refusal| others().map_err(|_| refusal))?;
    let encoder = asked.model.encoder();
    Ok(Json(json!({
        "model_id": asked.model.name,
        "model_sha": null,
        "model_dtype": asked.model.dtype,
        "model_type": model_type(&asked.model),
        "max_concurrent_requests": app.queue.size(),
        "max_input_length": encoder.limit(),
        "max_batch_tokens": encoder.batch_tokens(),
        "max_batch_requests": null,
        "max_client_batch_size": app.settings.limits.texts,
        "auto_truncate": false,
        "tokenization_workers": std::thread::available_parallelism().map_or(1, usize::from),
        "version": env!("CARGO_PKG_VERSION"),
        "sha": null,
        "docker_label": null,
    })))
}

fn model_type(model: &EncoderModel) -> Value {
    if let Some(embedder) = model.embedder() {
        let pooling = match embedder.pools().pooling {
            Pooling::Mean => "mean",
            Pooling::First => "cls",
        };
        return json!({"embedding": {"pooling": pooling}});
    }
    let labels = model.labels().unwrap_or_default().iter().enumerate();
    let id2label: Map<String, Value> =
        labels.clone().map(|(id, label)| (id.to_string(), json!(label))).collect();
    let label2id: Map<String, Value> = labels.map(|(id, label)| (label.clone(), json!(id))).collect();
    let does = if model.kind() == Kind::Rerank { "reranker" } else { "classifier" };
    json!({does: {"id2label": id2label, "label2id": label2id}})
}
