//! From logits to tokens.
//!
//! A [`Generator`] drives a model that writes one token after the other ([`Seq2Seq`]) and does not know what it is made
//! of. It holds as many sentences at once as [`Options::batch`] says; those that are finished leave, waiting ones take their
//! place, and results come back in the order in which sentences went in. What becomes of a sentence does not depend on
//! what is decoded beside it, down to the bits.
//!
//! ```
//! use attentive_generate::{Generator, Options, EncoderDecoderSteps};
//! use attentive_model::Builder;
//! use attentive_model::families::transformer::{Transformer, TransformerConfig};
//! use attentive_tensor::CpuBackend;
//!
//! let backend = CpuBackend::from_env()?.shared();
//! let model = Transformer::new(&Builder::random(&backend, 1), &TransformerConfig::preset("tiny", 100)?)?;
//!
//! let mut generator = Generator::new(EncoderDecoderSteps::new(&backend, &model), Options::default())?;
//! let sources = [vec![11, 12, 13, 0], vec![21, 22, 0]];
//! for hypotheses in generator.generate(sources) {
//!     let best = &hypotheses?[0];
//!     assert_eq!(best.tokens.len(), best.token_scores.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alignment;
mod alternatives;
mod attention;
mod beam;
mod causal;
mod config;
mod context;
mod encoder_decoder;
mod error;
mod filter;
mod generator;
mod greedy;
mod hidden;
mod hypothesis;
mod inspection;
mod lane;
mod options;
mod penalty;
mod request;
mod rules;
mod sampler;
mod scores;
mod search;
mod seq2seq;
mod stop;
mod top;

pub use alignment::{Link, align, pharaoh};
pub use alternatives::Alternatives;
pub use attention::{AttentionKind, AttentionMatrix, AttentionSelector};
pub use attentive_tensor::{BiasTerm, Random, ScorePart};
pub use causal::CausalSteps;
pub use context::Context;
pub use encoder_decoder::EncoderDecoderSteps;
pub use error::Error;
pub use filter::{Banned, Change, Filter, MinLength, NoRepeatNgrams, RepetitionPenalty};
pub use generator::{Generator, Results};
pub use hidden::{Point, Stack, Step};
pub use hypothesis::{Hypothesis, best_first};
pub use inspection::{HeadVectors, Inspection};
pub use options::{EarlyStopping, MaxLength, Options};
pub use penalty::LengthPenalty;
pub use request::Request;
pub use sampler::{Sampler, Sampling};
pub use search::Written;
pub use seq2seq::{Judged, Row, Seq2Seq, Sizes, Spec};
pub use stop::{Stop, StopTokens};
