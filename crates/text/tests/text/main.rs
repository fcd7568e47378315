//! The tests of texts, as one program.

mod labels;
mod score;
mod sentences;
mod tokenizer;
