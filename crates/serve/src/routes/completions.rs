//! OpenAI's `POST /v1/completions`: the prompt is the text.

use super::libretranslate::OneOrMany;
use super::openai::{self, Style};
use crate::app::App;
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

struct Completion;

impl Style for Completion {
    const ID: &'static str = "cmpl";
    const WHOLE: &'static str = "text_completion";
    const CHUNK: &'static str = "text_completion";

    fn choice(index: usize, text: &str, finish_reason: &str) -> Value {
        json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish_reason})
    }

    fn opening(_index: usize) -> Option<Value> {
        None
    }

    fn delta(index: usize, text: &str) -> Value {
        json!({"index": index, "text": text, "logprobs": null, "finish_reason": null})
    }

    fn closing(index: usize, finish_reason: &str) -> Value {
        Completion::choice(index, "", finish_reason)
    }
}

pub(super) async fn complete(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let mut ask = openai::read(&app, request).await?;
    let texts = match ask.prompt.take() {
        Some(OneOrMany::One(text)) => vec![text],
        Some(OneOrMany::Many(texts)) => texts,
        None => return Err(Refusal::field("prompt", "is missing: it is the text to translate")),
    };
    openai::answer::<Completion>(app, &ask, "prompt", &texts).await
}
