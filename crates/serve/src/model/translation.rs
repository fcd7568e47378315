//! A translation model as the server knows it.

use crate::engine::Engine;
use crate::error::Error;
use crate::languages::{Language, Languages};
use crate::numbers::{self, Example};
use attentive_generate::{Options, Seq2Seq, Sizes};
use attentive_tasks::{Codec, ModelFolder, Reading};
use std::path::Path;

/// A translation model: all but the model itself, which only the thread that computes has.
#[derive(Debug)]
pub(crate) struct TranslationModel {
    pub name: String,
    pub codec: Codec,
    /// How it wants to be decoded.
    pub options: Options,
    /// Whether its weights are in int8.
    pub int8: bool,
    pub sizes: Sizes,
    pub languages: Languages,
    pub examples: Vec<Example>,
    /// What a person should know before trying it.
    pub note: Option<&'static str>,
}

/// What decodes.
pub(crate) type Copies = Vec<Box<dyn Seq2Seq>>;

impl TranslationModel {
    /// The model that comes with the program.
    pub(super) fn numbers(engine: &Engine, name: &str) -> Result<(TranslationModel, Copies), Error> {
        let unpacked = numbers::unpack()?;
        let (mut model, copies) = TranslationModel::open(engine, name, unpacked.path())?;
        model.languages.source = Some(Language::called("en"));
        model.examples = numbers::examples();
        model.note = Some(numbers::NOTE);
        Ok((model, copies))
    }

    /// Reads the model of a folder.
    pub(super) fn open(
        engine: &Engine,
        name: &str,
        folder: &Path,
    ) -> Result<(TranslationModel, Copies), Error> {
        let failed = |source| Error::Model { name: name.to_owned(), source: Box::new(source) };
        let ModelFolder { copies, codec, options, int8 } =
            ModelFolder::open_on(&engine.backends, engine.int8, folder).map_err(failed)?;
        let languages = Languages::of(name, folder, codec.target_languages());
        let source = languages.source.as_ref().map(|source| source.code.clone());
        let reading = Reading { language: source.or(codec.reading().language.clone()), ..*codec.reading() };
        let codec = codec.with_reading(reading);
        let (name, sizes) = (name.to_owned(), copies[0].sizes());
        let (examples, note) = (Vec::new(), None);
        Ok((TranslationModel { name, codec, options, int8, sizes, languages, examples, note }, copies))
    }

    /// What stands before a line that is to be translated into a language: nothing for most models.
    pub fn language_token(&self, target: Option<&Language>) -> String {
        match target {
            Some(language) if self.languages.are_chosen_by_token => format!(">>{}<< ", language.token),
            _ => String::new(),
        }
    }
}
