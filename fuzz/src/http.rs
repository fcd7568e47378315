//! Requests to a server with the model that comes with the program.

use crate::Reader;
use attentive_serve::{Engine, ModelPlace, Server, Settings};
use attentive_tensor::CpuBackend;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The first line is a path, the others are a body.
pub(crate) fn http() -> Reader {
    let address = start();
    Box::new(move |input| {
        let line = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
        let (path, body) = (&input[..line], input.get(line + 1..).unwrap_or_default());
        let answer = ask(address, path, body);
        assert!(answer.starts_with("HTTP/1."), "no answer: {answer:?}");
        assert!(!answer.starts_with("HTTP/1.1 500"), "{answer}");
        answer.starts_with("HTTP/1.1 200")
    })
}

/// A server that stays until the process ends.
fn start() -> SocketAddr {
    let server =
        Server::bind("127.0.0.1:0".parse().expect("an address"), Settings::default()).expect("a port");
    let address = server.address();
    std::thread::spawn(move || {
        let engine = Engine::on(CpuBackend::from_env().expect("a backend").shared());
        server.run(engine, vec![ModelPlace::numbers()], std::future::pending())
    });
    while !ask(address, b"/readyz", b"").starts_with("HTTP/1.1 200") {
        std::thread::sleep(Duration::from_millis(5));
    }
    address
}

/// What the server answers to a path that is asked for, with a body if there is one.
fn ask(address: SocketAddr, path: &[u8], body: &[u8]) -> String {
    let mut connection = TcpStream::connect(address).expect("a connection");
    connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let method: &[u8] = if body.is_empty() { b"GET " } else { b"POST " };
    let head = format!(
        " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // The server may refuse a path before it has read the body, and close.
    let _ = connection.write_all(&[method, path, head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    match connection.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("no answer: {error}"),
        _ => String::from_utf8_lossy(&answer).into_owned(),
    }
}
