//! Bodies of requests: read within limits of size and time, and understood field by field.

use crate::app::App;
use crate::aside::aside;
use crate::multipart::{self, Part};
use crate::refusal::Refusal;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

/// What a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forms {
    Json,
    /// JSON, or a form of HTML, as LibreTranslate takes both.
    JsonOrForm,
}

/// What a request says, and the pictures that it brings as files of a form.
#[derive(Debug)]
pub(crate) struct WithFiles<T> {
    pub fields: T,
    pub files: Vec<Bytes>,
    /// Of a large body, its place among those that may be there at once: to be kept until the answer.
    pub place: Option<OwnedSemaphorePermit>,
}

/// The fields of a form that hold pictures, and the one that holds a text whatever it looks like.
const FILES: [&str; 2] = ["image", "file"];
const MODEL: &str = "model";

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
    let is_json = is_json(&kind);
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
    refuse_compressed(request.headers())?;
    let bytes = read(app, request, app.settings.limits.body).await?;
    let text = as_text(&bytes)?;
    match (is_json || is_object(text), is_form) {
        (true, _) => from_json(text),
        (false, true) => from_form(text),
        (false, false) => Err(other_type()),
    }
}

/// Reads a body that may have pictures: JSON, or a form with files. What is large is understood away from the threads that answer
/// connections.
pub(crate) async fn with_files<T: DeserializeOwned + Send + 'static>(
    app: &App,
    request: Request<Body>,
) -> Result<WithFiles<T>, Refusal> {
    let kind = media_type(request.headers());
    let is_form = kind == "multipart/form-data";
    if !(is_form || is_json(&kind)) {
        return Err(Refusal::media_type(
            "JSON (application/json) or a form with files (multipart/form-data)",
        ));
    }
    refuse_compressed(request.headers())?;
    let header =
        request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = multipart::parameter(header, "boundary").unwrap_or_default();
    let limits = &app.settings.limits;
    let is_small = announced(request.headers()).is_some_and(|length| length <= limits.body as u64);
    let (place, limit) = match app.sees()? && !is_small {
        true => (Some(app.place_for_large_body()?), limits.body.max(limits.picture_body)),
        false => (None, limits.body),
    };
    let bytes = read(app, request, limit).await?;
    aside(move || {
        let (fields, files) = match is_form {
            true => from_parts(&bytes, &boundary)?,
            false => (from_json(as_text(&bytes)?)?, Vec::new()),
        };
        Ok(WithFiles { fields, files, place })
    })
    .await
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

fn refuse_compressed(headers: &HeaderMap) -> Result<(), Refusal> {
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("unknown"));
    match encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        Some(encoding) => Err(Refusal::encoding(encoding)),
        None => Ok(()),
    }
}

fn as_text(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|error| {
        Refusal::body(format!("the body is not UTF-8: byte {} is invalid", error.valid_up_to()))
    })
}

/// Whether a body is JSON although its type says that it is a form: `curl -d` says so of every body. No form begins like this.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// How many bytes a body is said to have.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The bytes of a body.
async fn read(app: &App, request: Request<Body>, limit: usize) -> Result<Bytes, Refusal> {
    let too_large = || Refusal::too_large("body", format!("it is larger than the maximum of {limit} bytes"));
    // Whoever announces too much need not send it.
    if announced(request.headers()).is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), limit);
    match tokio::time::timeout(app.settings.limits.patience, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
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
        add(&mut fields, name.into_owned(), value);
    }
    from_fields(fields)
}

/// The fields of a form with files, and its pictures. A number, a list, `true`, `false` or `null` is taken as such; a model may be
/// called like one of them.
fn from_parts<T: DeserializeOwned>(body: &Bytes, boundary: &str) -> Result<(T, Vec<Bytes>), Refusal> {
    let wrong = |problem| Refusal::body(format!("the form cannot be read: {problem}"));
    let (mut fields, mut files) = (Map::new(), Vec::new());
    for Part { name, is_file, bytes } in multipart::parts(body, boundary).map_err(wrong)? {
        if FILES.contains(&&*name) {
            files.push(bytes);
            continue;
        }
        if is_file {
            return Err(Refusal::field(name, "is a file: send pictures as `image` or `file`"));
        }
        let text = as_text(&bytes)?;
        let value =
            serde_json::from_str(text).ok().filter(|value: &Value| !value.is_string() && name != MODEL);
        add(&mut fields, name, value.unwrap_or_else(|| Value::from(text)));
    }
    Ok((from_fields(fields)?, files))
}

/// Adds a field; a name that comes again makes a list.
fn add(fields: &mut Map<String, Value>, name: String, value: Value) {
    match fields.get_mut(&name) {
        None => drop(fields.insert(name, value)),
        Some(Value::Array(list)) => list.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

fn from_fields<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, Refusal> {
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
