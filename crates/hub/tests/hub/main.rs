//! Models by name against a server that speaks the Hub's protocol, and that fails in every way that servers fail.

mod cache;
mod failures;
mod server;
mod tls;

use attentive_hub::{Error, Hub, ModelName, Need, Plan, Pulled, Settings, Watch};
use server::Server;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NAME: &str = "ada/engine";

/// A server and a cache.
struct Scene {
    server: Server,
    home: PathBuf,
    variables: Vec<(String, String)>,
    watch: Notes,
}

/// What a download says of itself.
#[derive(Default)]
struct Notes {
    planned: AtomicU64,
    received: AtomicU64,
    lost: AtomicU64,
    said: Mutex<Vec<String>>,
}

impl Watch for Notes {
    fn begins(&self, plan: &Plan<'_>) {
        self.planned.fetch_add(plan.bytes, Ordering::Relaxed);
    }
    fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }
    fn lost(&self, bytes: u64) {
        self.lost.fetch_add(bytes, Ordering::Relaxed);
    }
    fn waits(&self, reason: &str) {
        self.said.lock().unwrap().push(reason.to_owned());
    }
    fn warns(&self, what: &str) {
        self.said.lock().unwrap().push(what.to_owned());
    }
}

/// Bytes that are no pattern.
fn bytes(count: usize, seed: u8) -> Vec<u8> {
    let mut state = u32::from(seed) + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

impl Scene {
    fn new(name: &str) -> Scene {
        let server = Server::start();
        Scene::with(name, server)
    }

    fn with(name: &str, server: Server) -> Scene {
        let home = std::env::temp_dir().join(format!("attentive-hub-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        let variables = vec![
            ("HF_HOME".to_owned(), home.display().to_string()),
            ("HF_ENDPOINT".to_owned(), server.endpoint()),
            ("HF_HUB_ETAG_TIMEOUT".to_owned(), "2".to_owned()),
            ("HF_HUB_DOWNLOAD_TIMEOUT".to_owned(), "2".to_owned()),
        ];
        Scene { server, home, variables, watch: Notes::default() }
    }

    /// A scene whose server has a model of one large and some small files.
    fn with_model(name: &str) -> Scene {
        let scene = Scene::new(name);
        scene.add('a');
        scene
    }

    fn add(&self, commit: char) {
        let weights = bytes(100_000, commit as u8);
        self.server.add(
            NAME,
            commit,
            &[
                ("config.json", b"{}"),
                ("model.safetensors", &weights),
                ("tokenizer.json", b"{\"t\": 1}"),
                ("README.md", b"# not needed"),
                ("pytorch_model.bin", b"not needed either"),
                ("onnx/model.onnx", b"nor this"),
            ],
        );
    }

    fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    fn hub(&self) -> Hub {
        let variable = |name: &str| {
            let found = self.variables.iter().rev().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let mut settings = Settings::read(&variable).unwrap();
        settings.pause = Duration::from_millis(1);
        Hub::new(settings)
    }

    fn pull(&self, name: &str) -> Result<Pulled, Error> {
        self.hub().pull(&name.parse().unwrap(), Need::Model, &|_| Ok(()), &self.watch)
    }

    fn find(&self, name: &str) -> Result<PathBuf, Error> {
        self.hub().find(&name.parse().unwrap(), Need::Model, &|_| Ok(()), &self.watch)
    }

    fn name(&self) -> ModelName {
        NAME.parse().unwrap()
    }

    /// The folder of the model in the cache.
    fn place(&self) -> PathBuf {
        self.home.join("hub/models--ada--engine")
    }

    fn said(&self) -> String {
        self.watch.said.lock().unwrap().join("\n")
    }

    /// The large files that stand under their names must be whole, whatever has happened.
    fn must_be_sound(&self) {
        for entry in std::fs::read_dir(self.place().join("blobs")).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.ends_with(".incomplete") {
                assert_eq!(server::hash(&std::fs::read(&path).unwrap()), name);
            }
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// The files below a folder, by their paths.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Checks that something failed, in a sentence with all of `words` in it.
#[track_caller]
fn must_fail<T: std::fmt::Debug>(result: Result<T, Error>, words: &[&str]) {
    let error = result.unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
    assert!(!error.contains('\n') && !error.contains("signature"), "{error}");
}
