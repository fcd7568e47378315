//! An answer that is sent piece by piece.

use super::told::{Told, Usage, Wanted};
use super::{Frame, Style};
use crate::app::App;
use crate::decode::Pending;
use crate::order::Order;
use crate::sse::{Events, Gone};
use serde_json::Value;

/// An answer that is sent piece by piece.
pub(super) struct Stream<'a> {
    pub app: &'a App,
    pub order: &'a Order,
    pub frame: &'a Frame,
    pub wanted: &'a Wanted,
    pub events: &'a Events,
}

impl Stream<'_> {
    /// Sends it while the client listens.
    pub async fn send<S: Style>(&self, pending: Vec<Pending>, with_usage: bool) {
        let sent = async {
            let mut usage = Usage::default();
            for (number, pending) in pending.into_iter().enumerate() {
                usage += self.send_one::<S>(number, pending).await?;
            }
            if with_usage {
                self.events.data(&self.frame.usage::<S>(usage)).await?;
            }
            self.events.done().await
        };
        tokio::select! {
            _ = sent => {}
            () = self.events.gone() => {}
        }
    }

    async fn chunk<S: Style>(&self, choice: Value) -> Result<(), Gone> {
        self.events.data(&self.frame.with(S::CHUNK, vec![choice])).await
    }

    /// Sends the answer to one text, and counts its tokens.
    async fn send_one<S: Style>(&self, number: usize, mut pending: Pending) -> Result<Usage, Gone> {
        let first = number * self.order.options.n_best;
        if let Some(opening) = S::opening(first) {
            self.chunk::<S>(opening).await?;
        }
        let stops = &self.wanted.stops;
        let mut sent = String::new();
        while let Some((text, settled)) = pending.draft().await {
            // What was sent cannot be taken back.
            let Some(more) = stops.certain(&text[..settled]).strip_prefix(&*sent) else { continue };
            if !more.is_empty() {
                self.chunk::<S>(S::delta(first, more)).await?;
                sent.push_str(more);
            }
        }
        let done = match pending.wait(self.app).await {
            Ok(done) => done,
            Err(refusal) => {
                self.events.data(&refusal.openai()).await?;
                return Err(Gone);
            }
        };
        let mut usage = Usage { prompt: done.source_tokens(), completion: 0 };
        for rank in 0..done.best.len().min(self.order.options.n_best) {
            if rank > 0
                && let Some(opening) = S::opening(first + rank)
            {
                self.chunk::<S>(opening).await?;
            }
            let codec = &self.order.chosen.model.codec;
            // Log-probabilities take a while; others go on meanwhile.
            let told = || self.wanted.told::<S>(codec, &done, rank);
            let Told { text, reason, logprobs, tokens } = tokio::task::block_in_place(told);
            usage.completion += tokens;
            // What was sent cannot be taken back.
            let rest = text.strip_prefix(&sent).unwrap_or_default();
            if !rest.is_empty() {
                self.chunk::<S>(S::delta(first + rank, rest)).await?;
            }
            self.chunk::<S>(S::closing(first + rank, reason, logprobs)).await?;
            sent.clear();
        }
        Ok(usage)
    }
}
