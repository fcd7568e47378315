//! The server, asked over real connections: what it answers, what it refuses, and how it leaves.

mod access;
mod answer;
mod attention;
mod client;
mod completions;
mod embeddings;
mod encoder;
mod fill_mask;
mod half_closed;
mod languages;
mod leaving;
mod libretranslate;
mod openai;
mod page;
mod pictures;
mod strain;
mod tag;
mod tei;
mod text_to_text;
mod translate;

use attentive_serve::{Engine, ModelPlace, Server, Settings};
use attentive_tensor::CpuBackend;
use client::{Answer, Client};
use serde_json::Value;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// A server in this process with the model that comes with the program.
struct Running {
    address: SocketAddr,
    leave: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), attentive_serve::Error>>>,
}

impl Running {
    fn start(settings: Settings) -> Running {
        Running::start_with(settings, vec![ModelPlace::numbers()])
    }

    fn start_with(settings: Settings, models: Vec<ModelPlace>) -> Running {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
        let address = server.address();
        let (leave, left) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let engine = Engine::on(CpuBackend::from_env().unwrap().shared());
            server.run(engine, models, async { drop(left.await) })
        });
        let running = Running { address, leave: Some(leave), thread: Some(thread) };
        while running.get("/readyz").status != 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        running
    }

    fn client(&self) -> Client {
        Client::connect(self.address)
    }

    fn get(&self, path: &str) -> Answer {
        self.client().send("GET", path, &[], b"")
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_bytes(path, body.to_string().as_bytes())
    }

    fn post_bytes(&self, path: &str, body: &[u8]) -> Answer {
        self.client().send("POST", path, &[("Content-Type", "application/json")], body)
    }

    /// A number from `/metrics`.
    fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
        line.rsplit(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("{name} in {text}"))
    }

    /// Asks it to leave, and waits until it has.
    fn leave(&mut self) {
        drop(self.leave.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.leave();
        }
    }
}
