//! A Hub of one's own: it lists models, describes files and gives them, and fails as it is told to.
//!
//! Files of 1,000 bytes and more are large: they are named by their SHA-256 and come from another host, the store, which refuses
//! requests with a token. Smaller ones are named by their hash in git.
#![allow(dead_code)] // Each test program uses a part of this.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Files of so many bytes are large.
pub const LARGE: usize = 1000;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Whether the store was asked.
    pub is_store: bool,
    pub authorization: Option<String>,
    pub range: Option<String>,
}

/// What the server does otherwise than usual.
#[derive(Debug, Default)]
pub struct Moods {
    /// Answers to the next requests whose address has a text in it.
    pub refusals: VecDeque<Refusal>,
    /// Without this token there is no model.
    pub token: Option<String>,
    /// A connection breaks after so many bytes of a file.
    pub breaks_after: Option<usize>,
    /// Nothing more comes for a minute after so many bytes of a file.
    pub stalls_after: Option<usize>,
    /// Ranges are ignored.
    pub ignores_ranges: bool,
    /// Each file comes with its first byte changed, so many times.
    pub damages: usize,
    /// Answers begin after this time.
    pub delay: Option<Duration>,
    /// Where the store redirects to, if not to the file.
    pub elsewhere: Option<String>,
}

/// What is answered once to a request whose address has `text` in it.
#[derive(Debug)]
pub struct Refusal {
    text: String,
    status: u16,
    headers: Vec<(String, String)>,
}

/// A model: its commit and its files.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub commit: String,
    pub files: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Default)]
pub struct State {
    pub models: BTreeMap<String, Model>,
    pub moods: Moods,
    pub requests: Vec<Request>,
    hub: String,
    store: String,
}

/// Wraps a connection in TLS.
pub type Wrap = Arc<dyn Fn(TcpStream) -> Option<Box<dyn ReadWrite>> + Send + Sync>;

pub trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// A running server with its store.
#[derive(Clone)]
pub struct Server {
    pub state: Arc<Mutex<State>>,
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(
            "http",
            "127.0.0.1",
            Arc::new(|stream| Some(Box::new(stream) as Box<dyn ReadWrite>)),
        )
    }

    pub fn start_with(scheme: &str, host: &str, wrap: Wrap) -> Server {
        let state = Arc::new(Mutex::new(State::default()));
        let listen = |is_store: bool| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("{scheme}://{host}:{}", listener.local_addr().unwrap().port());
            let (state, wrap) = (Arc::clone(&state), Arc::clone(&wrap));
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (state, wrap) = (Arc::clone(&state), Arc::clone(&wrap));
                    std::thread::spawn(move || {
                        let socket = stream.try_clone().unwrap();
                        if let Some(stream) = wrap(stream) {
                            serve(stream, &state, is_store);
                        }
                        let _ = socket.shutdown(Shutdown::Both);
                    });
                }
            });
            address
        };
        let (hub, store) = (listen(false), listen(true));
        {
            let mut state = state.lock().unwrap();
            (state.hub, state.store) = (hub, store);
        }
        Server { state }
    }

    /// The value of `HF_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("{}/mirror", self.state.lock().unwrap().hub)
    }

    pub fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock().unwrap())
    }

    /// Adds a model whose commit is the digit `commit`, forty times.
    pub fn add(&self, name: &str, commit: char, files: &[(&str, &[u8])]) {
        let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect();
        let commit = commit.to_string().repeat(40);
        self.with(|state| state.models.insert(name.to_owned(), Model { commit, files }));
    }

    /// Adds a model with the files of a folder.
    pub fn add_folder(&self, name: &str, commit: char, folder: &str) {
        let root = PathBuf::from(folder);
        let mut files = Vec::new();
        collect(&root, &root, &mut files);
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
        self.add(name, commit, &files);
    }

    /// Refuses the next request whose address has a text in it.
    pub fn refuse(&self, text: &str, status: u16, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.with(|state| state.moods.refusals.push_back(Refusal { text: text.to_owned(), status, headers }));
    }

    /// The requests so far, which are forgotten.
    pub fn requests(&self) -> Vec<Request> {
        self.with(|state| std::mem::take(&mut state.requests))
    }
}

fn collect(root: &PathBuf, folder: &PathBuf, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.push((name, std::fs::read(&path).unwrap()));
        }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash that names a file.
