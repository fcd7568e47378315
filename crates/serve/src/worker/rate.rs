//! The speed of the server, from which `Retry-After` follows.

use std::time::{Duration, Instant};

/// How many sentences a second are finished.
pub(super) struct Rate {
    since: Instant,
    sentences: usize,
}

impl Rate {
    pub fn new() -> Rate {
        Rate { since: Instant::now(), sentences: 0 }
    }

    pub fn count(&mut self, sentences: usize) {
        self.sentences += sentences;
    }

    /// The rate, whenever a second has passed.
    pub fn per_second(&mut self) -> Option<u64> {
        let passed = self.since.elapsed();
        if passed < Duration::from_secs(1) {
            return None;
        }
        let rate = (self.sentences as f64 / passed.as_secs_f64()).ceil() as u64;
        *self = Rate::new();
        Some(rate)
    }
}
