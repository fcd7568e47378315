//! From a corpus to a trained model.
//!
//! [`Run`] is the whole of it: [`Settings`], or a [`Draft`] of some of them, and an empty folder in, [`Event`]s on the way, a model in the
//! folder at the end. Its parts, in the order in which a step meets them: [`corpus`] makes batches,
//! [`Learner`] learns a [task](tasks) from them at the rate of a [`schedule`], a moving average follows the weights,
//! the task judges them, and checkpoints let all of it go on to the same bits after it was killed. This
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
pub mod numbers;
mod publish;
mod ranks;
pub mod report;
mod run;
pub mod scenes;
pub mod schedule;
pub mod settings;
pub mod tasks;
pub mod tensorboard;

pub use error::Error;
pub use event::{Begin, Event, Outcome, Progress, Reason, Sample, Undertrained};
pub use learner::Learner;
pub use run::Run;
pub use settings::{Draft, Settings};
