//! What all handlers share.

use crate::auth::Keys;
use crate::metrics::Metrics;
use crate::model::Model;
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::settings::Settings;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    /// Places for large bodies.
    large_bodies: Arc<Semaphore>,
    /// Places for pictures that are made ready.
    readers: Arc<Semaphore>,
}

/// How many bodies with pictures may be in the server at once.
const LARGE_BODIES: usize = 64;

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
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)),
            readers: Arc::new(Semaphore::new(available_parallelism().map_or(1, usize::from))),
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

    /// Whether one of the models reads pictures.
    pub fn sees(&self) -> Result<bool, Refusal> {
        Ok(self.models()?.iter().any(|model| model.picture().is_some()))
    }

    /// A place for a body with pictures, if there is one left.
    pub fn place_for_large_body(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.large_bodies).try_acquire_owned().map_err(|_| Refusal::full(1))
    }

    /// A place for a picture that is to be made ready: a file of few bytes may become 300 MB, so that not many may do it at once.
    pub async fn place_to_read(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.readers).acquire_owned().await.map_err(|_| Refusal::fault())
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
