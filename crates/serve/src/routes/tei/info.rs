//! `GET /info`: what the model is, and what requests may have.

use crate::app::App;
use crate::model::{EncoderModel, Model, PictureModel};
use crate::refusal::Refusal;
use attentive_tasks::{Kind, PictureKind, Pooling};
use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Of the first embedding model, or else of the first classifier, or else of the first that ranks; without any of them of the first that
/// reads pictures.
pub(in crate::routes) async fn info(State(app): State<Arc<App>>) -> Result<Json<Value>, Refusal> {
    let first = |kind| app.encoder(None, kind);
    let others = || first(Kind::Classify).or_else(|_| first(Kind::Rerank));
    let found = first(Kind::Embed).or_else(|refusal| others().map_err(|_| refusal));
    let pictures = app.models()?.iter().find_map(Model::picture);
    let limits = &app.settings.limits;
    let mut info = match (found, pictures) {
        (Err(_), Some(model)) => json!({
            "model_id": model.name,
            "model_dtype": model.dtype,
            "model_type": type_of_pictures(model),
            "max_input_length": null,
            "max_batch_tokens": null,
            "max_client_batch_size": limits.pictures,
        }),
        (found, _) => {
            let asked = found?;
            let encoder = asked.model.encoder();
            json!({
                "model_id": asked.model.name,
                "model_dtype": asked.model.dtype,
                "model_type": model_type(&asked.model),
                "max_input_length": encoder.limit(),
                "max_batch_tokens": encoder.batch_tokens(),
                "max_client_batch_size": limits.texts,
            })
        }
    };
    for (field, value) in [
        ("model_sha", Value::Null),
        ("max_concurrent_requests", app.queue.size().into()),
        ("max_batch_requests", Value::Null),
        ("auto_truncate", false.into()),
        ("tokenization_workers", std::thread::available_parallelism().map_or(1, usize::from).into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("sha", Value::Null),
        ("docker_label", Value::Null),
    ] {
        info[field] = value;
    }
    Ok(Json(info))
}

fn model_type(model: &EncoderModel) -> Value {
    if let Some(embedder) = model.embedder() {
        let pooling = match embedder.pools().pooling {
            Pooling::Mean => "mean",
            Pooling::First => "cls",
        };
        return json!({"embedding": {"pooling": pooling}});
    }
    let does = if model.kind() == Kind::Rerank { "reranker" } else { "classifier" };
    json!({does: labels(model.labels())})
}

fn type_of_pictures(model: &PictureModel) -> Value {
    match model.kind() {
        PictureKind::Embed => json!({"image_embedding": {"pooling": "cls"}}),
        PictureKind::Classify => json!({"image_classifier": labels(model.labels())}),
        PictureKind::Detect => json!({"object_detector": labels(model.labels())}),
    }
}

/// The names of classes by their numbers, and the other way round.
fn labels(labels: Option<&[String]>) -> Value {
    let labels = labels.unwrap_or_default().iter().enumerate();
    let id2label: Map<String, Value> =
        labels.clone().map(|(id, label)| (id.to_string(), json!(label))).collect();
    let label2id: Map<String, Value> = labels.map(|(id, label)| (label.clone(), json!(id))).collect();
    json!({"id2label": id2label, "label2id": label2id})
}
