//! What OpenAI's two ways to ask have in common: completions, and chats of which the last message is the text.
//!
//! Without a temperature, or with 0, the model searches as it wants to, mostly with a beam; with one it draws. A streamed
//! answer has the same text as one that is not: only what the search cannot change any more is sent.

use crate::app::{App, now};
use crate::body::json;
use crate::decode::{Done, Order, Pending};
use crate::options::{SamplingAsk, SearchAsk};
use crate::refusal::Refusal;
use crate::sse::{Events, Gone};
use attentive_generate::Split;
use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The request, in OpenAI's words. What has no meaning for a translator is ignored; what would change the answer, and cannot
/// be had, is refused.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    pub model: Option<String>,
    pub prompt: Option<super::libretranslate::OneOrMany>,
    pub messages: Option<Vec<Message>>,
    n: Option<usize>,
    best_of: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    seed: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    stop: Option<Value>,
    logprobs: Option<Value>,
    echo: Option<bool>,
    suffix: Option<String>,
}

/// A message of a chat.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub role: String,
    pub content: Option<Content>,
}

/// What a message says.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of parts with texts")]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of what a message says.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    pub r#type: String,
    pub text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// How answers are written: the two ways differ in little else.
pub(super) trait Style: Send + Sync + 'static {
    /// What names begin with.
    const ID: &'static str;
    /// What a whole answer is called.
    const WHOLE: &'static str;
    /// What a piece of an answer is called.
    const CHUNK: &'static str;

    /// One of the results.
    fn choice(index: usize, text: &str, finish_reason: &str) -> Value;

    /// The piece that begins one, if there is any.
    fn opening(index: usize) -> Option<Value>;

    /// A piece of one.
    fn delta(index: usize, text: &str) -> Value;

    /// The piece that ends one.
    fn closing(index: usize, finish_reason: &str) -> Value;
}

/// Reads a request and refuses what cannot be had.
pub(super) async fn read(app: &App, request: Request) -> Result<Ask, Refusal> {
    let ask: Ask = json(app, request).await?;
    let asks = |value: &Option<Value>| {
        value
            .as_ref()
            .is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)) && *value != json!([]))
    };
    let refused = [
        ("stop", asks(&ask.stop), "a translation always ends at its end token"),
        (
            "logprobs",
            asks(&ask.logprobs),
            "use /v1/translate, which returns the log-probability of every token",
        ),
        ("echo", ask.echo == Some(true), "a translation does not contain the source text"),
        (
            "suffix",
            ask.suffix.as_ref().is_some_and(|suffix| !suffix.is_empty()),
            "a translation has no suffix",
        ),
        (
            "best_of",
            ask.best_of.is_some_and(|best_of| best_of != ask.n.unwrap_or(1)),
            "it must be equal to `n`",
        ),
    ];
    match refused.into_iter().find(|(_, is_asked, _)| *is_asked) {
        Some((field, _, reason)) => Err(Refusal::field(field, format!("not supported: {reason}"))),
        None => Ok(ask),
    }
}

/// Translates texts and answers in a style. `field` is what the texts are called.
pub(super) async fn answer<S: Style>(
    app: Arc<App>,
    ask: &Ask,
    field: &str,
    texts: &[String],
) -> Result<Response, Refusal> {
    let chosen = app.model(ask.model.as_deref(), None)?;
    let options =
        search(ask).options(&chosen.model.options, &app.settings.limits).map_err(in_openais_words)?;
    if app.settings.log_texts {
        tracing::info!(?texts, "to be translated");
    }
    let n = options.n_best;
    let order = Order { chosen, options, prefix: Vec::new(), split: Split::Auto, align: false };
    let name = ask.model.clone().unwrap_or_else(|| order.chosen.model.name.clone());
    let frame = Frame { id: app.answer_id(S::ID), created: now(), model: name };
    if ask.stream == Some(true) {
        app.check(field, texts)?;
        let pending = app.begin(&order, texts, n == 1)?;
        let (events, response) = Events::new();
        let usage = ask.stream_options.as_ref().is_some_and(|options| options.include_usage);
        tokio::spawn(async move { stream::<S>(&app, &order, &frame, pending, &events, usage).await });
        return Ok(response);
    }
    let done = app.translate(&order, field, texts).await?;
    let choices: Vec<Value> = done
        .iter()
        .flat_map(|done| done.best.iter().zip(&done.ended).take(n))
        .enumerate()
        .map(|(index, (best, ended))| S::choice(index, &best.text, reason(*ended)))
        .collect();
    let mut answer = frame.with(S::WHOLE, choices);
    answer["usage"] = usage(&done);
    Ok(Json(answer).into_response())
}

