//! A translation model as the server knows it.

use super::LanguageModel;
use crate::engine::Engine;
use crate::error::Error;
use crate::languages::{Choice, Language, Languages};
use crate::numbers::{self, Example};
use attentive_generate::{Options, Seq2Seq, Sizes};
use attentive_tasks::{Codec, Instruction, ModelFolder, Reading};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// A translation model: all but the model itself, which only the thread that computes has.
#[derive(Debug)]
pub(crate) struct TranslationModel {
    pub name: String,
    pub codec: Codec,
    /// How it wants to be decoded.
    pub options: Options,
    /// How it wants to be decoded for each pair of languages that it is asked for in words, in the order of these.
    options_of_pairs: Vec<Options>,
    /// Whether its weights are in int8.
    pub int8: bool,
    pub sizes: Sizes,
    pub languages: Languages,
    pub examples: Vec<Example>,
    /// What a person should know before trying it.
    pub note: Option<&'static str>,
    /// What answers prompts with the same model, if it can.
    pub prompts: Option<Arc<LanguageModel>>,
}

/// What decodes.
pub(crate) type Copies = Vec<Box<dyn Seq2Seq>>;

impl TranslationModel {
    /// The model that comes with the program.
    pub(super) fn numbers(engine: &Engine, name: &str) -> Result<(TranslationModel, Copies), Error> {
        let unpacked = numbers::unpack()?;
        let (mut model, copies) = TranslationModel::open(engine, name, unpacked.path())?;
        model.languages.sources = vec![Language::called("en")];
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
        let languages = Languages::of(name, folder, Some(codec.tokenizer()));
        let source = match &languages.sources[..] {
            [source] => Some(source.code.clone()),
            _ => codec.reading().language.clone(),
        };
        let reading = Reading { language: source, ..*codec.reading() };
        let codec = codec.with_reading(reading);
        let (codec, options_of_pairs) = match &languages.choice {
            Choice::Words(pairs) => {
                let options = |pair: &Instruction| Options::load_for(folder, codec.spec(), Some(&pair.task));
                let options: Result<Vec<Options>, _> = pairs.iter().map(options).collect();
                (
                    codec.with_instructions(pairs).map_err(failed)?,
                    options.map_err(|error| failed(error.into()))?,
                )
            }
            Choice::None | Choice::Token | Choice::Spoken => (codec, Vec::new()),
        };
        let prompts = LanguageModel::beside(name, folder, int8, &copies).map_err(failed)?.map(Arc::new);
        let model = TranslationModel {
            name: name.to_owned(),
            codec,
            options,
            options_of_pairs,
            int8,
            sizes: copies[0].sizes(),
            languages,
            examples: Vec::new(),
            note: None,
            prompts,
        };
        Ok((model, copies))
    }

    /// The pair of languages that it is asked for in words, if it is, and its place among all pairs.
    fn pair(&self, source: Option<&Language>, target: Option<&Language>) -> Option<(usize, &Instruction)> {
        let Choice::Words(pairs) = &self.languages.choice else { return None };
        let target = target?;
        let is_meant = |pair: &Instruction| {
            pair.target == target.token && source.is_none_or(|source| pair.source == source.token)
        };
        pairs.iter().enumerate().find(|(_, pair)| is_meant(pair))
    }

    /// What stands before a line that is to be translated: nothing for most models.
    pub fn before_line(&self, source: Option<&Language>, target: Option<&Language>) -> String {
        match (&self.languages.choice, target) {
            (Choice::Token, Some(target)) => format!(">>{}<< ", target.token),
            _ => self.pair(source, target).map_or_else(String::new, |(_, pair)| pair.words.clone()),
        }
    }

    /// How it wants to be decoded for these languages.
    pub fn options_for(&self, source: Option<&Language>, target: Option<&Language>) -> Options {
        if let Some((place, _)) = self.pair(source, target) {
            return self.options_of_pairs[place].clone();
        }
        let token = |target: &Language| self.codec.spoken().find(&target.token).ok();
        match target.and_then(token) {
            Some(token) => Options { forced_bos: Some(token), ..self.options.clone() },
            None => self.options.clone(),
        }
    }

    /// What reads texts of a language.
    pub fn codec_for(&self, source: Option<&Language>) -> Cow<'_, Codec> {
        let token = |source: &Language| self.codec.spoken().find(&source.token).ok();
        match (source, source.and_then(token)) {
            (Some(source), Some(token)) => {
                let reading = Reading { language: Some(source.code.clone()), ..self.codec.reading().clone() };
                Cow::Owned(self.codec.clone().with_source_language(token).with_reading(reading))
            }
            _ => Cow::Borrowed(&self.codec),
        }
    }

    /// The default target language: the one that the model's folder names.
    pub fn usual_target(&self) -> Option<&Language> {
        match &self.languages.choice {
            Choice::None | Choice::Token => self.languages.targets.first(),
            Choice::Spoken => {
                let usual = self.options.forced_bos?;
                let is_usual =
                    |language: &&Language| self.codec.spoken().find(&language.token).ok() == Some(usual);
                self.languages.targets.iter().find(is_usual)
            }
            // It can be asked for anything else, too.
            Choice::Words(_) => None,
        }
    }
}
