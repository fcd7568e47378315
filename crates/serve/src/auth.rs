//! API keys: who has none of them is not let in, where there are any.

use crate::refusal::Refusal;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;

/// The keys that open the server; none if it is open.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<String>);

impl Keys {
    pub fn new(keys: Vec<String>) -> Keys {
        Keys(keys)
    }

    /// Whether a key is needed.
    pub fn are_needed(&self) -> bool {
        !self.0.is_empty()
    }

    /// Lets a request in that has a key in its headers, or brings one in its body, as LibreTranslate's clients do.
    pub fn check<'a>(&self, headers: &'a HeaderMap, in_body: Option<&'a str>) -> Result<(), Refusal> {
        if !self.are_needed() {
            return Ok(());
        }
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let scheme =
            |(scheme, key): (&str, &'a str)| scheme.eq_ignore_ascii_case("bearer").then(|| key.trim());
        let in_headers = bearer.and_then(|value| value.split_once(' ')).and_then(scheme);
        let given = in_headers.or(in_body.filter(|key| !key.is_empty()));
        match given {
            Some(key) if self.has(key) => Ok(()),
            given => Err(Refusal::key(given.is_some())),
        }
    }

    /// Compares with every key, each in a time that does not depend on how much of it is right.
    fn has(&self, given: &str) -> bool {
        let mut found = subtle::Choice::from(0);
        for key in &self.0 {
            found |= key.as_bytes().ct_eq(given.as_bytes());
        }
        found.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(key: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {key}").parse().unwrap())])
    }

    #[test]
    fn without_keys_everybody_comes_in() {
        assert_eq!(Keys::default().check(&HeaderMap::new(), None), Ok(()));
        assert_eq!(Keys::default().check(&bearer("anything"), Some("else")), Ok(()));
    }

    #[test]
    fn with_keys_only_those_who_have_one() {
        let keys = Keys::new(vec!["one".to_owned(), "another".to_owned()]);
        assert_eq!(keys.check(&bearer("another"), None), Ok(()));
        assert_eq!(keys.check(&HeaderMap::new(), Some("one")), Ok(()));
        for scheme in ["bearer", "BEARER", "beAREr "] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, format!("{scheme} one").parse().unwrap())]);
            assert_eq!(keys.check(&headers, None), Ok(()), "{scheme}");
        }
        for wrong in ["", "on", "ones", "One", "anothe\u{72}x"] {
            assert_eq!(keys.check(&bearer(wrong), None), Err(Refusal::key(true)), "{wrong}");
        }
        assert_eq!(keys.check(&HeaderMap::new(), Some("")), Err(Refusal::key(false)));
        // What the header says counts, though the body may say something else.
        assert_eq!(keys.check(&bearer("wrong"), Some("one")), Err(Refusal::key(true)));
    }
}
