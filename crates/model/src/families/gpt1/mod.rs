//! GPT-1: GPT-2's decoder with norms behind the sublayers, as in the paper of the Transformer, and none behind the last layer.
//!
//! On disk it is a folder as transformers writes an `OpenAIGPTLMHeadModel`, or as the Hub has the first one: without the prefix
//! `transformer.`, and with the causal mask as a buffer. Its tokenizer lowercases, and marks the ends of words.

mod config;
mod names;

pub(super) use config::{read, text};
pub(super) use names::NAMES;
