//! Texts.

mod labels;
mod score;
mod sentences;
mod tokenizer;
