//! OpenAI's `POST /v1/completions`: a language model continues the prompt, a T5 or a
//! BART answers it, and a translation model translates it.

use super::logprobs::Scored;
use super::openai::{self, Ask, Style};
use crate::app::App;
use crate::choose::Completer;
use crate::refusal::Refusal;
use crate::texts::TextsOrTokens;
use crate::token::number;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::sync::Arc;

struct Completion;

/// The most tokens in the place of one, as OpenAI has it.
const MOST_TOP: u64 = 5;

impl Style for Completion {
    const ID: &'static str = "cmpl";
    const WHOLE: &'static str = "text_completion";
    const CHUNK: &'static str = "text_completion";

    fn choice(index: usize, text: &str, finish_reason: &str, logprobs: Value) -> Value {
        json!({"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason})
    }

    fn top_wanted(ask: &Ask) -> Result<Option<usize>, Refusal> {
        if ask.top_logprobs.is_some_and(|count| count > 0) {
            return Err(Refusal::field("top_logprobs", "not supported: `logprobs` is the number here"));
        }
        match &ask.logprobs {
            None | Some(Value::Null | Value::Bool(false)) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) if count <= MOST_TOP => Ok(Some(count as usize)),
                _ => Err(Refusal::field("logprobs", format!("must be a number from 0 to {MOST_TOP}"))),
            },
        }
    }

    fn logprobs(tokens: &[Scored]) -> Value {
        let texts: Vec<&str> = tokens.iter().map(|token| &token.text[..]).collect();
        let scores: Vec<Option<f64>> = tokens.iter().map(|token| token.score.map(number)).collect();
        let offset = |offset: &mut usize, text: &&str| {
            let begin = *offset;
            *offset += text.chars().count();
            Some(begin)
        };
        let offsets: Vec<usize> = texts.iter().scan(0, offset).collect();
        let is_asked = tokens.iter().any(|token| !token.top.is_empty());
        let top = is_asked.then(|| tokens.iter().map(by_text).collect::<Vec<Value>>());
        json!({"tokens": texts, "token_logprobs": scores, "top_logprobs": top, "text_offset": offsets})
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

/// A token and the most probable tokens in its place, by their texts. The token itself need not be among these. Of tokens with the
/// same text, as a word with and without a space has at the beginning, the first is told. Nothing is known of the first token of a
/// prompt.
fn by_text(token: &Scored) -> Value {
    let Some(score) = token.score else { return Value::Null };
    let mut top = Map::new();
    top.insert(token.text.clone(), number(score).into());
    for (text, score) in &token.top {
        top.entry(text).or_insert_with(|| number(*score).into());
    }
    Value::Object(top)
}

pub(super) async fn complete(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let mut ask = openai::read(&app, request).await?;
    let prompt = ask.prompt.take();
    let prompt = prompt.ok_or_else(|| Refusal::field("prompt", "is missing: it is the text to continue"))?;
    match app.completer(ask.model.as_deref())? {
        Completer::Language(place, model) => {
            openai::continued::<Completion>(app, &ask, (place, model), prompt.sources()).await
        }
        Completer::Translation(chosen) => {
            let texts = match prompt {
                TextsOrTokens::Text(text) => vec![text],
                TextsOrTokens::Texts(texts) => texts,
                TextsOrTokens::Tokens(_) | TextsOrTokens::Lists(_) => {
                    let problem = "must be a text or a list of texts: a translation model reads no tokens";
                    return Err(Refusal::field("prompt", problem));
                }
            };
            openai::answer::<Completion>(app, &ask, chosen, "prompt", &texts).await
        }
    }
}
