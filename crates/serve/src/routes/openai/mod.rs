//! What OpenAI's two ways to ask have in common: completions, and chats of which the last message is the text.
//!
//! Without a temperature, or with 0, a translation model searches as it wants to, mostly with a beam; with one it draws. A language
//! model draws unless the temperature is 0. A streamed answer has the same text as one that is not: only what the search cannot
//! change any more is sent.

mod ask;
mod continued;
mod stream;
mod told;

pub(super) use ask::{Ask, Content, Message, Part, read};
pub(super) use continued::continued;

use super::logprobs::Scored;
use crate::app::{App, now};
use crate::aside;
use crate::chosen::Chosen;
use crate::document::Format;
use crate::order::{Done, Order};
use crate::refusal::Refusal;
use crate::sse::Events;
use attentive_tasks::Split;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use stream::Stream;
use told::{Usage, Wanted};

/// How answers are written: the two ways differ in little else.
pub(super) trait Style: Send + Sync + 'static {
    /// What names begin with.
    const ID: &'static str;
    /// What a whole answer is called.
    const WHOLE: &'static str;
    /// What a piece of an answer is called.
    const CHUNK: &'static str;

    /// One of the results.
    fn choice(index: usize, text: &str, finish_reason: &str, logprobs: Value) -> Value;

    /// How many of the most probable tokens are wanted in the place of each token; none if no log-probabilities are wanted.
    fn top_wanted(ask: &Ask) -> Result<Option<usize>, Refusal>;

    /// The log-probabilities of tokens.
    fn logprobs(tokens: &[Scored]) -> Value;

    /// The piece that begins one, if there is any.
    fn opening(index: usize) -> Option<Value>;

    /// A piece of one.
    fn delta(index: usize, text: &str) -> Value;

    /// The piece that ends one.
    fn closing(index: usize, finish_reason: &str, logprobs: Value) -> Value;
}

/// Translates texts and answers in a style. `field` is what the texts are called.
pub(super) async fn answer<S: Style>(
    app: Arc<App>,
    ask: &Ask,
    chosen: Chosen,
    field: &str,
    texts: &[String],
) -> Result<Response, Refusal> {
    ask.check_translation()?;
    let top = S::top_wanted(ask)?;
    let wanted = Wanted { stops: ask.stops()?, logprobs: top.is_some() };
    let chosen = chosen.for_texts(Format::Text, texts);
    let options = ask.options(&chosen.options(), &app.settings.limits)?;
    if app.settings.log_texts {
        tracing::info!(?texts, "to be translated");
    }
    let n = options.n_best;
    let order = Order {
        max_tokens: ask.most_tokens(),
        top: top.unwrap_or(0),
        ..Order::new(chosen, options, Split::Auto)
    };
    let frame = Frame::new::<S>(&app, ask, &order.chosen.model.name);
    if ask.stream == Some(true) {
        app.check(field, texts)?;
        let pending = app.begin(&order, texts, n == 1).await?;
        let (events, response) = Events::new();
        let usage = ask.wants_usage();
        tokio::spawn(async move {
            Stream { app: &app, order: &order, frame: &frame, wanted: &wanted, events: &events }
                .send::<S>(pending, usage)
                .await
        });
        return Ok(response);
    }
    let done = app.translate(&order, field, texts).await?;
    aside::json(move || {
        let mut usage = Usage { prompt: done.iter().map(Done::source_tokens).sum(), completion: 0 };
        let choices: Vec<Value> = done
            .iter()
            .flat_map(|done| (0..done.best.len().min(n)).map(move |rank| (done, rank)))
            .enumerate()
            .map(|(index, (done, rank))| {
                let told = wanted.told::<S>(&order.chosen.model.codec, done, rank);
                usage.completion += told.tokens;
                S::choice(index, told.text, told.reason, told.logprobs)
            })
            .collect();
        let mut answer = frame.with(S::WHOLE, choices);
        answer["usage"] = usage.json();
        answer
    })
    .await
}

/// What all pieces of an answer repeat.
#[derive(Debug)]
struct Frame {
    id: String,
    created: u64,
    model: String,
}

impl Frame {
    /// What the pieces of an answer to a request repeat. The model is called as the request calls it.
    fn new<S: Style>(app: &App, ask: &Ask, model: &str) -> Frame {
        let model = ask.model.clone().unwrap_or_else(|| model.to_owned());
        Frame { id: app.answer_id(S::ID), created: now(), model }
    }

    /// The last piece of a stream, which tells how many tokens there were.
    fn usage<S: Style>(&self, usage: Usage) -> Value {
        let mut last = self.with(S::CHUNK, Vec::new());
        last["usage"] = usage.json();
        last
    }

    fn with(&self, object: &str, choices: Vec<Value>) -> Value {
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model, "choices": choices})
    }
}
