//! Work that takes a while, away from the threads that answer connections.

use crate::refusal::Refusal;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Does work on a thread of its own, and waits for it.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Refusal::fault()))
}

/// An answer in JSON that takes a while to be put together and to be written.
pub(crate) async fn json<T: Serialize>(
    answer: impl FnOnce() -> T + Send + 'static,
) -> Result<Response, Refusal> {
    let body = aside(move || serde_json::to_vec(&answer()).map_err(|_| Refusal::fault())).await?;
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    #[test]
    fn other_requests_are_answered_meanwhile_and_a_panic_is_refused() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let here = std::thread::current().id();
        let there = runtime.block_on(aside(|| Ok(std::thread::current().id())));
        assert!(there.is_ok_and(|there| there != here));
        let refused = runtime.block_on(aside(|| -> Result<(), Refusal> { panic!("a fault") })).unwrap_err();
        assert_eq!(refused.status.as_u16(), 500);
        let answer = runtime.block_on(json(|| [1.5, 2.0])).unwrap_or_else(|refused| panic!("{refused:?}"));
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
    }
}
