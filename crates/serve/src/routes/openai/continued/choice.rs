//! A continuation as the response has it: cut at a stop, with its log-probabilities, and its tokens counted.

use super::super::Style;
use super::Asked;
use crate::prompts::{Continued, Prompt};
use crate::refusal::Refusal;
use crate::routes::logprobs::{Scored, Speller, room};
use attentive_generate::Judged;
use attentive_tasks::{Continuation, Finish};
use attentive_tensor::Best;
use serde_json::Value;

/// A continuation.
pub(super) struct Choice<'a> {
    /// The prompt, if the response repeats it.
    pub prompt: &'a str,
    /// What follows it.
    pub text: String,
    /// Why it ends there.
    pub reason: &'static str,
    /// The log-probabilities of its tokens, if they are wanted: after those of the prompt, if the response repeats it.
    pub logprobs: Value,
    /// How many tokens were written.
    pub tokens: usize,
}

impl Asked {
    /// The continuation of a prompt that has this rank among those that are wanted. Where nothing is drawn, all are the same.
    pub fn choice<S: Style>(
        &self,
        number: usize,
        rank: usize,
        continued: &Continued,
    ) -> Result<Choice<'_>, Refusal> {
        let prompt = &self.prompts[number];
        let echoed = if self.echo { &prompt.text[..] } else { "" };
        let judged = continued.judged.get(number).map_or(&[][..], Vec::as_slice);
        let mut scored = if self.logprobs && self.echo { self.of_prompt(prompt, judged) } else { Vec::new() };
        let found = continued.found.get(number).and_then(|found| found.get(rank).or(found.last()));
        let Some(found) = found else {
            // Nothing was to be written.
            let logprobs = if self.logprobs { S::logprobs(&scored) } else { Value::Null };
            return Ok(Choice { prompt: echoed, text: String::new(), reason: "length", logprobs, tokens: 0 });
        };
        let codec = &self.order.model.codec;
        let (most, stops) = (self.order.options.max_length, &self.order.stops);
        let content = found.hypothesis.content().len();
        let continuation = codec.continuation(prompt.tokens.len(), most, stops, found.hypothesis.clone())?;
        let Continuation { text, tokens, token_scores, finish, .. } = continuation;
        let mut count = tokens.len();
        if self.logprobs || finish == Finish::Stop {
            let mut speller = Speller::new(codec);
            let token = |place: usize| {
                let top = found.top.get(place).map_or(&[][..], Vec::as_slice);
                speller.next("", tokens[place], Some(token_scores[place]), top)
            };
            let mut written: Vec<Scored> = (0..content).map(token).collect();
            if finish == Finish::Stop {
                written.truncate(room(&written, text.len()));
                count = written.len();
            }
            scored.extend(written);
        }
        let reason = match finish {
            Finish::End | Finish::Stop => "stop",
            Finish::Length | Finish::Context => "length",
        };
        let logprobs = if self.logprobs { S::logprobs(&scored) } else { Value::Null };
        Ok(Choice { prompt: echoed, text, reason, logprobs, tokens: count })
    }

    /// The tokens of a prompt. The first has no log-probability. A prompt without text has no tokens to report.
    fn of_prompt(&self, prompt: &Prompt, judged: &[Judged]) -> Vec<Scored> {
        if prompt.text.is_empty() {
            return Vec::new();
        }
        let mut speller = Speller::new(&self.order.model.codec);
        let of_judged = |judged: &'_ Judged| (Some(judged.score), judged.top.clone());
        let known = [(None, Vec::<Best>::new())].into_iter().chain(judged.iter().map(of_judged));
        let tokens = prompt.tokens.iter().zip(known);
        tokens.map(|(&token, (score, top))| speller.next("", token, score, &top[..])).collect()
    }
}
