//! A language model as the server knows it, and a model that answers prompts, which has an encoder.

use super::Copies;
use crate::engine::Engine;
use crate::error::Error;
use attentive_generate::{Options, Sizes};
use attentive_tasks::{PromptCodec, SummaryCodec, tokenizer_of};
use std::path::Path;
use std::sync::Arc;

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
    /// How it summarizes, if it can.
    pub summaries: Option<Summaries>,
}

/// How a model summarizes.
#[derive(Debug)]
pub(crate) struct Summaries {
    pub codec: SummaryCodec,
    pub options: Options,
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
        let model = LanguageModel { name: name.to_owned(), codec, options, int8, sizes, summaries: None };
        Ok((model, copies))
    }

    /// What answers prompts and summarizes texts with the model of a translation model, if it can; `int8` and `copies` are those of that
    /// model.
    pub(super) fn beside(
        name: &str,
        folder: &Path,
        int8: bool,
        copies: &Copies,
    ) -> Result<Option<LanguageModel>, attentive_tasks::Error> {
        if !attentive_tasks::LanguageModel::answers_in(folder)? {
            return Ok(None);
        }
        let (spec, sizes) = (copies[0].spec(), copies[0].sizes());
        let options = Options::load(folder, &spec)?;
        // Special tokens in a prompt are tokens: `<extra_id_0>` of a T5 and `<mask>` of a BART.
        let codec = PromptCodec::new(Arc::new(tokenizer_of(folder)?), spec);
        let (summaries, own) = SummaryCodec::of(folder, codec.clone())?;
        let summaries = Some(Summaries { codec: summaries, options: own });
        Ok(Some(LanguageModel { name: name.to_owned(), codec, options, int8, sizes, summaries }))
    }

    /// Whether a text ends with this token.
    pub fn is_end(&self, token: u32) -> bool {
        let ends = &self.options.ends;
        if ends.is_empty() { token == self.codec.spec().eos } else { ends.contains(&token) }
    }
}
