//! Our own `POST /v1/translate`: n-best lists, scores, alignments, prefixes, alternatives, and drafts as they are written.

use crate::app::App;
use crate::aside;
use crate::body::json;
use crate::decode::Pending;
use crate::document::Format;
use crate::model::TranslationModel;
use crate::options::{SamplingAsk, SearchAsk, within};
use crate::order::{Done, Order};
use crate::refusal::Refusal;
use crate::sse::{Events, Gone};
use crate::texts::OneOrMany;
use crate::token::{Token, finite, tokens};
use attentive_tasks::Split;
use attentive_text::tokenizer::Side;
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    model: Option<String>,
    text: OneOrMany,
    source: Option<String>,
    target: Option<String>,
    n_best: Option<usize>,
    beam: Option<usize>,
    alpha: Option<f32>,
    length_penalty: Option<f32>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    sampling: Option<SamplingAsk>,
    prefix: Option<String>,
    prefix_tokens: Option<Vec<u32>>,
    alternatives: Option<usize>,
    #[serde(default)]
    format: Format,
    split: Option<Split>,
    #[serde(default)]
    alignments: bool,
    #[serde(default)]
    stream: bool,
}

impl Ask {
    /// Refuses what makes no sense with a document.
    fn check_format(&self) -> Result<(), Refusal> {
        let refused = [
            ("prefix", self.prefix.is_some()),
            ("prefix_tokens", self.prefix_tokens.is_some()),
            ("alternatives", self.alternatives.is_some()),
            ("alignments", self.alignments),
            ("stream", self.stream),
        ];
        match refused.iter().find(|(_, is_asked)| *is_asked) {
            Some((field, _)) if self.format == Format::Html => {
                Err(Refusal::field(*field, "not supported with the format `html`"))
            }
            _ => Ok(()),
        }
    }
}

/// The answer.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    model: String,
    translations: Vec<Translation>,
    usage: Usage,
}

#[derive(Debug, Serialize)]
struct Translation {
    /// The tokens of the source.
    source: Vec<Token>,
    /// How many lines and sentences were translated each for itself.
    parts: usize,
    hypotheses: Vec<Hypothesis>,
}

#[derive(Debug, Serialize)]
struct Hypothesis {
    text: String,
    score: f32,
    /// Whether it came to its end.
    ended: bool,
    tokens: Vec<Token>,
    /// Pairs of a word of the source and a word of the translation, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<Vec<(usize, usize)>>,
}

#[derive(Debug, Serialize)]
struct Usage {
    source_tokens: usize,
    target_tokens: usize,
}

/// A draft of a text, while it is being written.
#[derive(Debug, Serialize)]
struct Written<'a> {
    /// Which of the texts.
    index: usize,
    /// What has been written of it.
    text: &'a str,
    /// How many of its characters cannot change any more.
    settled: usize,
}

pub(super) async fn translate(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    ask.check_format()?;
    let source = ask.source.as_deref().filter(|source| *source != "auto");
    let chosen = app.model(ask.model.as_deref(), source, ask.target.as_deref())?;
    let chosen = chosen.for_texts(ask.format, ask.text.as_slice());
    let limits = &app.settings.limits;
    let Ask { n_best, beam, alpha, length_penalty, min_length, max_length, sampling, .. } = &ask;
    let search = SearchAsk {
        n_best: *n_best,
        beam: *beam,
        alpha: *alpha,
        length_penalty: *length_penalty,
        min_length: *min_length,
        max_length: *max_length,
        sampling: sampling.clone(),
    };
    let options = search.options(&chosen.options(), limits)?;
    let prefix = match (&ask.prefix, &ask.prefix_tokens) {
        (Some(_), Some(_)) => {
            return Err(Refusal::field("prefix", "cannot be used together with `prefix_tokens`"));
        }
        (Some(text), None) => {
            app.check("prefix", &[text])?;
            chosen.model.codec.prefix(text)?
        }
        (None, Some(tokens)) => tokens.clone(),
        (None, None) => Vec::new(),
    };
    // A prefix, and ways to go on behind it, are of a line as a whole.
    let is_whole = !prefix.is_empty() || ask.alternatives.is_some();
    let split = ask.split.unwrap_or(if is_whole { Split::Whole } else { Split::Auto });
    let texts = ask.text.as_slice();
    if app.settings.log_texts {
        tracing::info!(?texts, "to be translated");
    }
    let order = Order { prefix, align: ask.alignments, ..Order::new(chosen, options, split) };
    if let Some(count) = ask.alternatives {
        let count = within("alternatives", count, limits.results)?;
        let [text] = texts else {
            return Err(Refusal::field("alternatives", "only one text per request is supported"));
        };
        if ask.stream {
            return Err(Refusal::field("stream", "cannot be used together with `alternatives`"));
        }
        let done = app.alternatives(&order, "text", text, count).await?;
        return Ok(Json(answer(&order.chosen.model, vec![done], false)).into_response());
    }
    if ask.stream {
        app.check("text", texts)?;
        let pending = app.begin(&order, texts, true).await?;
        let (events, response) = Events::new();
        tokio::spawn(stream(app, order, pending, events));
        return Ok(response);
    }
    let done = app.translate_as(ask.format, &order, "text", texts).await?;
    aside::json(move || answer(&order.chosen.model, done, ask.alignments)).await
}

/// Writes drafts as they come, and then the answer. A client that has gone is not waited for.
async fn stream(app: Arc<App>, order: Order, pending: Vec<Pending>, events: Events) {
    let model = &order.chosen.model;
    let mut done = Vec::with_capacity(pending.len());
    for (index, mut pending) in pending.into_iter().enumerate() {
        let told = async {
            while let Some((text, settled)) = pending.draft().await {
                let settled = text[..settled].chars().count();
                events.named("written", &Written { index, text, settled }).await?;
            }
            Ok::<(), Gone>(())
        };
        tokio::select! {
            told = told => if told.is_err() { return },
            () = events.gone() => return,
        }
        match pending.wait(&app).await {
            Ok(one) => done.push(one),
            Err(refusal) => {
                let _ = events.named("error", &refusal.openai()).await;
                return;
            }
        }
    }
    let _ = events.named("done", &answer(model, done, order.align)).await;
}

fn answer(model: &TranslationModel, done: Vec<Done>, align: bool) -> Answer {
    let usage = Usage {
        source_tokens: done.iter().map(Done::source_tokens).sum(),
        target_tokens: done.iter().map(Done::target_tokens).sum(),
    };
    let translation = |done: Done| {
        let source: Vec<u32> = done.cut.parts.iter().flat_map(|part| part.source.iter().copied()).collect();
        let hypothesis = |(found, ended): (attentive_tasks::Translated, bool)| Hypothesis {
            tokens: tokens(model.codec.tokenizer(), &found.tokens, Side::Target, Some(&found.token_scores)),
            text: found.text,
            score: finite(found.score),
            ended,
            alignment: align.then_some(found.alignment),
        };
        Translation {
            source: tokens(model.codec.tokenizer(), &source, Side::Source, None),
            parts: done.cut.parts.len(),
            hypotheses: done.best.into_iter().zip(done.ended).map(hypothesis).collect(),
        }
    };
    Answer { model: model.name.clone(), translations: done.into_iter().map(translation).collect(), usage }
}
