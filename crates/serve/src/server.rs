//! The server: a socket, a thread that computes, and all that lies between.

use crate::app::App;
use crate::connection;
use crate::cors::Origins;
use crate::engine::Engine;
use crate::error::Error;
use crate::hosts::Hosts;
use crate::job::Job;
use crate::model::{ModelPlace, Served};
use crate::queue::Queue;
use crate::routes;
use crate::settings::Settings;
use crate::worker;
use axum::Router;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

/// A server that has its address but does not serve yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    router: Router,
    jobs: UnboundedReceiver<Job>,
}

impl Server {
    /// Takes an address; with port 0 the system chooses one.
    pub fn bind(address: SocketAddr, settings: Settings) -> Result<Server, Error> {
        let origins = Origins::new(&settings.origins)?;
        if settings.keys.iter().any(|key| key.trim().is_empty() || !key.is_ascii()) {
            return Err(Error::setting(
                "keys",
                "a key must not be empty and must have only ASCII characters",
            ));
        }
        let (queue, jobs) = Queue::new(settings.queue.clamp(1, u32::MAX as usize));
        let failed = |source| Error::Bind { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let hosts = Hosts::new(address, &settings.hosts);
        let app = Arc::new(App::new(settings, queue));
        let router = routes::router(&app, origins, hosts);
        Ok(Server { listener, address, app, router, jobs })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the models and serves them until `leave` is there; then answers what it has accepted.
    pub fn run(
        self,
        engine: Engine,
        models: Vec<ModelPlace>,
        leave: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        self.run_and_tell(engine, models, |_| {}, leave)
    }

    /// What [`Server::run`] does; `ready` is called when the models have been read and requests are answered.
    pub fn run_and_tell(
        self,
        engine: Engine,
        models: Vec<ModelPlace>,
        ready: impl FnOnce(&[Served]) + Send + 'static,
        leave: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let Server { listener, app, router, jobs, .. } = self;
        if models.is_empty() {
            return Err(Error::setting("models", "there is no model to serve"));
        }
        ModelPlace::must_differ(&models)?;
        let runtime = Runtime::new()?;
        let (ended, has_ended) = oneshot::channel();
        let worker = std::thread::Builder::new().name("attentive-worker".to_owned()).spawn({
            let app = Arc::clone(&app);
            move || {
                let result = worker::run(&app, &engine, &models, ready, jobs);
                // Who waits for a model that cannot be read need not wait any longer.
                let _ = ended.send(());
                result
            }
        })?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let leave = async {
                tokio::select! {
                    () = leave => {}
                    _ = has_ended => {}
                }
            };
            connection::serve(Arc::clone(&app), router, listener, leave).await;
            Ok::<(), Error>(())
        })?;
        // If it is not there any more, that is what it was asked for.
        let _ = app.queue.push(Job::Leave);
        worker.join().map_err(|_| Error::Worker)?
    }
}
