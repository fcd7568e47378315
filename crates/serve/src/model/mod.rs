//! A model as the server knows it: what handlers need of it, and what the thread that computes needs.

mod encoder;
mod language;
mod picture;
mod translation;

pub(crate) use encoder::{EncoderModel, Task};
pub(crate) use language::LanguageModel;
pub(crate) use picture::{PictureModel, Ready};
pub(crate) use translation::{Copies, TranslationModel};

use crate::engine::Engine;
use crate::error::Error;
use attentive_generate::Options;
use attentive_tasks::{Kind, PictureKind, model_name};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a model comes from, and what it is called.
#[derive(Debug, Clone)]
pub struct ModelPlace {
    /// The name that clients ask for.
    pub name: String,
    /// Its folder; none for the model that comes with the program.
    folder: Option<PathBuf>,
}

impl ModelPlace {
    /// A folder, called as it is, or as the model of the Hugging Face Hub whose snapshot it is.
    pub fn folder(folder: impl Into<PathBuf>) -> ModelPlace {
        let folder = folder.into();
        let name = model_name(&folder).unwrap_or_else(|| "model".to_owned());
        ModelPlace { name, folder: Some(folder) }
    }

    /// A folder, called otherwise.
    pub fn named(name: impl Into<String>, folder: impl Into<PathBuf>) -> ModelPlace {
        ModelPlace { name: name.into(), folder: Some(folder.into()) }
    }

    /// Refuses places of which two have the same name.
    pub fn must_differ(places: &[ModelPlace]) -> Result<(), Error> {
        for (i, place) in places.iter().enumerate() {
            if places[..i].iter().any(|other| other.name == place.name) {
                let problem = format!("two models are called `{}`: rename one with NAME=DIR", place.name);
                return Err(Error::setting("models", problem));
            }
        }
        Ok(())
    }

    /// The small model that comes with the program and translates numbers in words: that of `attentive demo`.
    pub fn numbers() -> ModelPlace {
        ModelPlace { name: "numbers".to_owned(), folder: None }
    }
}

/// What a server says of a model that it has read.
#[derive(Debug, Clone)]
pub struct Served {
    /// The name that clients ask for.
    pub name: String,
    /// Whether its weights are in int8.
    pub int8: bool,
    /// What it does.
    pub does: Does,
    /// The addresses that it answers at.
    pub routes: &'static [&'static str],
}

/// What a model does.
#[derive(Debug, Clone)]
pub enum Does {
    /// It translates.
    Translate {
        /// How it is decoded where a request says nothing else.
        options: Options,
    },
    /// It continues prompts.
    Continue {
        /// The most tokens of a prompt and its continuation together.
        limit: usize,
    },
    /// It makes a vector of a text.
    Embed {
        /// How many numbers a vector has.
        width: usize,
        /// The most tokens of a text.
        limit: usize,
    },
    /// It finds words for masks, and makes vectors.
    FillMask {
        /// The most tokens of a text.
        limit: usize,
    },
    /// It answers questions with words of a text, and makes vectors.
    Answer {
        /// The most tokens of a question and a window of the text.
        limit: usize,
    },
    /// It tells the class of a text.
    Classify {
        /// The names of the classes.
        labels: Vec<String>,
        /// The most tokens of a text.
        limit: usize,
    },
    /// It tells how well texts fit a query.
    Rerank {
        /// The most tokens of a query and a text.
        limit: usize,
    },
    /// It finds entities.
    Tag {
        /// The labels of words.
        labels: Vec<String>,
        /// The most tokens of a text.
        limit: usize,
    },
    /// It makes a vector of a picture.
    EmbedPictures {
        /// How many numbers a vector has.
        width: usize,
    },
    /// It tells the class of a picture, and makes vectors.
    ClassifyPictures {
        /// The names of the classes.
        labels: Vec<String>,
    },
    /// It finds things in pictures.
    Detect {
        /// What it finds.
        labels: Vec<String>,
    },
}

/// A model that is served.
#[derive(Debug, Clone)]
pub(crate) enum Model {
    Translation(Arc<TranslationModel>),
    Language(Arc<LanguageModel>),
    Encoder(Arc<EncoderModel>),
    Picture(Arc<PictureModel>),
}

/// A model that reads texts and does not translate them.
#[derive(Debug, Clone)]
pub(crate) enum TextModel {
    Language(Arc<LanguageModel>),
    Encoder(Arc<EncoderModel>),
}

/// A model together with what computes it.
pub(crate) enum Loaded {
    Translation(Arc<TranslationModel>, Copies),
    Language(Arc<LanguageModel>, Copies),
    Encoder(Arc<EncoderModel>),
    Picture(Arc<PictureModel>),
}

/// Reads a model of any family.
pub(crate) fn load(engine: &Engine, place: &ModelPlace) -> Result<Loaded, Error> {
    let name = &place.name;
    let translation = |(model, copies)| Loaded::Translation(Arc::new(model), copies);
    let Some(folder) = &place.folder else {
        return TranslationModel::numbers(engine, name).map(translation);
    };
    let failed = |source| Error::Model { name: name.clone(), source: Box::new(source) };
    if attentive_tasks::LanguageModel::is_in(folder).map_err(failed)? {
        let (model, copies) = LanguageModel::open(engine, name, folder)?;
        return Ok(Loaded::Language(Arc::new(model), copies));
    }
    if let Some(kind) = PictureKind::of(folder).map_err(failed)? {
        return Ok(Loaded::Picture(Arc::new(PictureModel::open(engine, name, folder, kind)?)));
    }
    match Kind::of(folder).map_err(failed)? {
        None => TranslationModel::open(engine, name, folder).map(translation),
        Some(kind) => Ok(Loaded::Encoder(Arc::new(EncoderModel::open(engine, name, folder, kind)?))),
    }
}