pub fn hash(bytes: &[u8]) -> String {
    let mut context = Context::new(if bytes.len() < LARGE { &SHA1_FOR_LEGACY_USE_ONLY } else { &SHA256 });
    if bytes.len() < LARGE {
        context.update(format!("blob {}\0", bytes.len()).as_bytes());
    }
    context.update(bytes);
    hex(context.finish().as_ref())
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// After how many bytes of the body the connection breaks.
    breaks_after: Option<usize>,
    stalls_after: Option<usize>,
}

impl Answer {
    fn new(status: u16, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Answer { status, headers, body, breaks_after: None, stalls_after: None }
    }
}

/// Answers the requests of a connection.
fn serve(stream: Box<dyn ReadWrite>, state: &Mutex<State>, is_store: bool) {
    let mut stream = BufReader::new(stream);
    loop {
        let Some(request) = read(&mut stream, is_store) else { return };
        let (answer, delay) = {
            let mut state = state.lock().unwrap();
            state.requests.push(request.clone());
            (answer(&mut state, &request), state.moods.delay)
        };
        if let Some(delay) = delay {
            std::thread::sleep(delay);
        }
        let Answer { status, headers, body, breaks_after, stalls_after } = answer;
        let mut head = format!("HTTP/1.1 {status} Status\r\n");
        if !headers.iter().any(|(name, _)| name == "content-length") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let stream = stream.get_mut();
        if stream.write_all(format!("{head}\r\n").as_bytes()).is_err() {
            return;
        }
        if request.method == "HEAD" {
            continue;
        }
        if let Some(count) = stalls_after.filter(|count| *count < body.len()) {
            let _ = stream.write_all(&body[..count]).and_then(|()| stream.flush());
            std::thread::sleep(Duration::from_secs(60));
            return;
        }
        let sent = breaks_after.map_or(&body[..], |count| &body[..count.min(body.len())]);
        if stream.write_all(sent).and_then(|()| stream.flush()).is_err() || sent.len() < body.len() {
            return;
        }
    }
}

fn read(stream: &mut BufReader<Box<dyn ReadWrite>>, is_store: bool) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut authorization, mut range) = (None, None);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let Some((name, value)) = line.split_once(':') else { break };
        match name.to_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "range" => range = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    Some(Request { method, path, is_store, authorization, range })
}

fn answer(state: &mut State, request: &Request) -> Answer {
    let refused = state.moods.refusals.iter().position(|refusal| request.path.contains(&refusal.text));
    if let Some(Refusal { status, headers, .. }) =
        refused.and_then(|place| state.moods.refusals.remove(place))
    {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        return Answer::new(status, &headers, b"refused".to_vec());
    }
    if request.is_store {
        return stored(state, request);
    }
    let wanted = state.moods.token.as_ref().map(|token| format!("Bearer {token}"));
    if wanted.is_some() && request.authorization != wanted {
        return Answer::new(401, &[("x-error-code", "RepoNotFound")], Vec::new());
    }
    let Some(path) = request.path.strip_prefix("/mirror/") else { return Answer::new(404, &[], Vec::new()) };
    if let Some(rest) = path.strip_prefix("api/models/") {
        return described(state, rest);
    }
    let Some((name, rest)) = path.split_once("/resolve/") else { return Answer::new(404, &[], Vec::new()) };
    let Some((revision, file)) = rest.split_once('/') else { return Answer::new(404, &[], Vec::new()) };
    let Some(model) = state.models.get(name) else {
        return Answer::new(404, &[("x-error-code", "RepoNotFound")], Vec::new());
    };
    let commit = model.commit.clone();
    if revision != commit && revision != "main" {
        return Answer::new(404, &[("x-error-code", "RevisionNotFound")], Vec::new());
    }
    let Some(bytes) = model.files.get(file).cloned() else {
        return Answer::new(
            404,
            &[("x-error-code", "EntryNotFound"), ("x-repo-commit", &commit)],
            Vec::new(),
        );
    };
    let (hash, size) = (format!("\"{}\"", hash(&bytes)), bytes.len().to_string());
    if bytes.len() < LARGE {
        return part(state, request, bytes, &[("etag", &hash), ("x-repo-commit", &commit)]);
    }
    let location = format!("{}/{name}/{commit}/{file}?signature=secret", state.store);
    let location = state.moods.elsewhere.clone().unwrap_or(location);
    let headers: [(&str, &str); 5] = [
        ("location", &location),
        ("x-repo-commit", &commit),
        ("x-linked-etag", &hash),
        ("x-linked-size", &size),
        ("etag", "\"the-redirect-has-another\""),
    ];
    Answer::new(302, &headers, b"Found".to_vec())
}

