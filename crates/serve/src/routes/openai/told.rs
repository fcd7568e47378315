//! A result as the response has it: cut at a stop, with its log-probabilities, and its tokens counted.

use super::Style;
use crate::order::Done;
use crate::routes::logprobs::{room, scored};
use attentive_tasks::{Codec, StopStrings};
use serde_json::{Value, json};
use std::ops::AddAssign;

/// What a request wants to know of an answer, and where it is to end.
#[derive(Debug)]
pub(super) struct Wanted {
    pub stops: StopStrings,
    pub logprobs: bool,
}

/// A result.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub text: &'a str,
    /// Why it ends there.
    pub reason: &'static str,
    /// The log-probabilities of its tokens, if they are wanted.
    pub logprobs: Value,
    /// How many tokens it has.
    pub tokens: usize,
}

impl Wanted {
    /// The result of this rank, the best being 0.
    pub fn told<'a, S: Style>(&self, codec: &Codec, done: &'a Done, rank: usize) -> Told<'a> {
        let best = &done.best[rank];
        let cut = self.stops.cut(&best.text);
        let text = cut.unwrap_or(&best.text);
        let reason = if done.ended[rank] || cut.is_some() { "stop" } else { "length" };
        if cut.is_none() && !self.logprobs {
            return Told { text, reason, logprobs: Value::Null, tokens: best.tokens.len() };
        }
        let top = done.top.get(rank).map_or(&[][..], Vec::as_slice);
        let mut scored = scored(codec, &done.cut, best, top);
        let mut tokens = best.tokens.len();
        if cut.is_some() {
            scored.truncate(room(&scored, text.len()));
            tokens = scored.len();
        }
        let logprobs = if self.logprobs { S::logprobs(&scored) } else { Value::Null };
        Told { text, reason, logprobs, tokens }
    }
}

/// Tokens that were read and written.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Usage {
    pub prompt: usize,
    pub completion: usize,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Usage) {
        self.prompt += more.prompt;
        self.completion += more.completion;
    }
}

impl Usage {
    /// As OpenAI has it.
    pub fn json(self) -> Value {
        let Usage { prompt, completion } = self;
        json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
    }
}
