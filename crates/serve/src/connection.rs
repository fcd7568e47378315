//! Connections: accepted, served, and at the end let go without breaking off anybody.
//!
//! Whoever leaves in an orderly way answers every request that has reached it. A request can be on its way while the server
//! decides to leave: in the queue of the socket, or on a connection that seems idle. So leaving has three steps. All that
//! have connected already are accepted, and then no more; for a moment connections stay open, and every answer says that
//! the connection will be closed; then idle ones are closed, and the server waits for the others.

use crate::app::App;
use crate::patient::Patient;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// How long idle connections stay open when the server leaves.
const GRACE: Duration = Duration::from_millis(500);

/// Serves until `leave` says so, and then until all are answered.
pub(crate) async fn serve(
    app: Arc<App>,
    router: Router,
    listener: TcpListener,
    leave: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(app.settings.limits.connections));
    // Tells connections to end when they are idle.
    let (closing, closes) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut accept = |stream, place| {
        let (app, router, closes) = (Arc::clone(&app), router.clone(), closes.clone());
        open.spawn(async move {
            app.metrics.connections.fetch_add(1, Ordering::Relaxed);
            connection(&app, router, stream, closes).await;
            app.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
        while open.try_join_next().is_some() {}
    };
    tokio::pin!(leave);
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = &mut leave => break,
        };
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => accept(stream, place.ok()),
                Err(error) => {
                    // Out of files, mostly: it gets better when connections end.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            () = &mut leave => break,
        }
    }
    app.leave();
    while let Ok(Ok((stream, _))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        accept(stream, Arc::clone(&places).try_acquire_owned().ok());
    }
    drop(listener);
    tokio::time::sleep(GRACE).await;
    let _ = closing.send(true);
    let longest = app.settings.limits.time + app.settings.limits.patience;
    let all = async { while open.join_next().await.is_some() {} };
    if tokio::time::timeout(longest, all).await.is_err() {
        tracing::warn!("some connections did not end in time and are closed");
    }
}

/// Serves one connection to its end.
async fn connection(app: &App, router: Router, stream: TcpStream, closes: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let patience = app.settings.limits.patience;
    let io = Patient::new(TokioIo::new(stream), patience);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(64 << 10);
    let served = http.serve_connection(io, TowerToHyperService::new(router));
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = closing(closes) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection was closed early");
    }
}

/// Waits until connections are to end.
async fn closing(mut closes: watch::Receiver<bool>) {
    // Where nobody can say so any more, it is time as well.
    let _ = closes.wait_for(|closes| *closes).await;
}
