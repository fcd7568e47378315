//! Text to tokens and back, sentences of text, and scores of text. This crate knows no tensor.

pub mod encoding;
pub mod score;
pub mod sentences;
pub mod tokenizer;
