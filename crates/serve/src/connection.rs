//! Connections: accepted, served, and closed at the end without interrupting a request.
//!
//! Whoever leaves in an orderly way answers every request that has reached it. A request can be on its way while the server
//! decides to leave: in the queue of the socket, or on a connection that seems idle. So leaving has three steps. All that
//! have connected already are accepted, and then no more; for a moment connections stay open, and every answer says that
//! the connection will be closed; then idle ones are closed, and the server waits for the others.

use crate::app::App;
use crate::patient::Patient;
use crate::peer::{Exchange, Peer, Stage};
use crate::seats::{Seat, Seats};
use axum::Router;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// How long idle connections stay open when the server leaves.
const GRACE: Duration = Duration::from_millis(500);

/// Serves until `leave` says so, and then until all are answered.
pub(crate) async fn serve(
    app: Arc<App>,
    router: Router,
    listener: TcpListener,
    leave: impl Future<Output = ()>,
) {
    let limits = &app.settings.limits;
    let seats = Arc::new(Seats::new(limits.connections, limits.connections_per_address));
    let mut number = 0;
    // Tells connections to end when they are idle.
    let (closing, closes) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut accept = |stream, address: SocketAddr| {
        number += 1;
        let Some(seat) = seats.take(number, address.ip()) else { return };
        let (app, router, closes, seats) =
            (Arc::clone(&app), router.clone(), closes.clone(), Arc::clone(&seats));
        open.spawn(async move {
            app.metrics.connections.fetch_add(1, Ordering::Relaxed);
            connection(&app, router, stream, &seat, closes).await;
            app.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            seats.free(&seat);
        });
        while open.try_join_next().is_some() {}
    };
    tokio::pin!(leave);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    tokio::select! {
                        () = seats.wait() => {}
                        () = &mut leave => {
                            accept(stream, address);
                            break;
                        }
                    }
                    accept(stream, address);
                }
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
    while let Ok(Ok((stream, address))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        accept(stream, address);
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
async fn connection(
    app: &App,
    router: Router,
    stream: TcpStream,
    seat: &Arc<Seat>,
    closes: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let patience = app.settings.limits.patience;
    let stage = Arc::new(Stage::default());
    let io = Patient::new(Peer::new(stream, Arc::clone(&stage)), patience);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(64 << 10);
    let own = Arc::clone(seat);
    let service = service_fn(move |request: Request<Incoming>| {
        let (busy, exchange) = (own.begin(), Exchange::begin(&stage));
        let answer = router.clone().oneshot(request.map(|body| exchange.read(body)));
        async move {
            let answer = answer.await?;
            exchange.answer();
            // Both last until the last of the body has been handed over.
            let lasting = (busy, exchange);
            Ok::<_, Infallible>(answer.map(|body| body.map_frame(move |frame| (&lasting, frame).1)))
        }
    });
    let served = http.serve_connection(io, service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = closing(closes) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
        () = seat.dismissed() => {
            // A request that has just come, and what is left of an answer, are not broken off.
            served.as_mut().graceful_shutdown();
            match tokio::time::timeout(patience, served).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection was closed early");
    }
}

/// Waits until connections are to end.
async fn closing(mut closes: watch::Receiver<bool>) {
    // If the sender is gone, it is time as well.
    let _ = closes.wait_for(|closes| *closes).await;
}
