//! The page and the description of the interface.

use super::{Running, encoder};
use attentive_serve::{Settings, page};
use serde_json::Value;

#[test]
fn the_page_is_whole_and_comes_again_only_when_it_has_changed() {
    let server = Running::start(Settings::default());
    let index = server.get("/");
    assert_eq!((index.status, index.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(index.header("content-security-policy").unwrap().contains("default-src 'none'"));
    for file in page::FILES.iter().skip(1) {
        let path = format!("/page/{}", file.name);
        let answer = server.get(&path);
        assert_eq!((answer.status, answer.text().as_str()), (200, file.text), "{path}");
        let tag = answer.header("etag").unwrap().to_owned();
        let again = server.client().send("GET", &path, &[("If-None-Match", &tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    for path in ["/page/index.html", "/page/nothing.js", "/page/..%2f..%2fCargo.toml", "/pages", "/page/"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn every_address_is_described_and_every_description_has_an_address() {
    let server = encoder::start(Settings::default(), true);
    let description = server.get("/openapi.json").ok();
    assert_eq!(description["components"]["schemas"]["Text"]["maxLength"], 5000);
    let paths = description["paths"].as_object().unwrap();
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            let status = server
                .client()
                .send(&method.to_uppercase(), &path.replace("{id}", "numbers"), &[], b"")
                .status;
            // A request without a body is wrong, but it arrives.
            assert!([200, 415].contains(&status), "{method} {path}: {status}");
        }
    }
    // What models say of themselves leads somewhere.
    for model in server.get("/v1/models").ok()["data"].as_array().unwrap() {
        for route in model["details"]["routes"].as_array().into_iter().flatten() {
            assert!(paths.contains_key(route.as_str().unwrap()), "{model}");
        }
    }
    let routes: Vec<String> = include_str!("../../src/routes/mod.rs")
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".route(\"")?.split('"').next())
        .filter(|path| !path.starts_with("/page/"))
        // Names of models may have slashes.
        .map(|path| path.replace("{*", "{"))
        .collect();
    assert_eq!(routes.len(), paths.len());
    assert!(routes.iter().all(|route| paths.contains_key(route)), "{routes:?}");
}

#[test]
fn no_answer_tells_where_the_server_lives() {
    let server = Running::start(Settings::default());
    let here = std::env::current_dir().unwrap();
    let [here, temporary] = [here, std::env::temp_dir()].map(|path| path.display().to_string());
    for path in ["/v1/models", "/languages", "/metrics", "/readyz", "/frontend/settings", "/nothing"] {
        let text = server.get(path).text();
        assert!(!text.contains(&here) && !text.contains(&temporary), "{text}");
    }
    let nothing: Value = server.get("/nothing").json();
    assert!(nothing["error"]["message"].as_str().unwrap().contains("/openapi.json"));
}
