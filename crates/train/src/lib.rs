//! From a corpus to a trained model.
//!
//! [`Run`] is the whole of it: [`Settings`], or a [`Draft`] of some of them, and an empty folder in, [`Event`]s on the way, a model in the
//! folder at the end. Its parts, in the order in which a step meets them: [`corpus`] makes batches,
//! [`Learner`] learns from them at the rate of a [`schedule`], a moving average follows the weights,
//! [`Validation`] judges them, and checkpoints let all of it go on to the same bits after it was killed. This
//! crate never prints.
#![forbid(unsafe_code)]

mod average;
mod checkpoints;
pub mod corpus;
mod error;
mod event;
mod learner;
mod lock;
pub mod logs;
pub mod metrics;
mod model_folder;
pub mod numbers;
pub mod report;
mod run;
pub mod schedule;
pub mod settings;
pub mod tensorboard;
mod validation;
mod vocabulary;

pub use error::Error;
pub use event::{Begin, Event, Outcome, Progress, Reason, Sample, Undertrained};
pub use learner::Learner;
pub use run::Run;
pub use settings::{Draft, Settings};
pub use validation::{Judgement, Validation};
pub use vocabulary::Vocabulary;
