//! Everything that goes wrong ends well, or in one sentence with nothing half-written.

use super::{NAME, Scene, bytes, must_fail, server};
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn a_token_goes_to_the_hub_and_to_no_other_host() {
    let mut scene = Scene::with_model("token");
    scene.server.with(|state| state.moods.token = Some("hf_right".to_owned()));
    must_fail(scene.find(NAME), &["has no model `ada/engine`", "log in", "HF_TOKEN"]);
    scene.set("HF_TOKEN", "hf_wrong");
    must_fail(scene.find(NAME), &["has no model", "your token"]);
    scene.set("HF_TOKEN", "hf_right");
    scene.server.requests();
    scene.find(NAME).unwrap();
    let requests = scene.server.requests();
    assert!(requests.iter().any(|request| request.is_store));
    for request in requests {
        let expected = if request.is_store { None } else { Some("Bearer hf_right".to_owned()) };
        assert_eq!(request.authorization, expected, "{request:?}");
    }
    assert!(!scene.said().contains("hf_"), "{}", scene.said());
}

#[test]
fn names_in_the_cache_are_suggested() {
    let scene = Scene::with_model("near");
    scene.find(NAME).unwrap();
    must_fail(scene.find("ada/engnie"), &["has no model `ada/engnie`", "the cache has `ada/engine`"]);
    must_fail(scene.find("ada/something-else"), &["has no model `ada/something-else`"]);
}

#[test]
fn models_with_conditions_name_the_page_where_they_are_accepted() {
    for headers in [&[("x-error-code", "GatedRepo")][..], &[]] {
        let scene = Scene::with_model("gated");
        scene.server.refuse("resolve", 403, headers);
        must_fail(scene.find(NAME), &["does not give out `ada/engine`", "/mirror/ada/engine", "HF_TOKEN"]);
    }
    let scene = Scene::with_model("gated");
    scene.server.refuse("resolve", 401, &[("x-error-code", "GatedRepo")]);
    must_fail(scene.find(NAME), &["does not give out"]);
}

#[test]
fn a_busy_server_is_asked_again_and_in_the_end_is_told() {
    let scene = Scene::with_model("busy-server");
    scene.server.refuse("revision", 503, &[]);
    scene.server.refuse("config.json", 500, &[]);
    scene.server.refuse("model.safetensors", 429, &[("retry-after", "1")]);
    scene.server.refuse("signature", 502, &[]);
    let begin = Instant::now();
    scene.find(NAME).unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1));
    assert!(scene.said().contains("too many requests, and takes more in 1 s"), "{}", scene.said());

    let scene = Scene::with_model("broken-server");
    (0..9).for_each(|_| scene.server.refuse("revision", 503, &[]));
    must_fail(scene.find(NAME), &["answers with status 503"]);
    let scene = Scene::with_model("limit");
    scene.server.refuse("revision", 429, &[("retry-after", "3600")]);
    must_fail(scene.find(NAME), &["too many requests", "in 3600 s"]);
    let scene = Scene::with_model("teapot");
    scene.server.refuse("revision", 418, &[]);
    must_fail(scene.find(NAME), &["status 418"]);
}

#[test]
fn a_connection_that_breaks_again_and_again_is_gone_on_with() {
    let scene = Scene::with_model("breaks");
    scene.server.with(|state| state.moods.breaks_after = Some(10_000));
    scene.find(NAME).unwrap();
    scene.must_be_sound();
    let ranges: Vec<_> = scene
        .server
        .requests()
        .into_iter()
        .filter(|r| r.is_store && r.method == "GET")
        .map(|r| r.range)
        .collect();
    assert_eq!(ranges.len(), 10);
    assert_eq!((&ranges[0], ranges[9].as_deref()), (&None, Some("bytes=90000-")));
    assert!(scene.said().contains("the connection broke"), "{}", scene.said());
    let counted = scene.watch.received.load(Ordering::Relaxed) - scene.watch.lost.load(Ordering::Relaxed);
    assert_eq!(counted, 100_010);
}

#[test]
fn a_connection_that_never_gives_anything_is_given_up_and_what_came_stays() {
    let scene = Scene::with_model("dead");
    scene.server.with(|state| state.moods.breaks_after = Some(0));
    must_fail(scene.find(NAME), &["cannot download", "the connection broke"]);
    assert!(!scene.place().join("refs/main").exists());

    let scene = Scene::with_model("half");
    let incomplete = format!("{}.incomplete", server::hash(&bytes(100_000, b'a')));
    fs::create_dir_all(scene.place().join("blobs")).unwrap();
    fs::write(scene.place().join("blobs").join(&incomplete), &bytes(100_000, b'a')[..60_000]).unwrap();
    scene.find(NAME).unwrap();
    let range = scene.server.requests().into_iter().find_map(|request| request.range);
    assert_eq!(range.as_deref(), Some("bytes=60000-"));
    scene.must_be_sound();
}

