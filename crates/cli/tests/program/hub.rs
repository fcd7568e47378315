//! Models by name: commands against a server that speaks the Hub's protocol.

#[path = "../../../hub/tests/hub/server/mod.rs"]
mod server;

use super::{Outcome, finish, program};
use serde_json::Value;
use server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");
const NAME: &str = "ada/numbers-en-de";

/// A server with the model of the demo, and an empty cache.
struct Scene {
    server: Server,
    home: PathBuf,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let home = std::env::temp_dir().join(format!("attentive-by-name-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let server = Server::start();
        server.add_folder(NAME, 'a', MODEL);
        Scene { server, home }
    }

    fn program(&self, line: &str) -> Command {
        let mut program = program(line);
        program.env_clear().env("HF_HOME", &self.home).env("HF_ENDPOINT", self.server.endpoint());
        program
    }

    fn run(&self, line: &str) -> Outcome {
        finish(self.program(line))
    }

    fn offline(&self, line: &str) -> Outcome {
        let mut program = self.program(line);
        program.env("HF_HUB_OFFLINE", "1");
        finish(program)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

#[test]
fn commands_take_names_and_need_no_network_after_the_first_time() {
    let scene = Scene::new("commands");
    let translate = format!("translate --model {NAME} --to de twenty-one");
    let first = scene.run(&translate);
    assert_eq!((first.code, first.stdout.as_str(), first.stderr.as_str()), (Some(0), "einundzwanzig\n", ""));
    scene.server.requests();
    assert_eq!(scene.run(&translate).stdout, first.stdout);
    assert!(scene.server.requests().is_empty());
    assert_eq!(scene.offline(&translate).stdout, first.stdout);
    let info = scene.offline(&format!("info {NAME} --json")).json();
    assert_eq!(info["family"], "the original Transformer");
    assert_eq!(scene.offline(&format!("tokenize --model {NAME} {MODEL}/config.json")).code, Some(0));
    let out = scene.home.join("out");
    let converted = scene.offline(&format!("convert --model {NAME} --out {} --json", out.display()));
    assert!(converted.json()["tensors"].as_u64().unwrap() > 0);
    let words = super::encoders::Model::new("hidden", "hub");
    scene.server.add_folder("ada/words", 'b', &words.name());
    let by_folder = scene.run(&format!("embed --model {} hello", words.name())).stdout;
    assert_eq!(scene.run("embed --model ada/words hello").stdout, by_folder);
    assert_eq!(scene.offline("embed --model ada/words@main hello").stdout, by_folder);
}

#[test]
fn a_folder_of_the_same_name_wins() {
    let scene = Scene::new("folder");
    let folder = scene.home.join(NAME);
    fs::create_dir_all(&folder).unwrap();
    let mut program = scene.program(&format!("info {NAME}"));
    finish({
        program.current_dir(&scene.home);
        program
    })
    .failed(&["config.json"]);
    assert!(scene.server.requests().is_empty());
}

#[test]
fn pull_prints_the_folder_and_models_lists_and_removes_it() {
    let scene = Scene::new("pull");
    let pulled = scene.run(&format!("pull {NAME}"));
    assert_eq!(pulled.code, Some(0), "{}", pulled.stderr);
    let folder = scene.home.join(format!("hub/models--ada--numbers-en-de/snapshots/{}", "a".repeat(40)));
    assert_eq!(pulled.stdout, format!("{}\n", folder.display()));
    assert!(pulled.stderr.contains("downloaded"), "{}", pulled.stderr);
    let again = scene.run(&format!("pull {NAME}@main --json")).json();
    assert_eq!((again["downloaded_bytes"].as_u64(), again["revision"].as_str()), (Some(0), Some("main")));
    assert_eq!(again["folder"], folder.to_str().unwrap());

    let table = scene.run("models").stdout;
    let row = table.lines().nth(1).unwrap();
    for word in [NAME, "marian", "translate", "main", "MB", "just now"] {
        assert!(row.contains(word), "`{word}` is not in: {table}");
    }
    let rows = scene.run("models --json").json();
    assert_eq!((rows[0]["name"].as_str(), rows[0]["tasks"][0].as_str()), (Some(NAME), Some("translate")));
    scene.run("models rm ada/numbers-en-d").failed(&["not in the cache", NAME]);
    let removed = scene.run(&format!("models rm {NAME}"));
    assert_eq!(removed.code, Some(0));
    assert!(removed.stderr.contains("freed"), "{}", removed.stderr);
    assert_eq!(scene.run("models --json").json(), Value::Array(Vec::new()));
    assert!(!folder.exists());
}

#[test]
fn what_cannot_be_had_is_told_in_one_sentence() {
    let scene = Scene::new("refusals");
    scene.server.add(
        "ada/llama",
        'b',
        &[("config.json", b"{\"model_type\": \"llama\"}"), ("model.safetensors", b"x")],
    );
    scene.run("pull ada/llama").failed(&["`llama`", "not supported"]);
    scene.run("translate --model ada/llama hello").failed(&["`llama`", "not supported"]);
    assert!(scene.server.requests().iter().all(|request| !request.path.contains("safetensors")));
    scene
        .run("translate --model nowhere hello")
        .failed(&["nowhere/config.json: no such file", "has no model `nowhere`"]);
    scene.run("info /nowhere/at/all").failed(&["/nowhere/at/all/config.json"]);
    scene.offline(&format!("embed --model {NAME} hello")).failed(&["no such file", "HF_HUB_OFFLINE"]);
    for bad in ["../x", "/etc", "a/b/c", "a@../b", "models--a"] {
        scene.run(&format!("pull {bad}")).refused(&["no name of a model"]);
        scene.run(&format!("models rm {bad}")).refused(&["no name of a model"]);
    }
    let mut program = scene.program(&format!("pull {NAME}"));
    program.env("HF_ENDPOINT", "nonsense");
    finish(program).misused(&["HF_ENDPOINT"]);
}

#[test]
fn serve_names_a_model_by_its_name_on_the_hub() {
    use std::io::{BufRead, BufReader, Read, Write};
    let scene = Scene::new("serve");
    let mut program = scene.program(&format!("serve --port 0 --log off --model {NAME}"));
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit('/').next().unwrap().to_owned();
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let (list, one, escaped) =
        (get("/v1/models"), get(&format!("/v1/models/{NAME}")), get("/v1/models/ada%2Fnumbers-en-de"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(list.contains(&format!("\"id\":\"{NAME}\"")), "{list}");
    for one in [one, escaped] {
        assert!(one.starts_with("HTTP/1.1 200") && one.contains(NAME), "{one}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_leaves_what_has_come_and_the_next_pull_goes_on() {
    let scene = Scene::new("ctrl-c");
    // The first part of each file comes, then nothing for a while.
    scene.server.with(|state| state.moods.stalls_after = Some(50_000));
    let mut child =
        scene.program(&format!("pull {NAME}")).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let blobs = scene.home.join("hub/models--ada--numbers-en-de/blobs");
    let incomplete = || {
        let entries = fs::read_dir(&blobs).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_str().unwrap().ends_with(".incomplete"))
            .filter(|entry| entry.metadata().unwrap().len() == 50_000)
            .count()
    };
    while incomplete() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(said.ends_with("attentive: interrupted\n"), "{said}");
    assert!(incomplete() > 0);
    assert!(!scene.home.join("hub/models--ada--numbers-en-de/refs").exists());

    scene.server.with(|state| state.moods.stalls_after = None);
    scene.server.requests();
    assert_eq!(scene.run(&format!("pull {NAME}")).code, Some(0));
    let ranges: Vec<_> = scene.server.requests().into_iter().filter_map(|request| request.range).collect();
    assert!(ranges.contains(&"bytes=50000-".to_owned()), "{ranges:?}");
    assert_eq!(scene.offline(&format!("translate --model {NAME} --to de two")).stdout, "zwei\n");
}

/// Calls of the system that fail while a model is pulled: each ends in one sentence or does no harm, no file stands under a name that it
/// should not have, and the next pull gets the model.
#[cfg(target_os = "linux")]
#[test]
fn a_full_or_broken_disk_leaves_nothing_half_written() {
    let scene = Scene::new("faults");
    fs::create_dir_all(&scene.home).unwrap();
    let (library, log) = (scene.home.join("faults.so"), scene.home.join("calls.log"));
    super::faults::make_library(&library);
    let cache = scene.home.join("hub");
    let pull = |fault: Option<(&str, usize, &str)>| {
        let mut program = scene.program(&format!("pull {NAME}"));
        program.env("LD_PRELOAD", &library).env("FAULTS_BENEATH", &cache).env("FAULTS_LOG", &log);
        if let Some((kind, at, how)) = fault {
            program.env("FAULTS_CALL", kind).env("FAULTS_AT", at.to_string()).env("FAULTS_HOW", how);
        }
        let outcome = finish(program);
        let calls = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        (outcome, calls)
    };
    let (outcome, calls) = pull(None);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let count = |kind: &str| calls.lines().filter(|line| line.starts_with(&format!("{kind} "))).count();
    assert!(count("write") > 5 && count("rename") > 5 && count("sync") > 5, "{calls}");
    for kind in ["write", "create", "mkdir", "rename", "sync", "stat", "open", "read"] {
        let all = count(kind);
        let hows: &[&str] = if kind == "write" { &["enospc", "eio", "short"] } else { &["eio"] };
        // The first of each kind, one in the middle, and the last.
        for at in [1, all / 2, all] {
            for &how in hows {
                fs::remove_dir_all(&cache).unwrap();
                let (outcome, calls) = pull(Some((kind, at, how)));
                let fault = format!("{kind} {at} {how}: {calls}{}", outcome.stderr);
                let is_sentence =
                    || outcome.stderr.lines().last().is_some_and(|line| line.contains("(os error "));
                assert!(outcome.code == Some(0) || (outcome.code == Some(1) && is_sentence()), "{fault}");
                must_be_sound(&cache, &fault);
                let again = scene.run(&format!("pull {NAME}"));
                assert_eq!(again.code, Some(0), "{fault}, then {}", again.stderr);
                must_be_sound(&cache, &fault);
            }
        }
    }
    assert_eq!(scene.offline(&format!("translate --model {NAME} --to de two")).stdout, "zwei\n");
}

/// Each blob has the hash that is its name, and each file of a snapshot has a blob.
fn must_be_sound(cache: &Path, when: &str) {
    let place = cache.join("models--ada--numbers-en-de");
    for blob in fs::read_dir(place.join("blobs")).into_iter().flatten().flatten() {
        let name = blob.file_name().into_string().unwrap();
        assert!(
            name.ends_with(".incomplete") || server::hash(&fs::read(blob.path()).unwrap()) == name,
            "{when}: {name}"
        );
    }
    for file in fs::read_dir(place.join("snapshots").join("a".repeat(40))).into_iter().flatten().flatten() {
        assert!(file.path().exists(), "{when}: {}", file.path().display());
    }
    let main = fs::read_to_string(place.join("refs/main"));
    assert!(main.is_err() || main.is_ok_and(|commit| commit == "a".repeat(40)), "{when}");
}
