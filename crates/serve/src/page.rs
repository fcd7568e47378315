//! The page: files that are part of the program, so that it works at once and asks nobody else.

use crate::refusal::Refusal;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// A file of the page.
#[derive(Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(File { name: $name, text: include_str!(concat!("page/", $name)) }),*]
    };
}

/// All files of the page; the first is the page itself.
pub static FILES: &[File] = &files![
    "index.html",
    "style.css",
    "parts.css",
    "icon.svg",
    "main.js",
    "about.js",
    "alternatives.js",
    "answer.js",
    "api.js",
    "arithmetic.js",
    "attention.js",
    "bar.js",
    "boxes.js",
    "cells.js",
    "classify.js",
    "colour.js",
    "dictionary.js",
    "dom.js",
    "errors.js",
    "examples.js",
    "fill.js",
    "gaze.js",
    "grid.js",
    "heads.js",
    "heatmap.js",
    "hidden.js",
    "hypotheses.js",
    "kinds.js",
    "lines.js",
    "link.js",
    "live.js",
    "numbers.js",
    "positions.js",
    "rank.js",
    "reading.js",
    "save.js",
    "ribbon.js",
    "schedule.js",
    "scores.js",
    "see.js",
    "segments.js",
    "similar.js",
    "stacks.js",
    "stages.js",
    "state.js",
    "steps.js",
    "summarize.js",
    "tag.js",
    "tasks.js",
    "terms.js",
    "theme.js",
    "thumbnail.js",
    "tokens.js",
    "translate.js",
    "weights.js",
    "whole.js",
    "write.js",
];

/// Nothing comes from anywhere else, and nothing is run that is not a file of the page. Styles of single elements are how
/// pictures say their size.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    let mut response = send(&FILES[0], &headers);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// A file that belongs to it.
pub(crate) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Refusal> {
    let found = FILES.iter().skip(1).find(|file| file.name == name);
    Ok(send(found.ok_or_else(Refusal::no_route)?, &headers))
}

fn send(file: &File, headers: &HeaderMap) -> Response {
    let kind = match file.name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    };
    // A browser asks again every time, and gets the file again only if the program has changed.
    let tag = format!("\"{:016x}\"", fnv(file.text));
    let caching = [(ETAG, tag.as_str()), (CACHE_CONTROL, "no-cache")];
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(CONTENT_TYPE, kind)], file.text).into_response()
}

/// A number that tells texts apart (Fowler, Noll and Vo).
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_asked_for_is_there_and_nothing_comes_from_elsewhere() {
        for file in FILES {
            let names = FILES.iter().map(|file| file.name).collect::<Vec<_>>();
            for word in file.text.split(['"', '`']) {
                if let Some(name) = word.strip_prefix("./").or(word.strip_prefix("page/")) {
                    assert!(names.contains(&name), "{}: {name}", file.name);
                }
            }
            let allowed = ["http://www.w3.org/2000/svg"];
            for (at, _) in file.text.match_indices("://") {
                let start = file.text[..at].rfind(['"', '\'', '(', ' ']).map_or(0, |at| at + 1);
                let rest = &file.text[start..];
                let address = &rest[..rest.find(['"', '\'', ')', ' ']).unwrap_or(rest.len())];
                assert!(allowed.contains(&address), "{}: {address}", file.name);
            }
        }
    }
}
