//! A request in OpenAI's words.

use crate::app::App;
use crate::body::json;
use crate::options::{SamplingAsk, SearchAsk, within};
use crate::refusal::Refusal;
use crate::settings::Limits;
use crate::texts::{OneOrMany, TextsOrTokens};
use attentive_generate::{MaxLength, Options};
use attentive_tasks::StopStrings;
use axum::extract::Request;
use serde::Deserialize;
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The request, in OpenAI's words. What has no meaning for the model is ignored; what would change the answer, and cannot be had, is
/// refused.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Ask {
    pub model: Option<String>,
    pub prompt: Option<TextsOrTokens>,
    pub messages: Option<Vec<Message>>,
    n: Option<usize>,
    best_of: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    seed: Option<i64>,
    pub(super) stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    stop: Option<OneOrMany>,
    pub logprobs: Option<Value>,
    pub top_logprobs: Option<usize>,
    pub(super) echo: Option<bool>,
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
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
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

    /// The options with which a language model continues a prompt, and how many of the results are wanted. They are as OpenAI has them:
    /// it draws from all tokens, and anew for each request without a seed.
    pub(super) fn continuing(&self, model: &Options, limits: &Limits) -> Result<(Options, usize), Refusal> {
        let n = within("n", self.n.unwrap_or(1), limits.results)?;
        let best_of = within("best_of", self.best_of.unwrap_or(n), limits.results)?;
        if best_of < n {
            return Err(Refusal::field(
                "best_of",
                format!("must be at least `n`, which is {n}, not {best_of}"),
            ));
        }
        if best_of > n && self.stream == Some(true) {
            return Err(Refusal::field("best_of", "cannot be more than `n` together with `stream`"));
        }
        let is_greedy = self.temperature == Some(0.0);
        let own = model.sampling.unwrap_or_default();
        let sampling = SamplingAsk {
            temperature: self.temperature.filter(|_| !is_greedy).or(Some(own.temperature)),
            top_k: Some(own.top_k),
            top_p: self.top_p.or(Some(own.top_p)),
            min_p: Some(own.min_p),
            seed: None,
        };
        let sampling = sampling.sampling().map_err(in_openais_words)?;
        let options = Options {
            beam: 1,
            n_best: if is_greedy { 1 } else { best_of },
            sampling: (!is_greedy).then_some(sampling),
            seed: self.seed.map_or_else(any_seed, i64::cast_unsigned),
            max_length: MaxLength::SourceAnd(self.most_tokens().unwrap_or(USUAL_TOKENS)),
            ..model.clone()
        };
        Ok((options, n))
    }

    /// The options with which a model with an encoder answers a prompt, and how many of the results are wanted. Without a temperature it
    /// searches as it wants to.
    pub(super) fn answering(&self, model: &Options, limits: &Limits) -> Result<(Options, usize), Refusal> {
        let options = self.options(model, limits)?;
        let seed = self.seed.map_or_else(any_seed, i64::cast_unsigned);
        Ok((Options { seed, ..options.clone() }, options.n_best))
    }

    /// The texts that end an answer.
    pub(super) fn stops(&self) -> Result<StopStrings, Refusal> {
        match self.stop.as_ref().map_or(&[][..], OneOrMany::as_slice) {
            texts if texts.len() > MOST_STOPS => {
                let problem = format!("there are {} texts, but the maximum is {MOST_STOPS}", texts.len());
                Err(Refusal::field("stop", problem))
            }
            texts => Ok(StopStrings::new(texts)),
        }
    }

    /// Whether the last piece of a stream is to tell how many tokens there were.
    pub(super) fn wants_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.include_usage)
    }

    /// Refuses what no model here can do.
    fn check(&self) -> Result<(), Refusal> {
        refuse([
            ("tools", asks(&self.tools, &[]), NO_TOOLS),
            ("tool_choice", asks(&self.tool_choice, &["none", "auto"]), NO_TOOLS),
            ("functions", asks(&self.functions, &[]), NO_TOOLS),
            ("function_call", asks(&self.function_call, &["none", "auto"]), NO_TOOLS),
            ("logit_bias", asks(&self.logit_bias, &[]), NO_BIAS),
            ("response_format", asks_for_other_format(&self.response_format), TEXT_ALONE),
            (
                "modalities",
                asks(&self.modalities, &[]) && self.modalities != Some(json!(["text"])),
                TEXT_ALONE,
            ),
            ("presence_penalty", asks(&self.presence_penalty, &[]), NO_PENALTIES),
            ("frequency_penalty", asks(&self.frequency_penalty, &[]), NO_PENALTIES),
        ])
    }

    /// Refuses what a translation model cannot do.
    pub(super) fn check_translation(&self) -> Result<(), Refusal> {
        self.check_answer("a translation does not contain the source text", "a translation has no suffix")
    }

    /// Refuses what a model that answers prompts cannot do.
    pub(super) fn check_answering(&self) -> Result<(), Refusal> {
        self.check_answer("an answer does not contain the prompt", "an answer has no suffix")
    }

    /// Refuses what a model with an encoder cannot do, for these reasons.
    fn check_answer(&self, no_echo: &'static str, no_suffix: &'static str) -> Result<(), Refusal> {
        let best_of = self.best_of.is_some_and(|best_of| best_of != self.n.unwrap_or(1));
        refuse([
            ("echo", self.echo == Some(true), no_echo),
            ("suffix", self.has_suffix(), no_suffix),
            ("best_of", best_of, "it must be equal to `n`"),
        ])?;
        self.check()
    }

    /// Refuses what a language model cannot do.
    pub(super) fn check_continuation(&self) -> Result<(), Refusal> {
        refuse([(
            "suffix",
            self.has_suffix(),
            "the model writes behind the prompt, and knows of nothing that follows",
        )])?;
        self.check()
    }

    fn has_suffix(&self) -> bool {
        self.suffix.as_ref().is_some_and(|suffix| !suffix.is_empty())
    }
}

/// A seed that no other request has.
fn any_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Reads a request.
pub(in crate::routes) async fn read(app: &App, request: Request) -> Result<Ask, Refusal> {
    json(app, request).await
}

/// A field, whether it asks for what cannot be had, and why it cannot be had.
type Refused = (&'static str, bool, &'static str);

fn refuse(fields: impl IntoIterator<Item = Refused>) -> Result<(), Refusal> {
    match fields.into_iter().find(|(_, is_asked, _)| *is_asked) {
        Some((field, _, reason)) => Err(Refusal::field(field, format!("not supported: {reason}"))),
        None => Ok(()),
    }
}

const NO_TOOLS: &str = "the model calls no tools";
const NO_PENALTIES: &str = "words may repeat";
const TEXT_ALONE: &str = "an answer is text";
const NO_BIAS: &str = "tokens cannot be biased";
/// How many tokens a language model writes where a request says nothing else, as OpenAI has it.
const USUAL_TOKENS: usize = 16;
/// The most texts that end an answer, as OpenAI has it.
const MOST_STOPS: usize = 4;

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
