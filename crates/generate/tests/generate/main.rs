//! The tests of generating. They are one program, because each program of tests links the whole engine.

mod causal;
mod common;
mod golden;
mod properties;
mod reference;
mod sampling;
mod sealed;
mod text_to_text;
