//! Text to tokens and back, sentences of text and of HTML, languages, questions with answers, and scores of text, classes and tags. This
//! crate knows no tensor.

pub mod encoding;
pub mod html;
pub mod language;
pub mod score;
pub mod sentences;
pub mod squad;
pub mod tokenizer;
