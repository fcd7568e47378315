//! Bodies of requests: read within limits of size and time, and understood field by field.

use crate::app::App;
use crate::refusal::Refusal;
use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forms {
    Json,
    /// JSON, or a form of HTML, as LibreTranslate takes both.
    JsonOrForm,
}

/// Reads a body of JSON.
pub(crate) async fn json<T: DeserializeOwned>(app: &App, request: Request<Body>) -> Result<T, Refusal> {
    fields(app, request, Forms::Json).await
}

/// Reads a body and understands it.
pub(crate) async fn fields<T: DeserializeOwned>(
    app: &App,
    request: Request<Body>,
    forms: Forms,
) -> Result<T, Refusal> {
    let kind = media_type(request.headers());
    let is_json = kind == "application/json" || kind.ends_with("+json");
    let takes_form = forms == Forms::JsonOrForm;
    let is_form = takes_form && kind == "application/x-www-form-urlencoded";
    let other_type = || {
        let expected = match forms {
            Forms::Json => "JSON (application/json)",
            Forms::JsonOrForm => "JSON (application/json) or a form (application/x-www-form-urlencoded)",
        };
        Refusal::media_type(expected)
    };
    // Without a type, the body tells.
    let is_open = takes_form && kind.is_empty();
    if !(is_json || is_form || is_open) {
        return Err(other_type());
    }
    let encoding = request.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("unknown"));
    if let Some(encoding) = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(Refusal::encoding(encoding));
    }
    let bytes = read(app, request).await?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        Refusal::body(format!("the body is not UTF-8: byte {} is invalid", error.valid_up_to()))
    })?;
    match (is_json || is_object(text), is_form) {
        (true, _) => from_json(text),
        (false, true) => from_form(text),
        (false, false) => Err(other_type()),
    }
}

/// Whether a body is JSON although its type says that it is a form: `curl -d` says so of every body. No form begins like this.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The bytes of a body.
async fn read(app: &App, request: Request<Body>) -> Result<Vec<u8>, Refusal> {
    let limits = &app.settings.limits;
    let too_large =
        || Refusal::too_large("body", format!("it is larger than the maximum of {} bytes", limits.body));
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    // Whoever announces too much need not send it.
    if length.is_some_and(|length: u64| length > limits.body as u64) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), limits.body);
    match tokio::time::timeout(limits.patience, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Refusal::body("the body is incomplete")),
        Err(_) => Err(Refusal::time("the body arrived too slowly")),
    }
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    let mut json = serde_json::Deserializer::from_str(text);
    let found = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner();
        if problem.is_data() && path != "." {
            Refusal::field(path, plain(&problem))
        } else {
            Refusal::body(format!("the body is not a valid request: {problem}"))
        }
    })?;
    json.end().map_err(|error| Refusal::body(format!("the body is not JSON: {error}")))?;
    Ok(found)
}

/// What is wrong, without the line and column, which do not help where the field is known.
fn plain(problem: &serde_json::Error) -> String {
    let text = problem.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// A form has texts only: what looks like JSON for a field that is no text is taken as such.
fn from_form<T: DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    let mut fields: Map<String, Value> = Map::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let value = match value.parse::<u64>() {
            Ok(number) if name == "alternatives" => Value::from(number),
            _ => Value::from(value.into_owned()),
        };
        match fields.get_mut(&*name) {
            None => drop(fields.insert(name.into_owned(), value)),
            // A name that comes again makes a list.
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let path = error.path().to_string();
        let problem = plain(error.inner());
        if path == "." { Refusal::body(problem) } else { Refusal::field(path, problem) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Ask {
        q: Value,
        alternatives: Option<u8>,
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        number: i32,
    }

    #[test]
    fn a_wrong_field_is_named_however_deep_it_is() {
        let refused = from_json::<Ask>(r#"{"q": 1, "inner": {"number": "x"}}"#).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("inner.number"));
        assert!(!refused.message.contains("line"), "{}", refused.message);
        let refused = from_json::<Ask>(r#"{"alternatives": 1}"#).unwrap_err();
        assert!(refused.message.contains("missing field `q`"), "{}", refused.message);
        for broken in ["", "{", "[]", "{\"q\": 1} more", "nul"] {
            assert_eq!(from_json::<Ask>(broken).unwrap_err().status.as_u16(), 400, "{broken}");
        }
    }

    #[test]
    fn a_form_has_texts_lists_and_the_number_of_alternatives() {
        let ask: Ask = from_form("q=one+%26+two&alternatives=3&format=text").unwrap();
        assert_eq!(ask, Ask { q: "one & two".into(), alternatives: Some(3), inner: None });
        let ask: Ask = from_form("q=12&q=b&q=c").unwrap();
        assert_eq!(ask.q, serde_json::json!(["12", "b", "c"]));
        let refused = from_form::<Ask>("q=a&alternatives=many").unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("alternatives"));
    }
}
