//! OpenAI's `POST /v1/chat/completions`: the last message of the user is the text.

use super::logprobs::Scored;
use super::openai::{self, Ask, Content, Message, Style};
use crate::app::App;
use crate::refusal::Refusal;
use crate::token::number;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

struct Chat;

/// The most tokens in the place of one, as OpenAI has it.
const MOST_TOP: usize = 20;

impl Style for Chat {
    const ID: &'static str = "chatcmpl";
    const WHOLE: &'static str = "chat.completion";
    const CHUNK: &'static str = "chat.completion.chunk";

    fn choice(index: usize, text: &str, finish_reason: &str, logprobs: Value) -> Value {
        let message = json!({"role": "assistant", "content": text, "refusal": null});
        json!({"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish_reason})
    }

    fn top_wanted(ask: &Ask) -> Result<Option<usize>, Refusal> {
        let is_wanted = match &ask.logprobs {
            None | Some(Value::Null) => false,
            Some(value) => {
                value.as_bool().ok_or_else(|| Refusal::field("logprobs", "must be true or false"))?
            }
        };
        match ask.top_logprobs.unwrap_or(0) {
            count if count > MOST_TOP => {
                Err(Refusal::field("top_logprobs", format!("must be at most {MOST_TOP}, not {count}")))
            }
            count if count > 0 && !is_wanted => {
                Err(Refusal::field("top_logprobs", "needs `logprobs` to be true"))
            }
            count => Ok(is_wanted.then_some(count)),
        }
    }

    fn logprobs(tokens: &[Scored]) -> Value {
        let one = |text: &str, score: Option<f32>| json!({"token": text, "logprob": score.map(number), "bytes": text.as_bytes()});
        let token = |token: &Scored| {
            let mut own = one(&token.text, token.score);
            own["top_logprobs"] = token.top.iter().map(|(text, score)| one(text, Some(*score))).collect();
            own
        };
        json!({"content": tokens.iter().map(token).collect::<Vec<_>>(), "refusal": null})
    }

    fn opening(index: usize) -> Option<Value> {
        Some(piece(index, json!({"role": "assistant", "content": ""}), Value::Null, Value::Null))
    }

    fn delta(index: usize, text: &str) -> Value {
        piece(index, json!({"content": text}), Value::Null, Value::Null)
    }

    fn closing(index: usize, finish_reason: &str, logprobs: Value) -> Value {
        piece(index, json!({}), finish_reason.into(), logprobs)
    }
}

fn piece(index: usize, delta: Value, finish_reason: Value, logprobs: Value) -> Value {
    json!({"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason})
}

pub(super) async fn complete(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let mut ask = openai::read(&app, request).await?;
    let messages = ask.messages.take();
    let messages = messages.ok_or_else(|| {
        Refusal::field("messages", "is missing: the last message of the user is the text to translate")
    })?;
    let text = last_words(messages)?;
    let chosen = app.model(ask.model.as_deref(), None, None)?;
    openai::answer::<Chat>(app, &ask, chosen, "messages", &[text]).await
}

/// What the user said last.
fn last_words(messages: Vec<Message>) -> Result<String, Refusal> {
    let last = messages.into_iter().rev().find(|message| message.role == "user");
    let nothing = || Refusal::field("messages", "there is no message of the user with a text to translate");
    match last.and_then(|message| message.content).ok_or_else(nothing)? {
        Content::Text(text) => Ok(text),
        Content::Parts(parts) => {
            let text = |part: openai::Part| match part.text {
                Some(text) if part.r#type == "text" => Ok(text),
                _ => Err(Refusal::field(
                    "messages",
                    format!("`{}` is not supported, only `text`", part.r#type),
                )),
            };
            Ok(parts.into_iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
    }
}
