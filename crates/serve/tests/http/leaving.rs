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
fn what_is_under_way_is_answered() {
    let mut server = Running::start(Settings::default());
    let ask =
        json!({"text": vec!["ninety-nine thousand nine hundred and ninety-nine"; 8], "min_length": 200})
            .to_string();
    let mut clients: Vec<super::Client> = (0..8).map(|_| server.client()).collect();
    for client in &mut clients {
        client.write_request(
            "POST",
            "/v1/translate",
            &[("Content-Type", "application/json")],
            ask.as_bytes(),
        );
    }
    while server.metric("attentive_queue_sentences") < 64.0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| server.leave());
        for client in clients {
            let answer = client.read();
            assert_eq!(answer.ok()["translations"].as_array().unwrap().len(), 8);
        }
    });
}

#[test]
fn every_request_that_was_accepted_is_answered_in_the_middle_of_load() {
    let mut server = Running::start(Settings::default());
    let (leaves, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (address, leaves, answered) = (server.address, &leaves, &answered);
            scope.spawn(move || {
                let text = ["one", "ninety-nine thousand and nine", "two hundred"][number % 3];
                let ask = json!({"q": text, "source": "en", "target": "de"}).to_string();
                // Whoever comes when the server is leaving already may find the door closed; nobody before.
                while !leaves.load(Ordering::SeqCst) {
                    let mut client = super::Client(TcpStream::connect(address).unwrap());
                    client.write_request(
                        "POST",
                        "/translate",
                        &[("Content-Type", "application/json")],
                        ask.as_bytes(),
                    );
                    if leaves.load(Ordering::SeqCst) {
                        break;
                    }
                    let answer = client.read();
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while answered.load(Ordering::Relaxed) < 50 {
            std::thread::sleep(Duration::from_millis(2));
        }
        leaves.store(true, Ordering::SeqCst);
        server.leave();
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
    let engine = Engine::on(CpuBackend::from_env().unwrap().shared());
    let error = server
        .run(engine, vec![ModelPlace::named("mine", "no/such/folder")], std::future::pending())
        .unwrap_err();
    assert!(error.to_string().starts_with("model `mine`: no/such/folder"), "{error}");
}

#[test]
fn two_models_of_one_name_are_refused() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Settings::default()).unwrap();
    let engine = Engine::on(CpuBackend::from_env().unwrap().shared());
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
