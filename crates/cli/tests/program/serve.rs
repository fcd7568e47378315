//! `attentive serve`: how it begins and ends; what it answers is tested in its own crate.

use super::encoders::Model;
use super::{program, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A server of the built program.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(options: &str) -> Server {
        let mut program = program(&format!("serve --port 0 {options}"));
        let mut process = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}"));
        let address = address.to_owned();
        let server = Server { process, address };
        // The address is told when requests are answered, not before.
        assert!(server.ask("GET", "/readyz", "").starts_with("HTTP/1.1 200"));
        server
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n";
        write!(stream, "{method} {path} HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a signal and waits for the end; returns the exit code and what was logged.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.process.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.process.wait().unwrap().code(), log)
    }
}

const ASK: &str = r#"{"q": "twenty-one", "source": "en", "target": "de"}"#;

#[test]
fn without_a_model_it_serves_numbers_and_leaves_when_it_is_asked_to() {
    for signal in ["-TERM", "-INT"] {
        let server = Server::start("--log off");
        assert!(server.ask("POST", "/translate", ASK).ends_with(r#"{"translatedText":"einundzwanzig"}"#));
        assert_eq!(server.end(signal), (Some(0), String::new()));
    }
}

#[test]
fn a_log_has_a_line_for_every_request_but_no_text_unless_asked() {
    let server = Server::start("--log json");
    server.ask("POST", "/translate", ASK);
    let (code, log) = server.end("-TERM");
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked = lines.iter().find(|line| line["route"] == "/translate").unwrap_or_else(|| panic!("{log}"));
    assert_eq!((code, &asked["status"], &asked["method"]), (Some(0), &200.into(), &"POST".into()));
    assert!(!log.contains("twenty"), "{log}");
    let server = Server::start("--log-texts");
    server.ask("POST", "/translate", ASK);
    assert!(server.end("-TERM").1.contains("twenty-one"));
}

#[test]
fn models_have_names_of_their_own_or_those_that_they_are_given() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");
    let server = Server::start(&format!("--log off --model {folder} --model mine={folder} --precision bf16"));
    let models = server.ask("GET", "/v1/models", "");
    assert!(models.contains(r#""id":"model""#) && models.contains(r#""id":"mine:fr""#), "{models}");
    server.end("-TERM");
}

#[test]
fn the_log_begins_with_a_line_for_each_model_that_says_how_it_is_computed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");
    let stored = std::env::temp_dir().join(format!("attentive-serve-int8-{}", std::process::id()));
    let stored = stored.display();
    assert_eq!(run(&format!("convert --model {folder} --out {stored} --precision int8")).code, Some(0));
    let server = Server::start(&format!("--threads 1 --model mine={folder} --model small={stored}"));
    let (code, log) = server.end("-TERM");
    std::fs::remove_dir_all(stored.to_string()).unwrap();
    assert_eq!(code, Some(0));
    let line = |name: &str| log.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{log}"));
    assert!(line("model mine: translation in f32 on ").contains("1 thread; greedy search"), "{log}");
    assert!(line("model small: translation in int8 on ").contains("1 thread; greedy search"), "{log}");
    assert!(line("model mine").ends_with("/v1/attention"), "{log}");
}

#[test]
fn what_cannot_be_served_is_refused_in_one_sentence() {
    run("serve --port 99999").refused(&["--port"]);
    run("serve --host nowhere").refused(&["--host"]);
    run("serve --queue 0").refused(&["--queue"]);
    for (options, words) in [
        ("--model no/such", ["no/such/config.json", "on the Hub"]),
        ("--api-keys no/such", ["no/such", "No such file"]),
    ] {
        let outcome = run(&format!("serve --port 0 --log off {options}"));
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        outcome.says(&words);
    }
}

#[test]
fn encoders_are_served_with_the_vectors_of_the_command() {
    let (words, moods) = (Model::new("hidden", "serve"), Model::new("sequence", "serve-classes"));
    let places = format!("--model words={} --model moods={}", words.name(), moods.name());
    let server = Server::start(&format!("--threads 1 {places}"));
    let ask = r#"{"model": "words", "input": ["A dog runs.", "zzz"]}"#;
    let answer = server.ask("POST", "/v1/embeddings", ask);
    let body: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    for (index, text) in ["A dog runs.", "zzz"].into_iter().enumerate() {
        let mut embed = program(&format!("embed --json --model {}", words.name()));
        let found = embed.arg(text).output().unwrap();
        let line: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
        assert_eq!(body["data"][index]["embedding"], line["embedding"]);
    }
    let (code, log) = server.end("-TERM");
    assert_eq!(code, Some(0));
    let line = |name: &str| log.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{log}"));
    let expected = "1 thread; at most 16 tokens in a text; /v1/embeddings, /embed, /v1/attention";
    assert!(line("model words: embeddings of 32 numbers in f32 on ").ends_with(expected), "{log}");
    assert!(
        line("model moods: 3 classes of texts in f32 on ")
            .ends_with("; /predict, /v1/classify, /v1/attention"),
        "{log}"
    );
}
