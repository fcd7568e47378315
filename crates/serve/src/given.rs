//! A picture as a request brings it: the bytes of a file, or a text that has them in base64.

use axum::body::Bytes;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;

/// A picture that was not read yet.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    File(Bytes),
    /// `data:image/png;base64,…`, or base64 alone.
    Text(String),
}

/// Base64 with its padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const LINE_ENDS: [char; 2] = ['\r', '\n'];

/// Whether a text says of itself that it is a picture.
pub(crate) fn is_picture(text: &str) -> bool {
    const BEGINNING: &str = "data:image/";
    text.get(..BEGINNING.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(BEGINNING))
}

impl Given {
    /// The bytes of the file, or what is wrong with the text.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, &'static str> {
        let text = match self {
            Given::File(bytes) => return Ok(Cow::Borrowed(bytes)),
            Given::Text(text) => text.trim(),
        };
        let encoded = match text.split_once(',') {
            Some((head, encoded))
                if head.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("data:")) =>
            {
                if !head.to_ascii_lowercase().ends_with(";base64") {
                    return Err("is a data URL without base64: write `data:image/png;base64,…`");
                }
                encoded
            }
            _ if text.contains("://") => {
                return Err("is an address, which the server does not open: send the picture itself");
            }
            _ => text,
        };
        // Programs break lines.
        let encoded: Cow<str> = match encoded.contains(LINE_ENDS) {
            true => Cow::Owned(encoded.split(LINE_ENDS).collect()),
            false => Cow::Borrowed(encoded),
        };
        match BASE64.decode(&*encoded) {
            Ok(bytes) => Ok(Cow::Owned(bytes)),
            Err(_) => Err("is not base64: the model reads pictures, and not texts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u8>, &'static str> {
        Given::Text(text.to_owned()).bytes().map(Cow::into_owned)
    }

    #[test]
    fn base64_is_read_with_and_without_what_stands_before_it() {
        for text in [
            "data:image/png;base64,AQL/",
            "DATA:image/png;BASE64,AQL/",
            " AQL/\n",
            "AQ\r\nL/",
            "data:;base64,AQL/",
        ] {
            assert_eq!(read(text), Ok(vec![1, 2, 255]), "{text}");
        }
        assert_eq!([read("AQ=="), read("AQ")], [Ok(vec![1]), Ok(vec![1])]);
        assert_eq!(&*Given::File(Bytes::from_static(b"x")).bytes().unwrap(), b"x");
    }

    #[test]
    fn other_texts_are_refused_with_what_would_be_right() {
        for (text, expected) in [
            ("https://example.org/cat.png", "send the picture itself"),
            ("data:image/png,abc", "without base64"),
            ("a dog", "reads pictures, and not texts"),
            ("data:image/png;base64,???", "is not base64"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
        assert!(
            is_picture("data:image/png;base64,")
                && is_picture("Data:Image/x")
                && !is_picture("data:")
                && !is_picture("ä")
        );
    }
}
