//! A client that can do what good clients do not: send halves, read slowly, go away.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A connection.
pub struct Client(pub TcpStream);

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client(stream)
    }

    /// Sends a request and reads the answer to its end, where the connection is closed.
    pub fn send(mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.write_request(method, path, headers, body);
        self.read()
    }

    /// Sends a request.
    pub fn write_request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("Content-Length: {}\r\n\r\n", body.len());
        self.0.write_all(request.as_bytes()).unwrap();
        // A server that has heard enough may close before all of a body is written.
        let _ = self.0.write_all(body);
    }

    /// Reads an answer.
    pub fn read(mut self) -> Answer {
        let mut bytes = Vec::new();
        // What was read before a connection is reset counts.
        let _ = self.0.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    /// Goes away.
    pub fn leave(self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Answer {
    #[track_caller]
    fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_lowercase(), value.to_owned())
        };
        let headers: Vec<(String, String)> = lines.map(header).collect();
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let rest = &bytes[end + 4..];
        let body = if is_chunked { unchunked(rest) } else { rest.to_vec() };
        Answer { status, headers, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The JSON of an answer that is a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Checks that it is a refusal in OpenAI's form that names a field.
    #[track_caller]
    pub fn refused(&self, status: u16, field: Option<&str>) -> String {
        let json = self.json();
        assert_eq!((self.status, json["error"]["param"].as_str()), (status, field), "{json}");
        json["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The events of a stream: their names and what they say.
    pub fn events(&self) -> Vec<(String, String)> {
        let text = self.text();
        let event = |event: &str| {
            let field =
                |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").to_owned();
            (field("event: "), field("data: "))
        };
        text.split("\n\n").filter(|event| !event.is_empty()).map(event).collect()
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&bytes[end + 2..][..size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
    body
}
