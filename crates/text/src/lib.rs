//! Text to tokens and back, and scores of text. This crate knows no tensor.

pub mod score;
pub mod tokenizer;
