//! Which pages of other servers may ask this one: none, unless the settings allow it.

use crate::error::Error;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

/// The origins that are let in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins(Vec<HeaderValue>);

impl Origins {
    /// `https://example.org` each, or `*` for all.
    pub fn new(origins: &[String]) -> Result<Origins, Error> {
        let origin = |origin: &String| {
            let is_origin = origin == "*"
                || (origin.starts_with("http://") || origin.starts_with("https://"))
                    && !origin.trim_start_matches("https://").trim_start_matches("http://").contains('/');
            let value = HeaderValue::from_str(origin).ok().filter(|_| is_origin);
            value.ok_or_else(|| {
                let problem = format!(
                    "`{origin}` is not an origin: use `*`, or an address without a path, such as `https://example.org:8080`"
                );
                Error::setting("origins", problem)
            })
        };
        Ok(Origins(origins.iter().map(origin).collect::<Result<_, _>>()?))
    }

    /// The origin of a request, if it is let in, as the answer has to repeat it.
    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.0.iter().find(|allowed| *allowed == "*" || *allowed == origin).cloned()
    }

    /// The answer to a browser that asks before it asks.
    pub fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        if method != Method::OPTIONS || !headers.contains_key("access-control-request-method") {
            return None;
        }
        self.allowed(headers)?;
        let answer = [
            (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
            (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
            (ACCESS_CONTROL_MAX_AGE, "600"),
        ];
        Some((StatusCode::NO_CONTENT, answer).into_response())
    }

    /// Adds to an answer what lets the page read it.
    pub fn allow(&self, request: &HeaderMap, response: &mut Response) {
        if self.0.is_empty() {
            return;
        }
        let headers = response.headers_mut();
        headers.append(VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = self.allowed(request) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(origin: &str) -> HeaderMap {
        HeaderMap::from_iter([(ORIGIN, origin.parse().unwrap())])
    }

    fn allowed(origins: &[&str], origin: &str) -> Option<String> {
        let origins = Origins::new(&origins.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>()).unwrap();
        let mut response = StatusCode::OK.into_response();
        origins.allow(&from(origin), &mut response);
        response.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn nobody_is_let_in_unless_asked() {
        assert_eq!(allowed(&[], "https://a.org"), None);
        assert_eq!(allowed(&["https://a.org"], "https://b.org"), None);
        assert_eq!(allowed(&["https://a.org"], "https://a.org"), Some("https://a.org".to_owned()));
        assert_eq!(allowed(&["*"], "https://b.org"), Some("*".to_owned()));
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for wrong in ["example.org", "https://a.org/path", "https://a.org/", "ftp://a.org", "", "https://a\n"]
        {
            assert!(Origins::new(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
