//! Continuations that are sent while they are written, all at once: each piece says which of them it belongs to.

use super::super::{Frame, Style};
use super::Asked;
use crate::app::App;
use crate::detokenizer::Detokenizer;
use crate::job::Draft;
use crate::prompts::Continuing;
use crate::sse::{Events, Gone};
use serde_json::Value;

/// An answer that is sent piece by piece.
pub(super) struct Stream<'a> {
    pub app: &'a App,
    pub asked: &'a Asked,
    pub frame: &'a Frame,
    pub events: &'a Events,
}

/// What was sent of a continuation.
#[derive(Default)]
struct Live {
    text: Detokenizer,
    sent: String,
}

impl Stream<'_> {
    /// Sends it while the client listens.
    pub async fn send<S: Style>(&self, continuing: Continuing, with_usage: bool) {
        tokio::select! {
            _ = self.send_all::<S>(continuing, with_usage) => {}
            () = self.events.gone() => {}
        }
    }

    async fn chunk<S: Style>(&self, choice: Value) -> Result<(), Gone> {
        self.events.data(&self.frame.with(S::CHUNK, vec![choice])).await
    }

    async fn send_all<S: Style>(&self, mut continuing: Continuing, with_usage: bool) -> Result<(), Gone> {
        let Asked { prompts, n, echo, .. } = self.asked;
        let mut live: Vec<Live> = (0..prompts.len() * n).map(|_| Live::default()).collect();
        for index in (0..live.len()).filter(|_| *echo) {
            self.chunk::<S>(S::delta(index, &prompts[index / n].text)).await?;
        }
        while let Some(draft) = continuing.draft().await {
            let index = draft.place * n + draft.draw;
            let Some(more) = live.get_mut(index).and_then(|live| self.more(live, &draft)) else { continue };
            self.chunk::<S>(S::delta(index, &more)).await?;
        }
        let continued = match continuing.wait(self.app).await {
            Ok(continued) => self.asked.chosen(continued),
            Err(refusal) => {
                self.events.data(&refusal.openai()).await?;
                return Err(Gone);
            }
        };
        let mut usage = self.asked.usage();
        for (index, Live { sent, .. }) in live.iter().enumerate() {
            // Log-probabilities take a while; others go on meanwhile.
            let choice = || self.asked.choice::<S>(index / n, index % n, &continued);
            let choice = match tokio::task::block_in_place(choice) {
                Ok(choice) => choice,
                Err(refusal) => {
                    self.events.data(&refusal.openai()).await?;
                    return Err(Gone);
                }
            };
            usage.completion += choice.tokens;
            // What was sent cannot be taken back.
            let rest = choice.text.strip_prefix(sent.as_str()).unwrap_or_default();
            if !rest.is_empty() {
                self.chunk::<S>(S::delta(index, rest)).await?;
            }
            self.chunk::<S>(S::closing(index, choice.reason, choice.logprobs)).await?;
        }
        self.app.metrics.written(usage.prompt, usage.completion);
        if with_usage {
            self.events.data(&self.frame.usage::<S>(usage)).await?;
        }
        self.events.done().await
    }

    /// What is new of a continuation, and cannot change any more.
    fn more(&self, live: &mut Live, draft: &Draft) -> Option<String> {
        let model = &self.asked.order.model;
        let tokens = match draft.tokens.split_last() {
            Some((&last, before)) if model.is_end(last) => before,
            _ => &draft.tokens[..],
        };
        // A draft that cannot be decoded is not sent; the final answer has the error.
        live.text.set(&model.codec, tokens).ok()?;
        let certain = &live.text.text()[..live.text.certain(draft.settled)];
        let more = self.asked.order.stops.certain(certain).strip_prefix(live.sent.as_str())?.to_owned();
        live.sent.push_str(&more);
        (!more.is_empty()).then_some(more)
    }
}