/// The search that a request asks for.
fn search(ask: &Ask) -> SearchAsk {
    let draws = ask.temperature.is_some_and(|temperature| temperature != 0.0)
        || ask.temperature.is_none() && ask.top_p.is_some_and(|top_p| top_p < 1.0);
    let sampling = SamplingAsk {
        temperature: ask.temperature,
        top_p: ask.top_p,
        seed: ask.seed.map(i64::cast_unsigned),
        ..SamplingAsk::default()
    };
    SearchAsk {
        n_best: ask.n,
        max_length: ask.max_completion_tokens.or(ask.max_tokens),
        sampling: draws.then_some(sampling),
        ..SearchAsk::default()
    }
}

/// A refusal by the name that the field has here.
fn in_openais_words(refusal: Refusal) -> Refusal {
    let words = [
        ("n_best", "n"),
        ("sampling.temperature", "temperature"),
        ("sampling.top_p", "top_p"),
        ("max_length", "max_tokens"),
    ];
    let word = refusal.field.as_deref().and_then(|field| words.iter().find(|(ours, _)| *ours == field));
    match word {
        Some((ours, theirs)) => Refusal {
            message: refusal.message.replacen(ours, theirs, 1),
            field: Some((*theirs).to_owned()),
            ..refusal
        },
        None => refusal,
    }
}

/// What all pieces of an answer repeat.
#[derive(Debug)]
struct Frame {
    id: String,
    created: u64,
    model: String,
}

impl Frame {
    fn with(&self, object: &str, choices: Vec<Value>) -> Value {
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model, "choices": choices})
    }
}

fn reason(ended: bool) -> &'static str {
    if ended { "stop" } else { "length" }
}

fn usage(done: &[Done]) -> Value {
    let prompt: usize = done.iter().map(Done::source_tokens).sum();
    let completion: usize = done.iter().map(Done::target_tokens).sum();
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

/// Sends an answer piece by piece, for as long as somebody listens.
async fn stream<S: Style>(
    app: &App,
    order: &Order,
    frame: &Frame,
    pending: Vec<Pending>,
    events: &Events,
    with_usage: bool,
) {
    let sent = async {
        let mut all = Vec::with_capacity(pending.len());
        for (number, pending) in pending.into_iter().enumerate() {
            all.push(stream_one::<S>(app, order, frame, number, pending, events).await?);
        }
        if with_usage {
            let mut last = frame.with(S::CHUNK, Vec::new());
            last["usage"] = usage(&all);
            events.data(&last).await?;
        }
        events.done().await
    };
    tokio::select! {
        _ = sent => {}
        () = events.gone() => {}
    }
}

/// Sends the answer to one text.
async fn stream_one<S: Style>(
    app: &App,
    order: &Order,
    frame: &Frame,
    number: usize,
    mut pending: Pending,
    events: &Events,
) -> Result<Done, Gone> {
    let first = number * order.options.n_best;
    let chunk = |choice: Value| frame.with(S::CHUNK, vec![choice]);
    if let Some(opening) = S::opening(first) {
        events.data(&chunk(opening)).await?;
    }
    let mut told = String::new();
    while let Some((text, settled)) = pending.draft().await {
        let certain: String = text.chars().take(settled).collect();
        if let Some(more) = certain.strip_prefix(&told).filter(|more| !more.is_empty()) {
            events.data(&chunk(S::delta(first, more))).await?;
            told = certain;
        }
    }
    let done = match pending.wait(app).await {
        Ok(done) => done,
        Err(refusal) => {
            events.data(&refusal.openai()).await?;
            return Err(Gone);
        }
    };
    for (rank, (best, ended)) in done.best.iter().zip(&done.ended).take(order.options.n_best).enumerate() {
        if rank > 0
            && let Some(opening) = S::opening(first + rank)
        {
            events.data(&chunk(opening)).await?;
        }
        let rest = best.text.strip_prefix(&told).unwrap_or(&best.text);
        if !rest.is_empty() {
            events.data(&chunk(S::delta(first + rank, rest))).await?;
        }
        events.data(&chunk(S::closing(first + rank, reason(*ended)))).await?;
        told.clear();
    }
    Ok(done)
}
