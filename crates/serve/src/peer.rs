//! A client that has closed its half of a connection: it may wait for its answer, or have gone.
//!
//! TCP says the same of both, that no more bytes will come. Only a byte that is sent tells them apart, because the system of a
//! client that has gone answers it with a reset. So a client that closes its half while it waits gets the first bytes of its
//! answer before there is one: every answer begins with `HTTP/1.`, and may arrive in any number of pieces. A client that resets
//! the connection is given up; every other client is answered.
//!
//! The bytes are sent one by one, with time between them: where a proxy stands between server and client, the first byte tells
//! only the proxy, and the next one the server. Once an answer has begun, its own bytes do the same.

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io::{Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// What every answer begins with, whatever its version and status.
const BEGINNING: &[u8] = b"HTTP/1.";
/// How long a client that has closed its half is left alone, before the first byte and behind each.
const PAUSE: Duration = Duration::from_millis(50);

/// How far a connection is with a request and its answer.
#[derive(Debug, Default)]
pub(crate) struct Stage(AtomicU8);

/// There is no request.
const IDLE: u8 = 0;
/// The handler of a request waits for more of its body.
const STARVED: u8 = 1;
/// The handler is at work, and nothing of the answer has been written.
const AT_WORK: u8 = 2;
/// The answer is being written.
const ANSWERING: u8 = 3;

impl Stage {
    fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(crate) struct Exchange(Arc<Stage>);

impl Exchange {
    /// Begins with a request.
    pub fn begin(stage: &Arc<Stage>) -> Exchange {
        stage.set(AT_WORK);
        Exchange(Arc::clone(stage))
    }

    /// The body of the request, for its handler.
    pub fn read(&self, body: Incoming) -> Requested {
        Requested { body, stage: Arc::clone(&self.0) }
    }

    /// The answer is there, and will be written.
    pub fn answer(&self) {
        self.0.set(ANSWERING);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.set(IDLE);
    }
}

/// The body of a request, which tells whether its handler waits for more of it.
pub(crate) struct Requested {
    body: Incoming,
    stage: Arc<Stage>,
}

impl Body for Requested {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.stage.set(if frame.is_pending() { STARVED } else { AT_WORK });
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The stream of a connection. While a request is being answered, the end of what the client sends is no reason to end.
pub(crate) struct Peer {
    stream: TokioIo<TcpStream>,
    stage: Arc<Stage>,
    /// How many bytes of the next answer have been sent already.
    ahead: usize,
    /// Whether all that there was to write has been written: nothing of an earlier answer is left.
    is_flushed: bool,
    /// When to look after a client that has closed its half.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Peer {
    pub fn new(stream: TcpStream, stage: Arc<Stage>) -> Peer {
        Peer { stream: TokioIo::new(stream), stage, ahead: 0, is_flushed: true, pause: None }
    }

    /// Waits until the end of what the client sends is a reason to end: a handler waits for more in vain, or, which is an
    /// error, the client has gone.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let stream = self.stream.inner();
        // Never at once: the handler must have had the time to read what has come.
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
        while pause.as_mut().poll(context).is_ready() {
            pause.as_mut().reset(Instant::now() + PAUSE);
            // A reset behind the end is an error of the socket, and none of reading.
            if let Some(error) = stream.take_error()? {
                return Poll::Ready(Err(error));
            }
            match self.stage.get() {
                STARVED => return Poll::Ready(Ok(())),
                AT_WORK if self.is_flushed && self.ahead < BEGINNING.len() => {
                    match stream.try_write(&BEGINNING[self.ahead..=self.ahead]) {
                        Ok(written) => self.ahead += written,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
                _ => {}
            }
        }
        Poll::Pending
    }

    /// How many of `length` bytes of an answer need not be written, because they have been sent.
    fn skip(&mut self, length: usize) -> usize {
        let sent = self.ahead.min(length);
        self.ahead -= sent;
        sent
    }
}

impl Read for Peer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<Result<(), Error>> {
        if self.stage.get() != IDLE {
            let mut byte = [0];
            let read = ready!(self.stream.inner().poll_peek(context, &mut ReadBuf::new(&mut byte)))?;
            if read == 0 {
                ready!(self.poll_end(context))?;
            }
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Peer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        self.is_flushed = false;
        match self.skip(bytes.len()) {
            0 => Pin::new(&mut self.stream).poll_write(context, bytes),
            sent => Poll::Ready(Ok(sent)),
        }
    }

    /// Flushing comes when nothing is left to be written: hyper has a buffer of its own.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.is_flushed = true;
        if self.stage.get() == IDLE {
            self.pause = None;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        self.is_flushed = false;
        match self.skip(bytes.iter().map(|bytes| bytes.len()).sum()) {
            0 => Pin::new(&mut self.stream).poll_write_vectored(context, bytes),
            sent => Poll::Ready(Ok(sent)),
        }
    }
}
