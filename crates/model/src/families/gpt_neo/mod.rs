//! GPT-3 as GPT-Neo has it: GPT-2's decoder with scores that are not scaled, and with layers that see the whole text and layers that
//! see a window of it in turn.
//!
//! On disk it is a folder as transformers writes a `GPTNeoForCausalLM`. Its dense layers store `[out, in]`, and queries, keys and values
//! have no biases.

mod config;
mod names;

pub(super) use config::{read, text};
pub(super) use names::NAMES;