#[test]
fn a_part_that_is_wrong_or_too_long_is_thrown_away() {
    for left in [bytes(60_000, 77), bytes(100_000, 77), bytes(100_001, 77)] {
        let scene = Scene::with_model("wrong-part");
        let incomplete = format!("{}.incomplete", server::hash(&bytes(100_000, b'a')));
        fs::create_dir_all(scene.place().join("blobs")).unwrap();
        fs::write(scene.place().join("blobs").join(&incomplete), left).unwrap();
        scene.find(NAME).unwrap();
        scene.must_be_sound();
    }
}

#[test]
fn a_server_without_ranges_begins_anew() {
    let scene = Scene::with_model("no-ranges");
    let incomplete = format!("{}.incomplete", server::hash(&bytes(100_000, b'a')));
    fs::create_dir_all(scene.place().join("blobs")).unwrap();
    fs::write(scene.place().join("blobs").join(&incomplete), &bytes(100_000, b'a')[..60_000]).unwrap();
    scene.server.with(|state| state.moods.ignores_ranges = true);
    scene.find(NAME).unwrap();
    scene.must_be_sound();
    let counted = scene.watch.received.load(Ordering::Relaxed) - scene.watch.lost.load(Ordering::Relaxed);
    assert_eq!(counted, 100_010);
}

#[test]
fn a_file_of_another_hash_is_thrown_away() {
    for (damages, file) in [(1, "config.json"), (99, "config.json")] {
        let scene = Scene::with_model("damaged");
        scene.server.with(|state| state.moods.damages = damages);
        must_fail(scene.find(NAME), &[file, "damaged on its way", "git hash"]);
        assert!(super::files(&scene.place().join("blobs")).is_empty());
        assert!(!scene.place().join("snapshots").exists());
        scene.server.with(|state| state.moods.damages = 0);
        scene.find(NAME).unwrap();
        scene.must_be_sound();
    }
    let scene = Scene::with_model("damaged-weights");
    let refuse = |_: &std::path::Path| {
        scene.server.with(|state| state.moods.damages = 99);
        Ok(())
    };
    let found = scene.hub().find(&scene.name(), attentive_hub::Need::Model, &refuse, &scene.watch);
    must_fail(found, &["damaged on its way"]);
    assert!(!scene.place().join("refs/main").exists());
    scene.must_be_sound();
}

#[test]
fn redirects_that_lead_nowhere_are_told() {
    for (location, words) in [
        ("http://127.0.0.1:1/gone", "cannot download from 127.0.0.1:1"),
        ("ftp://example.org/x", "a redirect that leads nowhere"),
    ] {
        let scene = Scene::with_model("redirects");
        scene.server.with(|state| state.moods.elsewhere = Some(location.to_owned()));
        must_fail(scene.find(NAME), &[words]);
    }
    let scene = Scene::with_model("circle");
    let again =
        format!("{}/ada/engine/resolve/{}/model.safetensors", scene.server.endpoint(), "a".repeat(40));
    scene.server.with(|state| state.moods.elsewhere = Some(again));
    must_fail(scene.find(NAME), &["too many redirects"]);
}

#[test]
fn answers_of_another_kind_of_server_are_told() {
    let mut scene = Scene::with_model("strange");
    scene.server.refuse("revision", 200, &[("content-type", "text/html")]);
    must_fail(scene.find(NAME), &["no description of a model"]);
    scene.server.refuse("config.json", 200, &[]);
    must_fail(scene.find(NAME), &["config.json", "without its hash (ETag)"]);
    scene.set("HF_ENDPOINT", "http://127.0.0.1:1");
    must_fail(scene.find(NAME), &["cannot download from 127.0.0.1:1", "refused"]);
    scene.set("HF_ENDPOINT", "http://no-such-host.invalid");
    must_fail(scene.find(NAME), &["cannot download from no-such-host.invalid"]);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let mut scene = Scene::with_model("silent");
    scene.set("HF_HUB_ETAG_TIMEOUT", "1");
    scene.set("HF_HUB_DOWNLOAD_TIMEOUT", "60");
    scene.server.with(|state| state.moods.delay = Some(Duration::from_secs(60)));
    let begin = Instant::now();
    must_fail(scene.find(NAME), &["no answer within 1 s"]);
    assert!(begin.elapsed() < Duration::from_secs(30));

    let mut scene = Scene::with_model("stalls");
    scene.set("HF_HUB_ETAG_TIMEOUT", "60");
    scene.set("HF_HUB_DOWNLOAD_TIMEOUT", "1");
    scene.server.with(|state| state.moods.stalls_after = Some(0));
    let begin = Instant::now();
    must_fail(scene.find(NAME), &["the connection broke"]);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_server_may_say_by_a_date_when_it_takes_more() {
    let scene = Scene::with_model("date");
    let dates = |later: &'static str| [("date", "Fri, 31 Dec 1999 23:59:58 GMT"), ("retry-after", later)];
    scene.server.refuse("revision", 429, &dates("Fri, 31 Dec 1999 23:59:59 GMT"));
    let begin = Instant::now();
    scene.find(NAME).unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1));
    assert!(scene.said().contains("takes more in 1 s"), "{}", scene.said());
    let scene = Scene::with_model("far-date");
    scene.server.refuse("revision", 503, &dates("Sat, 01 Jan 2000 23:59:58 GMT"));
    must_fail(scene.find(NAME), &["status 503"]);
}
