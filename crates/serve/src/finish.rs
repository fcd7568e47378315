//! What happens to every request on its way in and out: cross-origin rules, the form of refusals, the log, the metrics.

use crate::app::App;
use crate::cors::Origins;
use crate::hosts::Hosts;
use crate::refusal::Refusal;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// What it needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Finish {
    pub app: Arc<App>,
    pub origins: Origins,
    pub hosts: Hosts,
}

/// The routes whose refusals have LibreTranslate's form.
const LIBRETRANSLATE: [&str; 4] = ["/translate", "/detect", "/languages", "/frontend/settings"];
/// The routes whose refusals have the form of text-embeddings-inference.
const TEI: [&str; 6] = ["/", "/embed", "/predict", "/rerank", "/info", "/health"];

/// Wraps a request.
pub(crate) async fn finish(State(finish): State<Finish>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let Finish { app, origins, hosts } = finish;
    let (method, headers, path) =
        (request.method().clone(), request.headers().clone(), request.uri().path().to_owned());
    // Only routes that exist are counted: others are as many as there are strings.
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let mut response = match (hosts.check(&headers), origins.preflight(&method, &headers)) {
        (Err(refusal), _) => refusal.into_response(),
        (Ok(()), Some(response)) => response,
        (Ok(()), None) => Guarded(Box::pin(next.run(request))).await,
    };
    response = write_refusal(&path, response);
    origins.allow(&headers, &mut response);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if app.is_leaving() {
        // The client is to look for another server, and the connection will be closed behind this answer.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, time) = (response.status().as_u16(), begin.elapsed());
    app.metrics.answered(&route, status, time);
    let milliseconds = time.as_micros() as f64 / 1e3;
    match response.extensions().get::<Refusal>() {
        Some(refusal) => {
            tracing::warn!(%method, route, status, milliseconds, field = refusal.field, "refused");
        }
        None => tracing::info!(%method, route, status, milliseconds, "answered"),
    }
    response
}

/// A running handler. If it panics, its client still gets an answer; the panic hook has printed the reason.
struct Guarded(Pin<Box<dyn Future<Output = Response> + Send>>);

impl Future for Guarded {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Response> {
        // What has panicked is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Refusal::fault().into_response()))
    }
}

/// Gives a refusal its body; all other answers stay as they are.
fn write_refusal(path: &str, response: Response) -> Response {
    let status = response.status();
    let known = response.extensions().get::<Refusal>().cloned();
    // What is refused before a handler sees it has no sentence of its own.
    let general = (status.is_client_error() || status.is_server_error()).then(|| Refusal::general(status));
    let Some(refusal) = known.or(general) else { return response };
    let allow = response.headers().get(ALLOW).cloned();
    let (status, body) = match path {
        path if LIBRETRANSLATE.contains(&path) => (refusal.status, refusal.libretranslate()),
        path if TEI.contains(&path) => refusal.tei(),
        _ => (refusal.status, refusal.openai()),
    };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(allow) = allow {
        headers.insert(ALLOW, allow);
    }
    if let Some(seconds) = refusal.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if refusal.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::REQUEST_TIMEOUT].contains(&refusal.status) {
        // What is left of the body will not be read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.extensions_mut().insert(refusal);
    response
}
