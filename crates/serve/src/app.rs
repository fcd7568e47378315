//! What all handlers share.

use crate::auth::Keys;
use crate::metrics::Metrics;
use crate::model::Model;
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::settings::Settings;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The server, for its handlers.
#[derive(Debug)]
pub(crate) struct App {
    pub settings: Settings,
    pub keys: Keys,
    pub queue: Queue,
    pub metrics: Metrics,
    models: OnceLock<Vec<Model>>,
    leaving: AtomicBool,
    /// When it began, in seconds since 1970.
    pub since: u64,
    answers: AtomicU64,
}

impl App {
    pub fn new(settings: Settings, queue: Queue) -> App {
        App {
            keys: Keys::new(settings.keys.clone()),
            settings,
            queue,
            metrics: Metrics::default(),
            models: OnceLock::new(),
            leaving: AtomicBool::new(false),
            since: now(),
            answers: AtomicU64::new(0),
        }
    }

    /// Tells that the models are there.
    pub fn set_models(&self, models: Vec<Model>) {
        let _ = self.models.set(models);
    }

    /// Tells that nothing new is to be begun.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Whether the server is on its way out.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// The models, if they have been read.
    pub fn models(&self) -> Result<&[Model], Refusal> {
        self.models.get().map(Vec::as_slice).ok_or_else(|| Refusal::busy("the models are being loaded", 1))
    }

    /// A name for an answer that no other answer has.
    pub fn answer_id(&self, kind: &str) -> String {
        format!("{kind}-{:x}-{:x}", self.since, self.answers.fetch_add(1, Ordering::Relaxed))
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
