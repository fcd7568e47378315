//! A model's folder: the model, its tokenizer, and how it wants to be decoded.

use super::{Codec, Reading};
use crate::error::Error;
use crate::model::{self, TEXT_TO_TEXT};
use crate::tokenizer::tokenizer_of;
use attentive_generate::{Options, Seq2Seq};
use attentive_tensor::Backend;
use attentive_text::tokenizer::Tokenizer;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// What is in the folder of a model.
pub struct ModelFolder {
    /// The model: a copy for each backend, all with the same weights.
    pub copies: Vec<Box<dyn Seq2Seq>>,
    /// Its tokenizer, with what it must know of the model.
    pub codec: Codec,
    /// The options that it asks for, or else the default ones.
    pub options: Options,
    /// Whether its weights are in int8.
    pub int8: bool,
}

impl ModelFolder {
    /// Reads a folder; its weights are in int8 if they are stored so.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path) -> Result<ModelFolder, Error> {
        ModelFolder::open_on(std::slice::from_ref(backend), None, folder)
    }

    /// Reads a folder once, to be decoded with on several backends side by side, whose memory, instruction set and
    /// precision are the same. `int8` says whether its weights are to be in int8; without a word they are if they are stored so.
    ///
    /// # Panics
    /// If there is no backend.
    pub fn open_on(
        backends: &[Arc<dyn Backend>],
        int8: Option<bool>,
        folder: &Path,
    ) -> Result<ModelFolder, Error> {
        // Either takes about as long as the other.
        let (opened, tokenizer) = std::thread::scope(|scope| {
            let tokenizer = scope.spawn(|| tokenizer_of(folder).map(Tokenizer::special_tokens_as_text));
            (model::open(backends, int8, folder, TEXT_TO_TEXT), tokenizer.join())
        });
        let (copies, int8) = opened?;
        let tokenizer = tokenizer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let options = Options::load(folder, &copies[0].spec())?;
        let codec = Codec::new(Arc::new(tokenizer), copies[0].spec(), folder)?;
        let codec = codec.with_reading(Reading::of(folder)?).with_ends_of(&options);
        let opened = ModelFolder { copies, codec, options, int8 };
        if opened.codec.spoken().is_empty() {
            return Ok(opened);
        }
        let (source, target) = usual_languages(folder);
        let is_there = |language: &&str| opened.codec.spoken().find(language).is_ok();
        let source = source.as_deref().into_iter().chain(["en"]).find(is_there);
        let target = target.as_deref().filter(is_there);
        opened.speaking(source, target)
    }

    /// The same for sources in one language and targets in another, of a model of which tokens say which ones these are.
    pub fn speaking(mut self, source: Option<&str>, target: Option<&str>) -> Result<ModelFolder, Error> {
        if self.codec.spoken().is_empty() {
            return if source.is_some() { Err(Error::NoSourceLanguages) } else { Ok(self) };
        }
        if let Some(source) = source {
            let token = self.codec.spoken().find(source)?;
            self.codec = self.codec.with_source_language(token);
        }
        if let Some(target) = target {
            self.options.forced_bos = Some(self.codec.spoken().find(target)?);
        }
        Ok(self)
    }
}

/// The languages that the configuration of a tokenizer names.
fn usual_languages(folder: &Path) -> (Option<String>, Option<String>) {
    let text = std::fs::read_to_string(folder.join("tokenizer_config.json")).unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    let word = |name: &str| config[name].as_str().map(str::to_owned);
    (word("src_lang"), word("tgt_lang"))
}
