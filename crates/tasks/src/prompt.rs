//! Prompts to tokens, and what was written for them back to text: what all who continue texts share.

use crate::error::Error;
use crate::stop::StopStrings;
use crate::tokenizer::text_of;
use attentive_generate::{Hypothesis, MaxLength, Spec};
use attentive_text::tokenizer::{Side, Tokenizer};
use std::sync::Arc;

/// A tokenizer with what it must know of its language model.
#[derive(Debug, Clone)]
pub struct PromptCodec {
    tokenizer: Arc<Tokenizer>,
    spec: Spec,
}

/// What became of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Continuation {
    /// What follows the prompt.
    pub text: String,
    /// Its tokens, the end token and those of a stop string included.
    pub tokens: Vec<u32>,
    /// The log of the probability of each token.
    pub token_scores: Vec<f32>,
    /// How sure the model is of all of it; see [`Hypothesis::score`].
    pub score: f32,
    /// Why it ends.
    pub finish: Finish,
}

/// Why a continuation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model has written the end token, or there was nothing that it was allowed to write.
    End,
    /// It has written a stop string.
    Stop,
    /// It has written as many tokens as were asked for.
    Length,
    /// The model has no positions left.
    Context,
}

impl PromptCodec {
    /// The tokenizer of a model.
    pub fn new(tokenizer: Arc<Tokenizer>, spec: Spec) -> PromptCodec {
        PromptCodec { tokenizer, spec }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// What search knows of the model.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The tokens of a prompt. An empty one begins with the token that texts begin with, if the model has such a token. One that is
    /// answered, and not continued, ends with the end token.
    pub fn encode(&self, prompt: &str) -> Result<Vec<u32>, Error> {
        let mut tokens = self.tokenizer.encode(prompt, Side::Source)?;
        if !self.spec.continues && tokens.last() != Some(&self.spec.eos) {
            tokens.push(self.spec.eos);
        }
        Ok(if tokens.is_empty() { self.beginning() } else { tokens })
    }

    /// The text of tokens.
    pub fn text(&self, tokens: &[u32]) -> Result<String, Error> {
        text_of(&self.tokenizer, tokens)
    }

    /// What a text begins with that has no prompt.
    pub fn beginning(&self) -> Vec<u32> {
        let start = self.spec.start;
        if (start as usize) < self.spec.vocabulary { vec![start] } else { Vec::new() }
    }

    /// What was written for a prompt of so many tokens, with at most so many tokens and up to a stop string.
    pub fn continuation(
        &self,
        prompt: usize,
        most: MaxLength,
        stops: &StopStrings,
        found: Hypothesis,
    ) -> Result<Continuation, Error> {
        let text = self.text(found.content())?;
        let cut = stops.cut(&text).map(str::to_owned);
        let length = if self.spec.continues { prompt + found.tokens.len() } else { found.tokens.len() };
        let finish = match () {
            () if cut.is_some() => Finish::Stop,
            () if found.ended => Finish::End,
            () if length >= most.of(prompt) => Finish::Length,
            () if length >= self.spec.max_target => Finish::Context,
            () => Finish::End,
        };
        let Hypothesis { tokens, token_scores, score, .. } = found;
        Ok(Continuation { text: cut.unwrap_or(text), tokens, token_scores, score, finish })
    }
}
