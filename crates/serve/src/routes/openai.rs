//! What OpenAI's two ways to ask have in common: completions, and chats of which the last message is the text.
//!
//! Without a temperature, or with 0, the model searches as it wants to, mostly with a beam; with one it draws. A streamed
//! answer has the same text as one that is not: only what the search cannot change any more is sent.

use super::logprobs::{self, Scored};
use crate::app::{App, now};
use crate::aside;
use crate::body::json;
use crate::decode::{Done, Order, Pending};
use crate::options::{SamplingAsk, SearchAsk};
use crate::refusal::Refusal;
use crate::sse::{Events, Gone};
use crate::stop::Stops;
use crate::texts::OneOrMany;
use attentive_generate::{Codec, Split};
use axum::extract::Request;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The request, in OpenAI's words. What has no meaning for a translator is ignored; what would change the answer, and cannot
/// be had, is refused.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    pub model: Option<String>,
    pub prompt: Option<OneOrMany>,
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
    stop: Option<OneOrMany>,
    pub logprobs: Option<Value>,
    pub top_logprobs: Option<usize>,
    echo: Option<bool>,
    suffix: Option<String>,
    tools: Option<Value>,
    tool_choice: Option<Value>,
    functions: Option<Value>,
    function_call: Option<Value>,
    logit_bias: Option<Value>,
    response_format: Option<Value>,
    modalities: Option<Value>,
    presence_penalty: Option<Value>,
    frequency_penalty: Option<Value>,
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

/// Reads a request and refuses what cannot be had.
pub(super) async fn read(app: &App, request: Request) -> Result<Ask, Refusal> {
    let ask: Ask = json(app, request).await?;
    let refused = [
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
        ("tools", asks(&ask.tools, &[]), NO_TOOLS),
        ("tool_choice", asks(&ask.tool_choice, &["none", "auto"]), NO_TOOLS),
        ("functions", asks(&ask.functions, &[]), NO_TOOLS),
        ("function_call", asks(&ask.function_call, &["none", "auto"]), NO_TOOLS),
        ("logit_bias", asks(&ask.logit_bias, &[]), "a translation cannot be biased"),
        ("response_format", asks_for_other_format(&ask.response_format), "a translation is text"),
        (
            "modalities",
            asks(&ask.modalities, &[]) && ask.modalities != Some(json!(["text"])),
            "a translation is text",
        ),
        ("presence_penalty", asks(&ask.presence_penalty, &[]), NO_PENALTIES),
        ("frequency_penalty", asks(&ask.frequency_penalty, &[]), NO_PENALTIES),
    ];
    match refused.into_iter().find(|(_, is_asked, _)| *is_asked) {
        Some((field, _, reason)) => Err(Refusal::field(field, format!("not supported: {reason}"))),
        None => Ok(ask),
    }
}

const NO_TOOLS: &str = "a translator calls no tools";
const NO_PENALTIES: &str = "words of a translation may repeat";

/// Whether a value asks for something: neither is it nothing, empty or zero, nor one of the `neutral` words.
fn asks(value: &Option<Value>, neutral: &[&str]) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
        Some(Value::String(word)) => !word.is_empty() && !neutral.contains(&&**word),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Bool(true)) => true,
    }
}

fn asks_for_other_format(value: &Option<Value>) -> bool {
    asks(value, &[]) && value.as_ref().is_some_and(|format| format["type"] != "text")
}

/// What a request wants to know of an answer, and where it is to end.
#[derive(Debug)]
struct Wanted {
    stops: Stops,
    logprobs: bool,
}

impl Wanted {
    /// A result as it is told: its text, why it ends there, and the log-probabilities of its tokens, if they are wanted.
    fn result<'a, S: Style>(
        &self,
        codec: &Codec,
        done: &'a Done,
        rank: usize,
    ) -> (&'a str, &'static str, Value) {
        let best = &done.best[rank];
        let cut = self.stops.cut(&best.text);
        let text = cut.unwrap_or(&best.text);
        let reason = if done.ended[rank] || cut.is_some() { "stop" } else { "length" };
        if !self.logprobs {
            return (text, reason, Value::Null);
        }
        let mut tokens =
            logprobs::scored(codec, &done.cut, best, done.top.get(rank).map_or(&[], Vec::as_slice));
        if cut.is_some() {
            // Those that the text has room for.
            let mut left = text.len() as isize;
            tokens.retain(|token| {
                let has_room = left > 0;
                left -= token.text.len() as isize;
                has_room
            });
        }
        (text, reason, S::logprobs(&tokens))
    }
}

