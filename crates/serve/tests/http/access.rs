//! Who is let in.

use super::Running;
use attentive_serve::Settings;
use serde_json::json;
use std::io::Write;

#[test]
fn with_keys_nobody_translates_without_one() {
    let server = Running::start(Settings { keys: vec!["secret".to_owned()], ..Settings::default() });
    let json = ("Content-Type", "application/json");
    let ask = json!({"q": "one", "source": "en", "target": "de"});
    let open = [
        "/",
        "/page/main.js",
        "/healthz",
        "/readyz",
        "/health",
        "/metrics",
        "/languages",
        "/frontend/settings",
        "/openapi.json",
    ];
    for path in open {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    server.get("/v1/models").refused(401, None);
    for path in ["/v1/translate", "/v1/attention", "/v1/completions", "/v1/chat/completions"] {
        let answer = server.post(path, &json!({"text": "one"}));
        answer.refused(401, None);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    let refused = server.post("/translate", &ask);
    assert_eq!((refused.status, refused.json()["error"].is_string()), (401, true));
    let with = |key: &str, body: &str| {
        server.client().send("POST", "/translate", &[json, ("Authorization", key)], body.as_bytes()).status
    };
    assert_eq!(with("Bearer secret", &ask.to_string()), 200);
    assert_eq!(with("Bearer wrong", &ask.to_string()), 401);
    assert_eq!(with("Basic secret", &ask.to_string()), 401);
    let mut own = ask;
    own["api_key"] = json!("secret");
    assert_eq!(server.post("/translate", &own).status, 200);
    own["api_key"] = json!("secre");
    assert_eq!(server.post("/translate", &own).status, 401);
    assert_eq!(server.get("/frontend/settings").ok()["keyRequired"], true);
}

#[test]
fn on_loopback_another_host_is_refused_with_the_flag_that_allows_it() {
    let ask = |server: &Running, host: &str| {
        let body = json!({"q": "twenty-one", "source": "en", "target": "de"}).to_string();
        let length = body.len();
        let head = format!("POST /translate HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        let rest = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        let mut client = server.client();
        client.0.write_all((head + &rest).as_bytes()).unwrap();
        client.read()
    };
    let closed = Running::start(Settings::default());
    for host in ["evil.example", "evil.example:5000"] {
        let answer = ask(&closed, host);
        assert_eq!(answer.status, 403, "{}", answer.text());
        let message = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("`{host}`")) && message.contains("--allow-host"), "{message}");
    }
    assert_eq!(ask(&closed, &closed.address.to_string()).ok()["translatedText"], "einundzwanzig");
    let open = Running::start(Settings { hosts: vec!["evil.example".to_owned()], ..Settings::default() });
    assert_eq!(ask(&open, "evil.example:5000").ok()["translatedText"], "einundzwanzig");
    assert_eq!(ask(&open, "other.example").status, 403);
}

#[test]
fn pages_of_others_are_let_in_only_where_that_was_asked_for() {
    let ask = |server: &Running, method: &str, origin: &str| {
        let headers = [("Origin", origin), ("Access-Control-Request-Method", "POST")];
        server.client().send(method, "/v1/models", &headers, b"")
    };
    let closed = Running::start(Settings::default());
    let answer = ask(&closed, "GET", "https://a.org");
    assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control")), "{answer:?}");
    assert_eq!(ask(&closed, "OPTIONS", "https://a.org").status, 405);

    let open = Running::start(Settings { origins: vec!["https://a.org".to_owned()], ..Settings::default() });
    let answer = ask(&open, "GET", "https://a.org");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("https://a.org")));
    let answer = ask(&open, "OPTIONS", "https://a.org");
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (204, Some("GET, POST")));
    assert_eq!(ask(&open, "GET", "https://b.org").header("access-control-allow-origin"), None);
    assert_eq!(ask(&open, "OPTIONS", "https://b.org").status, 405);
}
