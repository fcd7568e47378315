//! From a corpus to a trained model.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod metrics;