/// Translates texts and answers in a style. `field` is what the texts are called.
pub(super) async fn answer<S: Style>(
    app: Arc<App>,
    ask: &Ask,
    field: &str,
    texts: &[String],
) -> Result<Response, Refusal> {
    let top = S::top_wanted(ask)?;
    let stops = Stops::new(ask.stop.as_ref().map_or(&[], OneOrMany::as_slice))?;
    let wanted = Wanted { stops, logprobs: top.is_some() };
    let chosen = app.model(ask.model.as_deref(), None)?;
    let options =
        search(ask).options(&chosen.model.options, &app.settings.limits).map_err(in_openais_words)?;
    if app.settings.log_texts {
        tracing::info!(?texts, "to be translated");
    }
    let n = options.n_best;
    let max_tokens = ask.max_completion_tokens.or(ask.max_tokens);
    let order = Order { max_tokens, top: top.unwrap_or(0), ..Order::new(chosen, options, Split::Auto) };
    let name = ask.model.clone().unwrap_or_else(|| order.chosen.model.name.clone());
    let frame = Frame { id: app.answer_id(S::ID), created: now(), model: name };
    if ask.stream == Some(true) {
        app.check(field, texts)?;
        let pending = app.begin(&order, texts, n == 1).await?;
        let (events, response) = Events::new();
        let usage = ask.stream_options.as_ref().is_some_and(|options| options.include_usage);
        tokio::spawn(async move {
            Stream { app: &app, order: &order, frame: &frame, wanted: &wanted, events: &events }
                .send::<S>(pending, usage)
                .await
        });
        return Ok(response);
    }
    let done = app.translate(&order, field, texts).await?;
    aside::json(move || {
        let choices: Vec<Value> = done
            .iter()
            .flat_map(|done| (0..done.best.len().min(n)).map(move |rank| (done, rank)))
            .enumerate()
            .map(|(index, (done, rank))| {
                let (text, reason, logprobs) = wanted.result::<S>(&order.chosen.model.codec, done, rank);
                S::choice(index, text, reason, logprobs)
            })
            .collect();
        let mut answer = frame.with(S::WHOLE, choices);
        answer["usage"] = usage(&done);
        answer
    })
    .await
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

fn usage(done: &[Done]) -> Value {
    let prompt: usize = done.iter().map(Done::source_tokens).sum();
    let completion: usize = done.iter().map(Done::target_tokens).sum();
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

/// An answer that is sent piece by piece.
struct Stream<'a> {
    app: &'a App,
    order: &'a Order,
    frame: &'a Frame,
    wanted: &'a Wanted,
    events: &'a Events,
}

impl Stream<'_> {
    /// Sends it, for as long as somebody listens.
    async fn send<S: Style>(&self, pending: Vec<Pending>, with_usage: bool) {
        let sent = async {
            let mut all = Vec::with_capacity(pending.len());
            for (number, pending) in pending.into_iter().enumerate() {
                all.push(self.send_one::<S>(number, pending).await?);
            }
            if with_usage {
                let mut last = self.frame.with(S::CHUNK, Vec::new());
                last["usage"] = usage(&all);
                self.events.data(&last).await?;
            }
            self.events.done().await
        };
        tokio::select! {
            _ = sent => {}
            () = self.events.gone() => {}
        }
    }

    async fn chunk<S: Style>(&self, choice: Value) -> Result<(), Gone> {
        self.events.data(&self.frame.with(S::CHUNK, vec![choice])).await
    }

    /// Sends the answer to one text.
    async fn send_one<S: Style>(&self, number: usize, mut pending: Pending) -> Result<Done, Gone> {
        let first = number * self.order.options.n_best;
        if let Some(opening) = S::opening(first) {
            self.chunk::<S>(opening).await?;
        }
        let stops = &self.wanted.stops;
        let mut told = String::new();
        while let Some((text, settled)) = pending.draft().await {
            // What was told cannot be taken back.
            let Some(fresh) = text[..settled].strip_prefix(&*told) else { continue };
            // A stop that is there may be part of a longer one that began before it.
            let (cut, held) = (stops.cut(fresh).unwrap_or(fresh), stops.certain(fresh));
            let more = if cut.len() < held.len() { cut } else { held };
            if !more.is_empty() {
                self.chunk::<S>(S::delta(first, more)).await?;
                told.push_str(more);
            }
        }
        let done = match pending.wait(self.app).await {
            Ok(done) => done,
            Err(refusal) => {
                self.events.data(&refusal.openai()).await?;
                return Err(Gone);
            }
        };
        for rank in 0..done.best.len().min(self.order.options.n_best) {
            if rank > 0
                && let Some(opening) = S::opening(first + rank)
            {
                self.chunk::<S>(opening).await?;
            }
            let codec = &self.order.chosen.model.codec;
            // Log-probabilities take a while; others go on meanwhile.
            let result = || self.wanted.result::<S>(codec, &done, rank);
            let (text, reason, logprobs) = tokio::task::block_in_place(result);
            // What was told cannot be taken back.
            let rest = text.strip_prefix(&told).unwrap_or_default();
            if !rest.is_empty() {
                self.chunk::<S>(S::delta(first + rank, rest)).await?;
            }
            self.chunk::<S>(S::closing(first + rank, reason, logprobs)).await?;
            told.clear();
        }
        Ok(done)
    }
}
