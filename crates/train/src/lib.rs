//! From a corpus to batches.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod numbers;
