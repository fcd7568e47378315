//! Waiting for the thread that computes, for as long as a request may take.

use crate::app::App;
use crate::refusal::Refusal;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

impl App {
    /// When a request that comes now must be answered.
    pub fn until(&self) -> Instant {
        Instant::now() + self.settings.limits.time
    }

    /// Waits for an answer of the thread that computes. `advice` is what helps if there is none in time.
    pub async fn answer<T>(
        &self,
        reply: oneshot::Receiver<Result<T, Refusal>>,
        until: Instant,
        advice: &str,
    ) -> Result<T, Refusal> {
        match timeout_at(until, reply).await {
            Ok(Ok(answer)) => answer,
            // The thread that computes has gone.
            Ok(Err(_)) => Err(Refusal::fault()),
            Err(_) => {
                let seconds = self.settings.limits.time.as_secs_f64();
                Err(Refusal::time(format!("the request took longer than {seconds} s: {advice}")))
            }
        }
    }
}
