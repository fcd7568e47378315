//! Models by name: the Hugging Face Hub, and the cache that its Python tools use.
//!
//! [`Hub::find`] gives the folder of a model: from the cache if all of it is there, else downloaded. [`Hub::pull`] asks the Hub for
//! what it has now. Only files that a model is read from are downloaded (`choose`). Each file is checked against the hash that
//! the Hub names (`digest`), and stands under its name only when it is whole (`download`).
//!
//! ```no_run
//! use attentive_hub::{Error, Hub, Need, Silent};
//!
//! let hub = Hub::from_env()?;
//! let name = "Helsinki-NLP/opus-mt-en-de".parse()?;
//! let folder = hub.find::<Error>(&name, Need::Model, &|_| Ok(()), &Silent)?;
//! assert!(folder.join("config.json").exists());
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod cache;
mod choose;
mod client;
mod digest;
mod download;
mod error;
mod lock;
mod models;
mod name;
mod near;
mod protocol;
mod proxy;
mod pull;
mod retry;
mod settings;
mod wait;
mod watch;

pub use error::Error;
pub use models::{Cached, Freed, Snapshot};
pub use name::ModelName;
pub use pull::{Hub, Need, Pulled};
pub use settings::{Settings, Token};
pub use watch::{Plan, Silent, Watch};
