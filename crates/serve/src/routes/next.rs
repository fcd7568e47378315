//! Our own `POST /v1/next`: the tokens that may follow a text, the most probable first.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::detokenizer::{Detokenizer, Spell};
use crate::model::LanguageModel;
use crate::options::within;
use crate::prompts::{Prompt, PromptOrder};
use crate::refusal::Refusal;
use crate::texts::Source;
use crate::token::finite;
use attentive_generate::{MaxLength, Options};
use attentive_tasks::StopStrings;
use attentive_tensor::Best;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    model: Option<String>,
    text: String,
    count: Option<usize>,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    model: String,
    /// How many tokens the text has.
    tokens: usize,
    next: Vec<Next>,
}

/// A token that may follow.
#[derive(Debug, Serialize)]
struct Next {
    id: u32,
    /// What it adds to the text.
    text: String,
    /// The token as the tokenizer writes it.
    piece: String,
    /// The log of its probability.
    logprob: f32,
    /// Whether the text ends with it.
    ends: bool,
}

/// The default number of tokens, and the greatest.
const USUAL: usize = 10;
const MOST: usize = 100;

pub(super) async fn next(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let (place, model) = app.language(ask.model.as_deref())?;
    let top = within("count", ask.count.unwrap_or(USUAL), MOST)?;
    // The model alone is asked, and nothing that a search would do to its answer.
    let options = Options { max_length: MaxLength::SourceAnd(1), ..Options::continuing() };
    let stops = StopStrings::default();
    let order = PromptOrder { place, model, options, stops, top, judges: false, field: "text" };
    let mut prompts = app.read_prompts(&order, vec![Source::Text(ask.text)]).await?;
    let mut continued = app.begin_prompts(&order, &prompts, false)?.wait(&app).await?;
    let found = continued.found.pop().and_then(|mut found| found.pop());
    let best = found.and_then(|mut found| found.top.pop()).unwrap_or_default();
    let prompt = prompts.pop().ok_or_else(Refusal::fault)?;
    aside::json(move || {
        let next = following(&order.model, &prompt, &best);
        Answer { model: order.model.name.clone(), tokens: prompt.tokens.len(), next }
    })
    .await
}

/// What each of the tokens would be behind a prompt.
fn following(model: &LanguageModel, prompt: &Prompt, best: &[Best]) -> Vec<Next> {
    let mut text = Detokenizer::default();
    // If the text cannot be decoded, tokens are shown by their pieces alone.
    let _ = text.set(&model.codec, &prompt.tokens);
    let next = |best: &Best| Next {
        id: best.token,
        text: text.would_add(&model.codec, best.token).unwrap_or_default(),
        piece: model.codec.piece(best.token).unwrap_or_default(),
        logprob: finite(best.score),
        ends: model.is_end(best.token),
    };
    best.iter().map(next).collect()
}
