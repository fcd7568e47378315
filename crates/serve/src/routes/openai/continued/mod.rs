//! Prompts that a model continues or answers.

mod choice;
mod stream;

use super::told::Usage;
use super::{Ask, Frame, Style};
use crate::app::App;
use crate::aside;
use crate::model::LanguageModel;
use crate::prompts::{Continued, Prompt, PromptOrder};
use crate::refusal::Refusal;
use crate::sse::Events;
use crate::texts::Source;
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;
use stream::Stream;

/// Prompts, and what a request wants of them.
struct Asked {
    order: PromptOrder,
    prompts: Vec<Prompt>,
    /// How many continuations of each are wanted.
    n: usize,
    /// Whether the response repeats the prompt before a continuation.
    echo: bool,
    logprobs: bool,
}

/// Continues or answers prompts, and tells it in a style.
pub(in crate::routes) async fn continued<S: Style>(
    app: Arc<App>,
    ask: &Ask,
    (place, model): (usize, Arc<LanguageModel>),
    sources: Vec<Source>,
) -> Result<Response, Refusal> {
    let top = S::top_wanted(ask)?;
    let limits = &app.settings.limits;
    let (options, n) = if model.codec.spec().continues {
        ask.check_continuation()?;
        ask.continuing(&model.options, limits)?
    } else {
        ask.check_answering()?;
        ask.answering(&model.options, limits)?
    };
    let (stops, echo, logprobs) = (ask.stops()?, ask.echo == Some(true), top.is_some());
    let frame = Frame::new::<S>(&app, ask, &model.name);
    let (top, judges, field) = (top.unwrap_or(0), echo && logprobs, "prompt");
    let order = PromptOrder { place, model, options, stops, top, judges, field };
    let prompts = app.read_prompts(&order, sources).await?;
    let streams = ask.stream == Some(true);
    let continuing = app.begin_prompts(&order, &prompts, streams)?;
    let asked = Asked { order, prompts, n, echo, logprobs };
    if streams {
        let (events, response) = Events::new();
        let usage = ask.wants_usage();
        tokio::spawn(async move {
            Stream { app: &app, asked: &asked, frame: &frame, events: &events }
                .send::<S>(continuing, usage)
                .await
        });
        return Ok(response);
    }
    let continued = asked.chosen(continuing.wait(&app).await?);
    let (choices, usage) = aside::aside(move || asked.answer::<S>(&continued)).await?;
    app.metrics.written(usage.prompt, usage.completion);
    aside::json(move || {
        let mut answer = frame.with(S::WHOLE, choices);
        answer["usage"] = usage.json();
        answer
    })
    .await
}

impl Asked {
    /// The continuations that are wanted: the best of each prompt, in the order in which they were drawn.
    fn chosen(&self, mut continued: Continued) -> Continued {
        for found in &mut continued.found {
            found.truncate(self.n);
            found.sort_by_key(|one| one.hypothesis.draw);
        }
        continued
    }

    /// Every continuation of every prompt, and how many tokens there are.
    fn answer<S: Style>(&self, continued: &Continued) -> Result<(Vec<Value>, Usage), Refusal> {
        let (mut choices, mut usage) = (Vec::new(), self.usage());
        for number in 0..self.prompts.len() {
            for rank in 0..self.n {
                let choice = self.choice::<S>(number, rank, continued)?;
                usage.completion += choice.tokens;
                let text = format!("{}{}", choice.prompt, choice.text);
                choices.push(S::choice(choices.len(), &text, choice.reason, choice.logprobs));
            }
        }
        Ok((choices, usage))
    }

    /// The tokens that were read.
    fn usage(&self) -> Usage {
        Usage { prompt: self.prompts.iter().map(|prompt| prompt.tokens.len()).sum(), completion: 0 }
    }
}
