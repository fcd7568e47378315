//! A request in OpenAI's words.

use crate::app::App;
use crate::body::json;
use crate::options::{SamplingAsk, SearchAsk};
use crate::refusal::Refusal;
use crate::settings::Limits;
use crate::texts::OneOrMany;
use attentive_generate::Options;
use axum::extract::Request;
use serde::Deserialize;
use serde_json::{Value, json};

/// The request, in OpenAI's words. What has no meaning for a translator is ignored; what would change the answer, and cannot
/// be had, is refused.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Ask {
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
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
    pub(super) stop: Option<OneOrMany>,
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
pub(in crate::routes) struct Message {
    pub role: String,
    pub content: Option<Content>,
}

/// What a message says.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of parts with texts")]
pub(in crate::routes) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of what a message says.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Part {
    pub r#type: String,
    pub text: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StreamOptions {
    #[serde(default)]
    pub include_usage: bool,
}

impl Ask {
    /// The most tokens of an answer, if the request limits them.
    pub(super) fn most_tokens(&self) -> Option<usize> {
        self.max_completion_tokens.or(self.max_tokens)
    }

    /// The options of the search that the request asks for.
    pub(super) fn options(&self, model: &Options, limits: &Limits) -> Result<Options, Refusal> {
        let draws = self.temperature.is_some_and(|temperature| temperature != 0.0)
            || self.temperature.is_none() && self.top_p.is_some_and(|top_p| top_p < 1.0);
        let sampling = SamplingAsk {
            temperature: self.temperature,
            top_p: self.top_p,
            seed: self.seed.map(i64::cast_unsigned),
            ..SamplingAsk::default()
        };
        let search = SearchAsk {
            n_best: self.n,
            max_length: self.most_tokens(),
            sampling: draws.then_some(sampling),
            ..SearchAsk::default()
        };
        search.options(model, limits).map_err(in_openais_words)
    }
}

/// Reads a request and refuses what cannot be had.
pub(in crate::routes) async fn read(app: &App, request: Request) -> Result<Ask, Refusal> {
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
