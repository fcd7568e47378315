//! Server-sent events: an answer that comes piece by piece.

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Events that may wait for a client to read them; who writes more has to wait.
const EVENT_BUFFER: usize = 16;

/// Where events are written to.
#[derive(Debug)]
pub(crate) struct Events(Sender<Bytes>);

/// The client has gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Events {
    /// Somewhere to write events to, and the answer that they make.
    pub fn new() -> (Events, Response) {
        let (sender, receiver) = channel(EVENT_BUFFER);
        let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
        (Events(sender), (headers, Body::new(Stream(receiver))).into_response())
    }

    /// Writes an event with a name.
    pub async fn named(&self, name: &str, data: &impl Serialize) -> Result<(), Gone> {
        self.write(format!("event: {name}\ndata: {}\n\n", as_json(data))).await
    }

    /// Writes an event without one, as OpenAI does.
    pub async fn data(&self, data: &impl Serialize) -> Result<(), Gone> {
        self.write(format!("data: {}\n\n", as_json(data))).await
    }

    /// Writes the event that ends OpenAI's streams.
    pub async fn done(&self) -> Result<(), Gone> {
        self.write("data: [DONE]\n\n".to_owned()).await
    }

    /// Waits until the client has gone.
    pub async fn gone(&self) {
        self.0.closed().await;
    }

    async fn write(&self, event: String) -> Result<(), Gone> {
        self.0.send(event.into()).await.map_err(|_| Gone)
    }
}

/// JSON has no line breaks of its own, so that an event is always one line.
fn as_json(data: &impl Serialize) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned())
}

/// The events as a body.
struct Stream(Receiver<Bytes>);

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