/// `NAME/revision/REVISION` or `NAME/tree/REVISION`
fn described(state: &State, rest: &str) -> Answer {
    let rest = rest.split('?').next().unwrap();
    let (name, kind, revision) = if let Some((name, revision)) = rest.split_once("/revision/") {
        (name, "revision", revision)
    } else if let Some((name, revision)) = rest.split_once("/tree/") {
        (name, "tree", revision)
    } else {
        (rest, "revision", "main")
    };
    let Some(model) = state.models.get(name) else {
        return Answer::new(404, &[("x-error-code", "RepoNotFound")], Vec::new());
    };
    if revision != model.commit && revision != "main" && revision != "refs%2Fpr%2F1" {
        return Answer::new(404, &[("x-error-code", "RevisionNotFound")], Vec::new());
    }
    let text = |text: &str| serde_json::to_string(text).unwrap();
    let body = if kind == "tree" {
        let entry = |(path, bytes): (&String, &Vec<u8>)| {
            let (path, size, hash) = (text(path), bytes.len(), text(&hash(bytes)));
            let lfs = format!("\"lfs\": {{\"oid\": {hash}, \"size\": {size}, \"pointerSize\": 100}},");
            let lfs = if bytes.len() < LARGE { "" } else { &lfs };
            let oid = if bytes.len() < LARGE { hash.clone() } else { format!("\"{}\"", "0".repeat(40)) };
            format!("{{\"type\": \"file\", {lfs} \"oid\": {oid}, \"size\": {size}, \"path\": {path}}}")
        };
        format!("[{}]", model.files.iter().map(entry).collect::<Vec<_>>().join(","))
    } else {
        let files: Vec<String> =
            model.files.keys().map(|path| format!("{{\"rfilename\": {}}}", text(path))).collect();
        let (name, commit, files) = (text(name), text(&model.commit), files.join(","));
        format!(
            "{{\"id\": {name}, \"modelId\": {name}, \"sha\": {commit}, \"private\": false, \"tags\": [], \"downloads\": 0, \"likes\": 0, \"siblings\": [{files}]}}"
        )
    };
    Answer::new(200, &[("content-type", "application/json")], body.into_bytes())
}

/// A file of the store: `/NAME/COMMIT/FILE?signature=…`. As at the real one, a request with a token is wrong.
fn stored(state: &mut State, request: &Request) -> Answer {
    let path = request.path.split('?').next().unwrap().trim_start_matches('/');
    if request.authorization.is_some() {
        return Answer::new(400, &[], b"only one auth mechanism is allowed".to_vec());
    }
    let found = state.models.iter().find_map(|(name, model)| {
        let file = path.strip_prefix(&format!("{name}/{}/", model.commit))?;
        model.files.get(file)
    });
    let Some(bytes) = found.cloned() else { return Answer::new(404, &[], Vec::new()) };
    part(state, request, bytes, &[("etag", "\"not-the-hash\"")])
}

/// A file, or what of it was asked for.
fn part(state: &mut State, request: &Request, mut bytes: Vec<u8>, headers: &[(&str, &str)]) -> Answer {
    let size = bytes.len();
    if request.method == "HEAD" {
        let length = size.to_string();
        let headers: Vec<(&str, &str)> =
            headers.iter().copied().chain([("content-length", length.as_str())]).collect();
        return Answer::new(200, &headers, Vec::new());
    }
    if state.moods.damages > 0 && !bytes.is_empty() {
        state.moods.damages -= 1;
        bytes[0] ^= 1;
    }
    let first = request
        .range
        .as_ref()
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let mut answer = match first.filter(|_| !state.moods.ignores_ranges) {
        Some(first) if first >= size => Answer::new(416, headers, Vec::new()),
        Some(first) => {
            let range = format!("bytes {first}-{}/{size}", size - 1);
            let headers: Vec<(&str, &str)> =
                headers.iter().copied().chain([("content-range", range.as_str())]).collect();
            Answer::new(206, &headers, bytes.split_off(first))
        }
        None => Answer::new(200, headers, bytes),
    };
    answer.breaks_after = state.moods.breaks_after;
    answer.stalls_after = state.moods.stalls_after;
    answer
}
