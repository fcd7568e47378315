//! OpenAI's `/v1/models`, with more about each model for those who can use it.

use crate::app::App;
use crate::languages;
use crate::model::{EncoderModel, LanguageModel, Model, PictureModel, Task, TranslationModel};
use crate::numbers::Example;
use crate::refusal::Refusal;
use attentive_tasks::PictureKind;
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use std::sync::Arc;

/// The list.
#[derive(Debug, Serialize)]
pub(super) struct List {
    object: &'static str,
    data: Vec<Entry>,
}

/// A model, or a model into one of its languages.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "task", rename_all = "lowercase")]
enum Details {
    Translate(Translation),
    Generate(Language),
    Embed(Encoder),
    Classify(Encoder),
    Answer(Encoder),
    #[serde(rename = "fill-mask")]
    FillMask(Encoder),
    Rerank(Encoder),
    Tag(Encoder),
    #[serde(rename = "image-feature-extraction")]
    EmbedPictures(Picture),
    #[serde(rename = "image-classification")]
    ClassifyPictures(Picture),
    #[serde(rename = "object-detection")]
    Detect(Picture),
}

#[derive(Debug, Serialize)]
struct Translation {
    sources: Vec<Named>,
    targets: Vec<Named>,
    d_model: usize,
    h: usize,
    decoder_h: usize,
    d_ff: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    parameters: usize,
    vocabulary: usize,
    max_source: usize,
    beam: usize,
    examples: Vec<Example>,
    /// What a person should know before trying it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// The addresses that it answers at.
    routes: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Language {
    d_model: usize,
    h: usize,
    d_ff: usize,
    decoder_layers: usize,
    parameters: usize,
    vocabulary: usize,
    /// The most tokens of a prompt and its continuation together.
    max_tokens: usize,
    /// The addresses that it answers at.
    routes: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Encoder {
    d_model: usize,
    h: usize,
    d_ff: usize,
    encoder_layers: usize,
    parameters: usize,
    vocabulary: usize,
    max_source: usize,
    /// The classes of texts, or the labels of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<String>>,
    /// How a mask is written, of a model that fills masks.
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<String>,
    /// The addresses that it answers at.
    routes: &'static [&'static str],
}

/// A model that reads pictures.
#[derive(Debug, Serialize)]
struct Picture {
    /// What it reads: `pictures`.
    reads: &'static str,
    d_model: usize,
    h: usize,
    d_ff: usize,
    encoder_layers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    decoder_layers: Option<usize>,
    parameters: usize,
    /// The classes of pictures, or of the things in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<String>>,
    /// The addresses that it answers at.
    routes: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Named {
    code: String,
    name: String,
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Json<List>, Refusal> {
    let data = app.models()?.iter().flat_map(|model| entries(&app, model)).collect();
    Ok(Json(List { object: "list", data }))
}

pub(super) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json<Entry>, Refusal> {
    let mut all = app.models()?.iter().flat_map(|model| entries(&app, model));
    let found = all.find(|entry| entry.id == id);
    found.map(Json).ok_or_else(|| Refusal::missing("id", "there is no model of this name; see /v1/models"))
}

/// A model; and for each of its languages, where a request must say which, a name that says it.
fn entries(app: &App, model: &Model) -> Vec<Entry> {
    let entry = |id: String, details| Entry {
        id,
        object: "model",
        created: app.since,
        owned_by: "attentive",
        details,
    };
    let mut entries = vec![entry(model.name().to_owned(), Some(details(model)))];
    if let Some(model) = model.translation()
        && model.languages.are_chosen()
    {
        let targets = model.languages.targets.iter();
        entries.extend(targets.map(|target| entry(format!("{}:{}", model.name, target.code), None)));
    }
    entries
}

fn details(model: &Model) -> Details {
    match model {
        Model::Translation(own) => Details::Translate(translation(own, model.routes())),
        Model::Language(own) => Details::Generate(language(own, model.routes())),
        Model::Encoder(own) => match &own.task {
            Task::Embed(_) => Details::Embed(encoder(own, model.routes())),
            Task::Classify(_) => Details::Classify(encoder(own, model.routes())),
            Task::FillMask(..) => Details::FillMask(encoder(own, model.routes())),
            Task::Answer(..) => Details::Answer(encoder(own, model.routes())),
            Task::Rerank(_) => Details::Rerank(encoder(own, model.routes())),
            Task::Tag(_) => Details::Tag(encoder(own, model.routes())),
        },
        Model::Picture(own) => match own.kind() {
            PictureKind::Embed => Details::EmbedPictures(picture(own, model.routes())),
            PictureKind::Classify => Details::ClassifyPictures(picture(own, model.routes())),
            PictureKind::Detect => Details::Detect(picture(own, model.routes())),
        },
    }
}

fn language(model: &LanguageModel, routes: &'static [&'static str]) -> Language {
    let (sizes, spec) = (&model.sizes, model.codec.spec());
    Language {
        d_model: sizes.d_model,
        h: sizes.h,
        d_ff: sizes.d_ff,
        decoder_layers: sizes.decoder_layers,
        parameters: sizes.parameters,
        vocabulary: spec.vocabulary,
        max_tokens: spec.max_target,
        routes,
    }
}

fn encoder(model: &EncoderModel, routes: &'static [&'static str]) -> Encoder {
    let encoder = model.encoder();
    let config = encoder.model().config();
    Encoder {
        d_model: config.d_model,
        h: config.h,
        d_ff: config.d_ff,
        encoder_layers: config.layers,
        parameters: encoder.model().parameter_count(),
        vocabulary: config.vocab_size,
        max_source: encoder.limit(),
        labels: model.labels().map(<[String]>::to_vec),
        mask: model.filler().map(|filler| filler.mask()),
        routes,
    }
}

fn picture(model: &PictureModel, routes: &'static [&'static str]) -> Picture {
    let sizes = model.sizes();
    Picture {
        reads: "pictures",
        d_model: sizes.d_model,
        h: sizes.h,
        d_ff: sizes.d_ff,
        encoder_layers: sizes.encoder_layers,
        decoder_layers: Some(sizes.decoder_layers).filter(|layers| *layers > 0),
        parameters: sizes.parameters,
        labels: model.labels().map(<[String]>::to_vec),
        routes,
    }
}

fn translation(model: &TranslationModel, routes: &'static [&'static str]) -> Translation {
    let named =
        |language: &languages::Language| Named { code: language.code.clone(), name: language.name.clone() };
    let (sizes, spec) = (&model.sizes, model.codec.spec());
    Translation {
        sources: model.languages.sources.iter().map(named).collect(),
        targets: model.languages.targets.iter().map(named).collect(),
        d_model: sizes.d_model,
        h: sizes.h,
        decoder_h: sizes.decoder_h,
        d_ff: sizes.d_ff,
        encoder_layers: sizes.encoder_layers,
        decoder_layers: sizes.decoder_layers,
        parameters: sizes.parameters,
        vocabulary: spec.vocabulary,
        max_source: spec.max_source,
        beam: model.options.beam,
        examples: model.examples.clone(),
        note: model.note,
        routes,
    }
}
