//! Text to tokens and back, and scores of text. This crate knows no tensor.

pub mod encoding;
pub mod score;
pub mod tokenizer;
