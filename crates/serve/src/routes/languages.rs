//! LibreTranslate's `/languages` and `/frontend/settings`.

use crate::app::App;
use crate::languages::Language;
use crate::model::Model;
use crate::refusal::Refusal;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A language of sources, and those that it is translated into.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    code: String,
    name: String,
    targets: Vec<String>,
}

/// What can be translated into what.
pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<Entry>>, Refusal> {
    let mut entries: Vec<Entry> = Vec::new();
    for model in app.models()?.iter().filter_map(Model::translation) {
        let languages = &model.languages;
        for source in &languages.sources {
            let targets = languages.targets.iter().filter(|target| languages.has_pair(source, target));
            let targets = targets.map(|language| language.code.clone());
            match entries.iter_mut().find(|entry| entry.code == source.code) {
                Some(entry) => entry.targets.extend(targets),
                None => {
                    let (code, name) = (source.code.clone(), source.name.clone());
                    entries.push(Entry { code, name, targets: targets.collect() });
                }
            }
        }
    }
    for entry in &mut entries {
        entry.targets.sort();
        entry.targets.dedup();
    }
    Ok(Json(entries))
}

/// What a client of LibreTranslate wants to know before it shows anything.
pub(super) async fn settings(State(app): State<Arc<App>>) -> Result<Json<Value>, Refusal> {
    let first = app.models()?.iter().find_map(Model::translation);
    let languages = first.map(|model| &model.languages);
    let named = |language: Option<&Language>, unknown: &str| match language {
        Some(language) => json!({"code": language.code, "name": language.name}),
        None => json!({"code": unknown, "name": unknown}),
    };
    // Of several sources, none is more likely than another.
    let source = languages.and_then(|languages| match &languages.sources[..] {
        [source] => Some(source),
        _ => None,
    });
    Ok(Json(json!({
        "apiKeys": app.keys.are_needed(),
        "keyRequired": app.keys.are_needed(),
        "charLimit": app.settings.limits.characters,
        "filesTranslation": false,
        "frontendTimeout": 500,
        "suggestions": false,
        "supportedFilesFormat": [],
        "language": {
            "source": named(source, "auto"),
            "target": named(first.and_then(|model| model.usual_target().or(model.languages.targets.first())), "und"),
        },
    })))
}
