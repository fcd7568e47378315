//! The Transformer from its parts.
//!
//! [`layers`] has the parts, one file each, named as in "Attention Is All You Need"; [`families`] has the models that
//! are composed from them; [`checkpoint`] reads and writes their weights. A batch is packed: the tokens of all its
//! sequences lie one after the other, `[tokens, d_model]`, and [`Sequences`] says where each one begins. There is no
//! padding, and so no padding mask.

pub mod builder;
pub mod checkpoint;
mod convert;
mod error;
pub mod families;
pub mod layers;
mod limits;
pub mod names;
mod sequences;

pub use builder::{Builder, Init};
pub use convert::Converted;
pub use error::Error;
pub use sequences::Sequences;
