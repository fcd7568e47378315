//! How the server ends.

use super::Running;
use attentive_serve::{Engine, ModelPlace, Server, Settings};
use attentive_tensor::CpuBackend;
use serde_json::json;
use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn every_request_that_was_accepted_is_answered() {
    let mut server = Running::start(Settings::default());
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (server, stop, answered) = (&server.address, &stop, &answered);
            scope.spawn(move || {
                let text = ["one", "ninety-nine thousand and nine", "two hundred"][number % 3];
                let ask = json!({"q": text, "source": "en", "target": "de"}).to_string();
                // Whoever still gets a connection gets an answer.
                while let Ok(stream) = TcpStream::connect(server) {
                    let mut client = super::Client(stream);
                    client.write_request("POST", "/translate", &[("Content-Type", "application/json")], ask.as_bytes());
                    let answer = client.read();
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    answered.fetch_add(1, Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        while answered.load(Ordering::Relaxed) < 50 {
            std::thread::sleep(Duration::from_millis(2));
        }
        server.leave();
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_connection_that_is_kept_open_is_told_and_closed() {
    let mut server = Running::start(Settings::default());
    let mut idle = server.client();
    std::thread::scope(|scope| {
        scope.spawn(|| server.leave());
        let mut rest = Vec::new();
        idle.0.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
    });
}

#[test]
fn a_model_that_is_not_there_ends_the_server_with_its_name() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Settings::default()).unwrap();
    let engine = Engine { backends: vec![CpuBackend::from_env().unwrap().shared()], int8: false };
    let error = server.run(engine, vec![ModelPlace::named("mine", "no/such/folder")], std::future::pending()).unwrap_err();
    assert!(error.to_string().starts_with("model `mine`: no/such/folder"), "{error}");
}

#[test]
fn two_models_of_one_name_are_refused() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Settings::default()).unwrap();
    let engine = Engine { backends: vec![CpuBackend::from_env().unwrap().shared()], int8: false };
    let twice = vec![ModelPlace::numbers(), ModelPlace::named("numbers", "x")];
    let error = server.run(engine, twice, std::future::pending()).unwrap_err();
    assert!(error.to_string().contains("`numbers`"), "{error}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for settings in [
        Settings { keys: vec![String::new()], ..Settings::default() },
        Settings { keys: vec!["schlüssel".to_owned()], ..Settings::default() },
        Settings { origins: vec!["example.org".to_owned()], ..Settings::default() },
    ] {
        assert!(Server::bind("127.0.0.1:0".parse().unwrap(), settings).is_err());
    }
    let taken = Running::start(Settings::default());
    let error = Server::bind(taken.address, Settings::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
}
