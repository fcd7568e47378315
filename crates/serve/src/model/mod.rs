//! A model as the server knows it.

use crate::engine::Engine;
use crate::error::Error;
use crate::languages::{Language, Languages};
use crate::numbers;
use attentive_generate::{Codec, ModelFolder, Options, Reading, Seq2Seq, Sizes};
use std::path::{Path, PathBuf};

/// Where a model comes from, and what it is called.
#[derive(Debug, Clone)]
pub struct ModelPlace {
    /// The name that clients ask for.
    pub name: String,
    /// Its folder; none for the model that comes with the program.
    folder: Option<PathBuf>,
}

impl ModelPlace {
    /// A folder, called as it is.
    pub fn folder(folder: impl Into<PathBuf>) -> ModelPlace {
        let folder = folder.into();
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let name =
            whole.file_name().map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned());
        ModelPlace { name, folder: Some(folder) }
    }

    /// A folder, called otherwise.
    pub fn named(name: impl Into<String>, folder: impl Into<PathBuf>) -> ModelPlace {
        ModelPlace { name: name.into(), folder: Some(folder.into()) }
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
    /// How it is decoded where a request says nothing else.
    pub options: Options,
}

/// A model that is served: all but the model itself, which only the thread that computes has.
#[derive(Debug)]
pub(crate) struct Model {
    pub name: String,
    pub codec: Codec,
    /// How it wants to be decoded.
    pub options: Options,
    /// Whether its weights are in int8.
    pub int8: bool,
    pub sizes: Sizes,
    pub languages: Languages,
    pub examples: Vec<Example>,
}

/// Something to try a model with.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Example {
    pub text: String,
    /// The code of the language to translate it into, where there are several.
    pub target: Option<String>,
}

impl Model {
    /// Reads a model; it comes together with what decodes.
    pub fn load(engine: &Engine, place: &ModelPlace) -> Result<(Model, Vec<Box<dyn Seq2Seq>>), Error> {
        match &place.folder {
            Some(folder) => Model::open(engine, &place.name, folder),
            None => {
                let unpacked = numbers::unpack()?;
                let (mut model, copies) = Model::open(engine, &place.name, unpacked.path())?;
                model.languages.source = Some(Language::called("en"));
                model.examples = numbers::examples();
                Ok((model, copies))
            }
        }
    }

    fn open(engine: &Engine, name: &str, folder: &Path) -> Result<(Model, Vec<Box<dyn Seq2Seq>>), Error> {
        let failed = |source| Error::Model { name: name.to_owned(), source };
        let ModelFolder { copies, codec, options, int8 } =
            ModelFolder::open_on(&engine.backends, engine.int8, folder).map_err(failed)?;
        let languages = Languages::of(name, folder, codec.target_languages());
        let source = languages.source.as_ref().map(|source| source.code.clone());
        let reading = Reading { language: source.or(codec.reading().language.clone()), ..*codec.reading() };
        let codec = codec.with_reading(reading);
        let (name, sizes) = (name.to_owned(), copies[0].sizes());
        Ok((Model { name, codec, options, int8, sizes, languages, examples: Vec::new() }, copies))
    }

    /// What is said of it when it is there.
    pub fn served(&self) -> Served {
        Served { name: self.name.clone(), int8: self.int8, options: self.options.clone() }
    }

    /// What stands before a line that is to be translated into a language: nothing for most models.
    pub fn language_token(&self, target: Option<&Language>) -> String {
        match target {
            Some(language) if self.languages.are_chosen_by_token => format!(">>{}<< ", language.token),
            _ => String::new(),
        }
    }
}
