//! What is tried again: requests that a busy server refuses, and connections that break.

use crate::error::Error;
use crate::watch::Watch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often something is tried without any success.
const ATTEMPTS: u32 = 5;

/// The longest wait that a server may ask for.
const LONGEST: Duration = Duration::from_secs(60);

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another attempt would end in the same way.
    Final(Box<Error>),
    /// Another attempt may succeed.
    Again {
        error: Box<Error>,
        /// How long the server asks to wait.
        wait: Option<Duration>,
        /// Whether a part of the answer was of use.
        progress: bool,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Final(Box::new(error))
    }
}

/// How a request is retried, and who is notified.
pub(crate) struct Retry<'a> {
    /// The first pause.
    pub pause: Duration,
    pub watch: &'a dyn Watch,
    /// Set when another thread has failed.
    pub stop: &'a AtomicBool,
}

impl Retry<'_> {
    /// Calls `attempt` until it succeeds, fails for good, or has failed too often without any progress.
    pub fn run<T>(&self, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Error> {
        let mut failed = 0;
        loop {
            let (error, wait) = match attempt() {
                Ok(done) => return Ok(done),
                Err(Failure::Final(error)) => return Err(*error),
                Err(Failure::Again { error, wait, progress }) => {
                    failed = if progress { 0 } else { failed + 1 };
                    (error, wait)
                }
            };
            let pause = wait.unwrap_or(self.pause * (1 << u32::saturating_sub(failed, 1)));
            if failed == ATTEMPTS || pause > LONGEST {
                return Err(*error);
            }
            self.watch.waits(&format!("{error}; trying again in {:.1} s", pause.as_secs_f64()));
            self.sleep(pause)?;
        }
    }

    fn sleep(&self, pause: Duration) -> Result<(), Error> {
        const SLICE: Duration = Duration::from_millis(50);
        let end = Instant::now() + pause;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(()),
                left => std::thread::sleep(left.min(SLICE)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Silent;

    fn again(progress: bool, wait: Option<Duration>) -> Failure {
        let error = Error::Connection { host: "h".to_owned(), problem: "it broke".to_owned() };
        Failure::Again { error: error.into(), wait, progress }
    }

    #[test]
    fn attempts_end_unless_there_is_progress() {
        let stop = AtomicBool::new(false);
        let retry = Retry { pause: Duration::from_micros(1), watch: &Silent, stop: &stop };
        let mut count = 0;
        let ended: Result<(), _> = retry.run(|| {
            count += 1;
            Err(again(count < 20, None))
        });
        assert!(ended.is_err());
        // Five behind the last one with progress.
        assert_eq!(count, 19 + 5);
        assert_eq!(retry.run(|| Ok(1)).unwrap(), 1);
    }

    #[test]
    fn a_wait_that_is_too_long_and_a_thread_that_has_failed_end_it_at_once() {
        let stop = AtomicBool::new(false);
        let retry = Retry { pause: Duration::from_secs(30), watch: &Silent, stop: &stop };
        let begin = Instant::now();
        let long = retry.run::<()>(|| Err(again(false, Some(Duration::from_secs(3600)))));
        assert!(long.unwrap_err().is_outage());
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(retry.run::<()>(|| Err(again(false, None))), Err(Error::Stopped)));
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}
