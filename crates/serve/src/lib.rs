//! A server that clients can talk to as they are, and a page that shows what a model looks at.
//!
//! One thread computes: it drives translation models, language models and encoders, and requests of different clients share its
//! batches. All others read requests, cut texts into what a model reads at once, wait, and write answers. Between them is a queue
//! that is full at some point, and whoever comes then is told so at once.
//!
//! ```no_run
//! use attentive_serve::{Engine, ModelPlace, Server, Settings};
//! use attentive_tensor::CpuBackend;
//!
//! let engine = Engine::on(CpuBackend::from_env()?.shared());
//! let models = vec![ModelPlace::folder("opus-mt-en-de")];
//! let server = Server::bind("127.0.0.1:8080".parse()?, Settings::default())?;
//! println!("http://{}", server.address());
//! server.run(engine, models, std::future::pending())?; // until that future ends
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod app;
mod aside;
pub mod attention;
mod auth;
mod body;
mod check;
mod choose;
mod chosen;
mod connection;
mod cors;
mod decode;
mod decoded;
mod detect;
mod detokenizer;
mod document;
mod draft;
mod encode;
mod engine;
mod error;
mod finish;
mod given;
pub mod hidden;
mod hosts;
mod job;
pub mod languages;
mod metrics;
mod model;
mod multipart;
mod numbers;
mod openapi;
mod options;
mod order;
pub mod page;
mod patient;
mod peer;
pub mod picture;
mod prompts;
mod queue;
mod refusal;
mod routes;
mod seats;
mod see;
mod server;
mod settings;
mod sse;
mod standalone;
mod texts;
mod token;
mod waiting;
mod worker;

pub use engine::Engine;
pub use error::Error;
pub use model::{Does, ModelPlace, Served};
pub use server::Server;
pub use settings::{Limits, Settings};
pub use standalone::standalone;
pub use token::Token;
