//! The tests of the models. They are one program, because each program of tests links the whole engine.

mod bart;
mod bert;
mod checkpoint;
mod common;
mod config;
mod convert;
mod detr;
mod equivalences;
mod golden;
mod gpt2;
mod gpt_relatives;
mod looked_into;
mod marian;
mod names;
mod parts;
mod plain;
mod relatives;
mod same_bits;
mod sealed;
mod t5;
mod torch;
mod variants;
mod vit;
