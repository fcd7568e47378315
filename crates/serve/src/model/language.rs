//! A language model as the server knows it.

use super::Copies;
use crate::engine::Engine;
use crate::error::Error;
use attentive_generate::{Options, Sizes};
use attentive_tasks::PromptCodec;
use std::path::Path;

/// A model that continues prompts: all but the model itself, which only the thread that computes has.
#[derive(Debug)]
pub(crate) struct LanguageModel {
    pub name: String,
    pub codec: PromptCodec,
    /// How it wants to be decoded.
    pub options: Options,
    /// Whether its weights are in int8.
    pub int8: bool,
    pub sizes: Sizes,
}

impl LanguageModel {
    /// Reads the model of a folder.
    pub(super) fn open(engine: &Engine, name: &str, folder: &Path) -> Result<(LanguageModel, Copies), Error> {
        let failed = |source| Error::Model { name: name.to_owned(), source: Box::new(source) };
        let int8 = engine.int8.unwrap_or(false);
        // Its weights do not fit into a cache, and several copies would read them several times.
        let backends = std::slice::from_ref(&engine.encoder);
        let opened = attentive_tasks::LanguageModel::open_on(backends, int8, folder);
        let attentive_tasks::LanguageModel { copies, tokenizer, options } = opened.map_err(failed)?;
        let (codec, sizes) = (PromptCodec::new(tokenizer, copies[0].spec()), copies[0].sizes());
        Ok((LanguageModel { name: name.to_owned(), codec, options, int8, sizes }, copies))
    }

    /// Whether a text ends with this token.
    pub fn is_end(&self, token: u32) -> bool {
        let ends = &self.options.ends;
        if ends.is_empty() { token == self.codec.spec().eos } else { ends.contains(&token) }
    }
}
