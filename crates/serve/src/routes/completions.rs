//! OpenAI's `POST /v1/completions`: the prompt is the text.

use super::openai::{self, Style};
use crate::app::App;
use crate::refusal::Refusal;
use crate::token::number;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

struct Completion;

impl Style for Completion {
    const ID: &'static str = "cmpl";
    const WHOLE: &'static str = "text_completion";
    const CHUNK: &'static str = "text_completion";

    fn choice(index: usize, text: &str, finish_reason: &str, logprobs: Value) -> Value {
        json!({"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason})
    }

    /// How many other tokens are told for each: none is possible.
    fn asks_for_logprobs(value: &Value) -> Option<bool> {
        match value {
            Value::Bool(false) => Some(false),
            value => (value.as_u64() == Some(0)).then_some(true),
        }
    }

    fn logprobs(tokens: &[(String, f32)]) -> Value {
        let (texts, scores): (Vec<&str>, Vec<f64>) =
            tokens.iter().map(|(text, score)| (&text[..], number(*score))).unzip();
        let offset = |offset: &mut usize, text: &&str| {
            let begin = *offset;
            *offset += text.chars().count();
            Some(begin)
        };
        let offsets: Vec<usize> = texts.iter().scan(0, offset).collect();
        json!({"tokens": texts, "token_logprobs": scores, "top_logprobs": null, "text_offset": offsets})
    }

    fn opening(_index: usize) -> Option<Value> {
        None
    }

    fn delta(index: usize, text: &str) -> Value {
        json!({"index": index, "text": text, "logprobs": null, "finish_reason": null})
    }

    fn closing(index: usize, finish_reason: &str, logprobs: Value) -> Value {
        Completion::choice(index, "", finish_reason, logprobs)
    }
}

pub(super) async fn complete(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask = openai::read(&app, request).await?;
    let Some(texts) = &ask.prompt else {
        return Err(Refusal::field("prompt", "is missing: it is the text to translate"));
    };
    openai::answer::<Completion>(app, &ask, "prompt", texts.as_slice()).await
}
