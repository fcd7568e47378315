//! Clients that close their half of a connection, as `nc -N` does: they are answered, unless they have gone.

use super::strain::{LONG, eventually, slow};
use super::{Client, Running};
use attentive_serve::Settings;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

/// A connection that has sent this, and will send no more.
fn half_closed(server: &Running, path: &str, ask: &Value) -> Client {
    let mut client = server.client();
    let body = ask.to_string();
    client.write_request("POST", path, &[("Content-Type", "application/json")], body.as_bytes());
    client.0.shutdown(Shutdown::Write).unwrap();
    client
}

#[test]
fn they_get_the_answer_that_all_get() {
    let server = Running::start(Settings::default());
    let short = json!({"text": "twenty-one"});
    // Takes so long that all of what an answer begins with is sent before it.
    let long = json!({"text": vec![LONG; 8], "min_length": 300, "max_length": 310, "beam": 8});
    let mut streamed = long.clone();
    streamed["stream"] = json!(true);
    for ask in [short, long, streamed] {
        let [half, whole] =
            [half_closed(&server, "/v1/translate", &ask).read(), server.post("/v1/translate", &ask)];
        assert_eq!((half.status, &half.headers[..2]), (200, &whole.headers[..2]), "{ask}");
        if ask["stream"] == true {
            assert_eq!(half.events().last(), whole.events().last());
        } else {
            assert_eq!(half.ok(), whole.ok());
        }
    }
    let refused = half_closed(&server, "/v1/translate", &json!({"text": 1}));
    refused.read().refused(400, Some("text"));
}

#[test]
fn several_requests_are_answered_before_the_connection_ends() {
    let server = Running::start(Settings::default());
    for count in [1, 5] {
        let mut client = server.client();
        let request = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(count);
        client.0.write_all(request.as_bytes()).unwrap();
        client.0.shutdown(Shutdown::Write).unwrap();
        let mut answers = String::new();
        client.0.read_to_string(&mut answers).unwrap();
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), count);
        assert_eq!(answers.matches("\"openapi\":").count(), count);
    }
}

#[test]
fn half_a_request_is_refused_at_once() {
    let server = Running::start(Settings::default());
    let mut client = server.client();
    let head = "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    client.0.write_all(head.as_bytes()).unwrap();
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read().status, 400);
}

#[test]
fn those_who_leave_afterwards_stop_costing() {
    let server = Running::start(Settings::default());
    for pause in [0, 60, 150] {
        let client = half_closed(&server, "/v1/translate", &slow());
        eventually("it is begun", || server.metric("attentive_queue_sentences") == 40.0);
        std::thread::sleep(Duration::from_millis(pause));
        client.leave();
        eventually("nothing is left of it", || server.metric("attentive_queue_sentences") == 0.0);
    }
    assert_eq!(server.metric("attentive_sentences_total"), 0.0);
}
