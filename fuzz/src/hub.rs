//! What a Hub answers: the list of a model's files, and the files that name other files.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_hub::{Error, Hub, Need, Settings, Silent};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The first line is the list of files, the others are the contents of every file. It is accepted if a model comes of it.
pub(crate) fn hub() -> Reader {
    let scratch = Scratch::new("hub");
    let input = Arc::new(Mutex::new(Vec::new()));
    let endpoint = start(Arc::clone(&input));
    let home = scratch.path("home");
    let settings = Settings::read(&|name| match name {
        "HF_HOME" => Some(home.display().to_string()),
        "HF_ENDPOINT" => Some(endpoint.clone()),
        _ => None,
    });
    let mut settings = settings.expect("sound settings");
    settings.pause = Duration::from_micros(1);
    let hub = Hub::new(settings);
    let name = "ada/engine".parse().expect("a name");
    Box::new(move |bytes| {
        *input.lock().unwrap_or_else(PoisonError::into_inner) = bytes.to_vec();
        let found = hub.pull::<Error>(&name, Need::Model, &|_| Ok(()), &Silent);
        let is_accepted = found.is_ok_and(|pulled| pulled.folder.join("config.json").exists());
        // Whatever the answers name, nothing leaves the cache.
        let all = [names(scratch.folder()), names(&home), names(&home.join("hub"))].concat();
        let known = ["home", "hub", ".locks", "CACHEDIR.TAG", "models--ada--engine"];
        assert!(all.iter().all(|name| known.contains(&&**name)), "{all:?}");
        let _ = std::fs::remove_dir_all(&home);
        is_accepted
    })
}

fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

/// A Hub that answers with the input, until the process ends.
fn start(input: Arc<Mutex<Vec<u8>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let input = Arc::clone(&input);
            std::thread::spawn(move || answer_all(stream, &input));
        }
    });
    endpoint
}

/// Answers the requests of a connection until it is closed.
fn answer_all(stream: TcpStream, input: &Mutex<Vec<u8>>) -> Option<()> {
    let mut requests = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        requests.by_ref().take(1 << 16).read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut header = String::new();
        while requests.by_ref().take(1 << 16).read_line(&mut header).ok()? > 2 {
            header.clear();
        }
        let bytes = input.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
        let (list, file) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
        let body = if line.contains(" /api/models/") { list } else { file };
        // The contents are not what is looked at here: each file has the hash that it is said to have, in git.
        let etag = git_hash(file);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"{etag}\"\r\n\r\n", body.len());
        let body = if line.starts_with("HEAD ") { &[][..] } else { body };
        stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
    }
}

/// The hash that git gives to the contents of a file.
fn git_hash(file: &[u8]) -> String {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(format!("blob {}\0", file.len()).as_bytes());
    context.update(file);
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
