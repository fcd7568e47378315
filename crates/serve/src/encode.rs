//! Texts on their way to an encoder, and the numbers that it makes of them.

use crate::app::App;
use crate::aside::aside;
use crate::job::{Encode, Job, Places};
use crate::model::EncoderModel;
use crate::refusal::Refusal;
use crate::texts::Source;
use attentive_tasks::{Error, Kind};
use attentive_text::tokenizer::{Encoding, Input};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// An encoder that a request is for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Its place among all models.
    pub place: usize,
    pub model: Arc<EncoderModel>,
    /// What it is to do.
    pub kind: Kind,
}

/// Texts that were read, and what an encoder made of them.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub texts: Arc<[Encoding]>,
    /// The numbers of each text.
    pub numbers: Vec<Vec<f32>>,
}

impl Encoded {
    /// The tokens of all texts together.
    pub fn tokens(&self) -> usize {
        self.texts.iter().map(Encoding::len).sum()
    }
}

/// What helps against an answer that takes too long.
const ADVICE: &str = "send fewer or shorter texts";

impl App {
    /// Reads texts and lets an encoder make numbers of them. `field` is what the texts are called in the request. A text that is too
    /// long is cut if `truncate` says so, else it is refused.
    pub async fn encode(
        &self,
        asked: &Asked,
        field: &'static str,
        sources: Vec<Source>,
        truncate: bool,
    ) -> Result<Encoded, Refusal> {
        self.encode_checked(asked, field, sources, truncate, |_| Ok(())).await
    }

    /// What [`App::encode`] does, of texts that pass a check once they are read.
    pub async fn encode_checked(
        &self,
        asked: &Asked,
        field: &'static str,
        sources: Vec<Source>,
        truncate: bool,
        check: impl FnOnce(&[Encoding]) -> Result<(), Refusal>,
    ) -> Result<Encoded, Refusal> {
        self.check_sources(field, &sources)?;
        let count = sources.len();
        let model = Arc::clone(&asked.model);
        // Places are taken first: what does not fit need not be read.
        let places = self.queue.enter(field, count)?;
        let until = self.until();
        let texts: Arc<[Encoding]> = aside(move || read(&model, field, &sources, truncate)).await?.into();
        check(&texts)?;
        self.numbers(asked, texts, places, until).await
    }

    /// Lets an encoder make numbers of what `read` gives, away from the threads that answer connections, beside what else it says.
    pub async fn encode_read<T: Send + 'static>(
        &self,
        asked: &Asked,
        field: &'static str,
        read: impl FnOnce() -> Result<(Vec<Encoding>, T), Refusal> + Send + 'static,
    ) -> Result<(Encoded, T), Refusal> {
        let until = self.until();
        let (texts, told) = aside(read).await?;
        let places = self.queue.enter(field, texts.len())?;
        Ok((self.numbers(asked, texts.into(), places, until).await?, told))
    }

    /// Lets an encoder make numbers of texts that have their places.
    async fn numbers(
        &self,
        asked: &Asked,
        texts: Arc<[Encoding]>,
        places: Places,
        until: Instant,
    ) -> Result<Encoded, Refusal> {
        let (reply, receiver) = oneshot::channel();
        let job = Encode { model: asked.place, kind: asked.kind, inputs: Arc::clone(&texts), reply, places };
        self.queue.push(Job::Encode(job))?;
        let encoded = Encoded { texts, numbers: self.answer(receiver, until, ADVICE).await? };
        self.metrics.encoded(encoded.texts.len(), encoded.tokens());
        Ok(encoded)
    }

    /// Checks texts before they are read.
    pub fn check_sources(&self, field: &str, sources: &[Source]) -> Result<(), Refusal> {
        if sources.is_empty() {
            return Err(Refusal::field(field, "there is no text"));
        }
        if let Some(number) = sources.iter().position(Source::is_empty) {
            return Err(Refusal::field(field, format!("text {} is empty", number + 1)));
        }
        self.check_count(field, sources.len())?;
        sources.iter().try_for_each(|source| self.check_lengths(field, &source.texts()))?;
        if self.settings.log_texts {
            tracing::info!(texts = ?sources, "to be encoded");
        }
        Ok(())
    }
}

/// The tokens of texts.
fn read(
    model: &EncoderModel,
    field: &str,
    sources: &[Source],
    truncate: bool,
) -> Result<Vec<Encoding>, Refusal> {
    let refuse = |error| Refusal::of_text(field, error);
    let encoder = model.encoder();
    let mut inputs = Vec::with_capacity(sources.len());
    let mut read = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        match source {
            Source::Text(text) => inputs.push(Input::Text(text)),
            Source::Pair(first, second) => inputs.push(Input::Pair(first, second)),
            // A request has either tokens or texts.
            Source::Tokens(tokens) => read.push(encoder.read_ids(number, tokens).map_err(refuse)?),
        }
    }
    read.extend(encoder.read(&inputs).map_err(refuse)?.encodings);
    match read.iter().position(|encoding| encoding.cut != [0, 0]) {
        Some(number) if !truncate => {
            let Encoding { ids, cut, .. } = &read[number];
            let tokens = ids.len() + cut[0] + cut[1];
            Err(refuse(Error::TooLong { text: number + 1, tokens, limit: encoder.limit() }))
        }
        _ => Ok(read),
    }
}
