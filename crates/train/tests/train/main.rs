//! The tests of training. They are one program, because each program of tests links the whole engine.

mod bad_input;
mod batches;
mod common;
mod detect;
mod dino;
mod formats;
mod labelled;
mod learner;
mod pictures;
mod run;
mod seq2seq;
mod tasks;
mod ten_million;