impl Loaded {
    /// What handlers need of it.
    pub fn model(&self) -> Model {
        match self {
            Loaded::Translation(model, _) => Model::Translation(Arc::clone(model)),
            Loaded::Language(model, _) => Model::Language(Arc::clone(model)),
            Loaded::Encoder(model) => Model::Encoder(Arc::clone(model)),
            Loaded::Picture(model) => Model::Picture(Arc::clone(model)),
        }
    }
}

impl Model {
    /// The name that clients ask for.
    pub fn name(&self) -> &str {
        match self {
            Model::Translation(model) => &model.name,
            Model::Language(model) => &model.name,
            Model::Encoder(model) => &model.name,
            Model::Picture(model) => &model.name,
        }
    }

    /// The model, if it translates.
    pub fn translation(&self) -> Option<&Arc<TranslationModel>> {
        match self {
            Model::Translation(model) => Some(model),
            Model::Language(_) | Model::Encoder(_) | Model::Picture(_) => None,
        }
    }

    /// The model, if it continues prompts.
    pub fn language(&self) -> Option<&Arc<LanguageModel>> {
        match self {
            Model::Language(model) => Some(model),
            Model::Translation(_) | Model::Encoder(_) | Model::Picture(_) => None,
        }
    }

    /// The model, if it is an encoder.
    pub fn encoder(&self) -> Option<&Arc<EncoderModel>> {
        match self {
            Model::Encoder(model) => Some(model),
            Model::Translation(_) | Model::Language(_) | Model::Picture(_) => None,
        }
    }

    /// The model, if it reads pictures.
    pub fn picture(&self) -> Option<&Arc<PictureModel>> {
        match self {
            Model::Picture(model) => Some(model),
            Model::Translation(_) | Model::Language(_) | Model::Encoder(_) => None,
        }
    }

    /// The addresses that it answers at.
    pub fn routes(&self) -> &'static [&'static str] {
        match self {
            Model::Translation(model) if model.prompts.is_some() => &[
                "/v1/completions",
                "/v1/summarize",
                "/translate",
                "/v1/translate",
                "/v1/chat/completions",
                "/v1/attention",
            ],
            Model::Translation(_) => {
                &["/translate", "/v1/translate", "/v1/completions", "/v1/chat/completions", "/v1/attention"]
            }
            Model::Language(_) => &["/v1/completions", "/v1/next", "/v1/attention"],
            Model::Encoder(model) => match model.task {
                Task::Embed(_) => &["/v1/embeddings", "/embed", "/v1/attention"],
                Task::FillMask(..) => &["/v1/fill-mask", "/v1/embeddings", "/embed", "/v1/attention"],
                Task::Answer(..) => &["/v1/answer", "/v1/embeddings", "/embed", "/v1/attention"],
                Task::Classify(_) => &["/predict", "/v1/classify", "/v1/attention"],
                Task::Rerank(_) => &["/v1/rerank", "/rerank", "/v1/attention"],
                Task::Tag(_) => &["/v1/tag", "/v1/attention"],
            },
            Model::Picture(model) => match model.kind() {
                PictureKind::Embed => &["/v1/embeddings", "/v1/attention"],
                PictureKind::Classify => &["/v1/classify", "/v1/embeddings", "/v1/attention"],
                PictureKind::Detect => &["/v1/detect"],
            },
        }
    }

    /// What is said of it when it is there.
    pub fn served(&self) -> Served {
        let (int8, does) = match self {
            Model::Translation(model) => (model.int8, Does::Translate { options: model.options.clone() }),
            Model::Language(model) => {
                let limit = model.codec.spec().max_target;
                (model.int8, Does::Continue { limit })
            }
            Model::Encoder(model) => {
                let limit = model.encoder().limit();
                let labels = model.labels().unwrap_or_default().to_vec();
                let does = match &model.task {
                    Task::Embed(embedder) => {
                        Does::Embed { width: embedder.encoder().model().config().d_model, limit }
                    }
                    Task::Classify(_) => Does::Classify { labels, limit },
                    Task::FillMask(..) => Does::FillMask { limit },
                    Task::Answer(..) => Does::Answer { limit },
                    Task::Rerank(_) => Does::Rerank { limit },
                    Task::Tag(_) => Does::Tag { labels, limit },
                };
                (model.int8, does)
            }
            Model::Picture(model) => {
                let labels = model.labels().unwrap_or_default().to_vec();
                let does = match model.kind() {
                    PictureKind::Embed => Does::EmbedPictures { width: model.sizes().d_model },
                    PictureKind::Classify => Does::ClassifyPictures { labels },
                    PictureKind::Detect => Does::Detect { labels },
                };
                (model.int8, does)
            }
        };
        Served { name: self.name().to_owned(), int8, does, routes: self.routes() }
    }
}
