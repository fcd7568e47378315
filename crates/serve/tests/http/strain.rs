//! Clients that are too many, too fast, too slow, too large, or gone.

use super::{Client, Running};
use attentive_serve::{Limits, Settings};
use serde_json::json;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

pub const LONG: &str = "seven hundred and seventy-seven thousand seven hundred and seventy-seven";

/// Waits until something is so, for a while.
#[track_caller]
pub fn eventually(what: &str, so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A request that takes a while: as many tokens as can be, again and again.
pub fn slow() -> serde_json::Value {
    json!({"text": vec![LONG; 40], "min_length": 500, "max_length": 511, "beam": 8, "target": "de"})
}

#[test]
fn a_sentence_gets_the_same_answer_whatever_shares_its_batch() {
    let server = Running::start(Settings { batch: 4, ..Settings::default() });
    let asks: Vec<_> = (0..24)
        .map(|i| {
            let text = ["one", "twenty-one", LONG, "ninety-nine thousand"][i % 4];
            let (beam, n_best, target) = (1 + i % 5, 1 + i % 2, ["de", "fr"][i % 2]);
            json!({"text": text, "beam": beam, "n_best": n_best, "target": target, "alignments": true})
        })
        .collect();
    let alone: Vec<_> = asks.iter().map(|ask| server.post("/v1/translate", ask).ok()).collect();
    std::thread::scope(|scope| {
        let together: Vec<_> =
            asks.iter().map(|ask| scope.spawn(|| server.post("/v1/translate", ask).ok())).collect();
        for (alone, together) in alone.iter().zip(together) {
            assert_eq!(*alone, together.join().unwrap());
        }
    });
}

#[test]
fn past_the_queue_there_is_a_refusal_at_once_and_room_again_later() {
    let server = Running::start(Settings { queue: 40, ..Settings::default() });
    let mut first = server.client();
    first.write_request(
        "POST",
        "/v1/translate",
        &[("Content-Type", "application/json")],
        slow().to_string().as_bytes(),
    );
    eventually("the queue fills", || server.metric("attentive_queue_sentences") == 40.0);
    let refused = server.post("/translate", &json!({"q": "one", "source": "en", "target": "de"}));
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    // Whoever goes away makes room.
    first.leave();
    eventually("there is room", || server.metric("attentive_queue_sentences") == 0.0);
    assert_eq!(server.metric("attentive_sentences_total"), 0.0, "it was computed to its end");
    assert_eq!(server.post("/translate", &json!({"q": "one", "source": "en", "target": "de"})).status, 200);
}

#[test]
fn a_client_that_leaves_a_stream_stops_costing() {
    let server = Running::start(Settings::default());
    let mut ask = slow();
    ask["stream"] = json!(true);
    let mut client = server.client();
    client.write_request(
        "POST",
        "/v1/translate",
        &[("Content-Type", "application/json")],
        ask.to_string().as_bytes(),
    );
    let mut some = [0; 2000];
    client.0.read_exact(&mut some).unwrap();
    assert!(server.metric("attentive_queue_sentences") > 0.0);
    client.leave();
    eventually("nothing is left of it", || server.metric("attentive_queue_sentences") == 0.0);
}

#[test]
fn what_takes_too_long_is_given_up_with_a_reason() {
    let limits = Limits { time: Duration::from_millis(30), ..Limits::default() };
    let server = Running::start(Settings { limits, ..Settings::default() });
    let message = server.post("/v1/translate", &slow()).refused(408, None);
    assert!(message.contains("0.03 s"), "{message}");
    let mut watched = slow();
    watched["stream"] = json!(true);
    let events = server.post("/v1/translate", &watched).events();
    let (name, error) = events.last().unwrap();
    assert!(name == "error" && error.contains("0.03 s"), "{name}: {error}");
    eventually("nothing is left of it", || server.metric("attentive_queue_sentences") == 0.0);
}

#[test]
fn bodies_that_make_no_sense_are_refused_and_the_next_is_served() {
    let server = Running::start(Settings::default());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let many = json!({"q": vec!["one"; 10_000], "source": "en", "target": "de"}).to_string();
    let bodies: [(u16, &[u8]); 9] = [
        (400, b""),
        (400, b"{"),
        (400, b"{\"q\": \"one\""),
        (400, b"\xff\xfe"),
        (400, b"{\"q\": \"\xc3\x28\", \"source\": \"en\", \"target\": \"de\"}"),
        (400, b"{\"q\": \"\\ud800\", \"source\": \"en\", \"target\": \"de\"}"),
        (400, b"null"),
        (400, deep.as_bytes()),
        (413, many.as_bytes()),
    ];
    for path in [
        "/translate",
        "/v1/translate",
        "/v1/completions",
        "/v1/chat/completions",
        "/v1/attention",
        "/v1/embeddings",
    ] {
        for (status, body) in bodies {
            let answer = server.post_bytes(path, body);
            let expected = if path == "/translate" { status } else { 400 };
            assert_eq!(
                answer.status,
                expected,
                "{path}: {} {}",
                String::from_utf8_lossy(&body[..body.len().min(50)]),
                answer.text()
            );
        }
    }
    for text in ["\u{0}", "\u{feff}", "🙂🙂", "\u{202e}", "</s>", "<pad> <unk>", ">>de<<", "a\u{301}"] {
        let ask = json!({"q": text, "source": "en", "target": "de"});
        assert_eq!(server.post("/translate", &ask).status, 200, "{text:?}");
        assert!(server.post("/v1/attention", &json!({"text": text})).status < 500, "{text:?}");
    }
}

#[test]
fn a_compressed_body_is_refused_in_one_sentence() {
    let server = Running::start(Settings::default());
    let ask = json!({"q": "one", "text": "one", "prompt": "one", "source": "en", "target": "de"}).to_string();
    // The head of a gzip, which is not UTF-8, and a body that is not compressed after all.
    for body in [b"\x1f\x8b\x08\0\0\0\0\0".as_slice(), ask.as_bytes()] {
        for path in ["/translate", "/v1/translate", "/v1/completions", "/v1/attention"] {
            let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
            let answer = server.client().send("POST", path, &headers, body);
            assert_eq!(answer.status, 415, "{path}: {}", answer.text());
            let error = answer.json()["error"].clone();
            let message = error["message"].as_str().or(error.as_str()).unwrap();
            let expected = "`Content-Encoding: gzip` is not supported: send the body without compression";
            assert!(message.contains(expected), "{path}: {message}");
        }
    }
    let headers = [("Content-Type", "application/json"), ("Content-Encoding", "identity")];
    server.client().send("POST", "/translate", &headers, ask.as_bytes()).ok();
}

#[test]
fn a_language_that_a_text_names_and_the_model_does_not_know_is_refused() {
    let server = Running::start(Settings::default());
    let ask = |text: &str| server.post("/translate", &json!({"q": text, "source": "en", "target": "de"}));
    let refused = ask("one\n >>xx<< two");
    assert_eq!(refused.status, 400);
    for word in [">>xx<<", "`de`", "`fr`"] {
        assert!(refused.text().contains(word), "{}", refused.text());
    }
    assert_eq!(ask(">> xx << one").status, 200);
}

#[test]
fn a_body_that_is_too_large_is_not_read() {
    let server = Running::start(Settings::default());
    // A hundred megabytes are announced; the answer comes before they do.
    let mut client = server.client();
    let head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n";
    client.0.write_all(head.as_bytes()).unwrap();
    let answer = client.read();
    assert_eq!(answer.status, 413);
    // Nobody knows how large this one will be.
    let mut client = server.client();
    let head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.0.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    let written = (0..100).take_while(|_| client.0.write_all(&chunk).is_ok()).count();
    assert!(written < 100, "all of it was read");
}

#[test]
fn the_slow_and_the_silent_are_cut_off_and_the_others_never_notice() {
    let limits = Limits { patience: Duration::from_millis(200), connections: 64, ..Limits::default() };
    let server = Running::start(Settings { limits, ..Settings::default() });
    let mut silent: Vec<Client> = (0..20).map(|_| server.client()).collect();
    let mut halves: Vec<Client> = (0..10).map(|_| server.client()).collect();
    for half in &mut halves {
        half.0.write_all(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nConte").unwrap();
    }
    let mut bodies: Vec<Client> = (0..10).map(|_| server.client()).collect();
    for body in &mut bodies {
        let head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
        body.0.write_all(head.as_bytes()).unwrap();
    }
    let ask = json!({"q": "twenty-one", "source": "en", "target": "de"});
    assert_eq!(server.post("/translate", &ask).ok()["translatedText"], "einundzwanzig");
    for body in bodies {
        assert_eq!(body.read().status, 408);
    }
    for client in silent.iter_mut().chain(&mut halves) {
        let mut rest = Vec::new();
        let _ = client.0.read_to_end(&mut rest);
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&rest));
    }
    eventually("only the one that asks is left", || server.metric("attentive_connections") == 1.0);
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let limits = Limits { patience: Duration::from_millis(200), ..Limits::default() };
    let server = Running::start(Settings { limits, ..Settings::default() });
    let mut client = server.client();
    // More requests than answers fit into the buffers between us, and none of the answers is read.
    let request = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50);
    let begin = Instant::now();
    while client.0.write_all(request.as_bytes()).is_ok() {
        client.0.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(30), "it goes on for ever");
    }
    eventually("it is gone", || server.metric("attentive_connections") == 1.0);
}

#[test]
fn idle_connections_make_room_for_those_who_ask() {
    let hour = Duration::from_secs(3600);
    let few = Limits { connections: 3, patience: hour, ..Limits::default() };
    let own = Limits { connections_per_address: Some(3), patience: hour, ..Limits::default() };
    for limits in [few, own] {
        let server = Running::start(Settings { limits, ..Settings::default() });
        let idle: Vec<Client> = (0..3).map(|_| server.client()).collect();
        // Who has just come is not idle yet.
        std::thread::sleep(Duration::from_secs(1));
        let ask = json!({"q": "one", "source": "en", "target": "de"});
        assert_eq!(server.post("/translate", &ask).status, 200);
        drop(idle);
    }
}
