//! Whether a file is the one that the Hub means.
//!
//! The Hub names each file by a hash, its ETag. A large file is named by its SHA-256, 64 digits. A small one is named by its hash in git,
//! 40 digits: the SHA-1 of `blob `, its size, a zero byte and its contents.

use crate::error::Error;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The hash that names a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Etag(String);

impl Etag {
    /// Reads the value of a header, `"…"` or `W/"…"`; none if it is no hash.
    pub fn parse(header: &str) -> Option<Etag> {
        let header = header.trim();
        let text = header.strip_prefix("W/").unwrap_or(header).trim_matches('"');
        let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Etag(text.to_ascii_lowercase()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What kind of hash it is.
    pub fn kind(&self) -> &'static str {
        if self.is_sha256() { "SHA-256" } else { "git hash" }
    }

    fn is_sha256(&self) -> bool {
        self.0.len() == 64
    }

    /// The hash that a file has, of the same kind.
    pub fn of_file(&self, path: &Path) -> Result<Etag, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let mut context = Context::new(if self.is_sha256() { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY });
        if !self.is_sha256() {
            let size = file.metadata().map_err(failed)?.len();
            context.update(format!("blob {size}\0").as_bytes());
        }
        let mut buffer = vec![0; 1 << 18];
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => break,
                count => context.update(&buffer[..count]),
            }
        }
        let mut text = String::new();
        for byte in context.finish().as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Etag(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_both_kinds_are_read_and_others_are_not() {
        let git = "d670460b4b4aece5915caf5c68d12f560a9fe3e4";
        for header in [
            format!("\"{git}\""),
            format!("W/\"{git}\""),
            format!(" {git} "),
            format!("\"{}\"", git.to_uppercase()),
        ] {
            assert_eq!(Etag::parse(&header).unwrap().as_str(), git, "{header}");
        }
        for header in ["", "\"\"", "\"abc\"", "../../x", &format!("\"{}\"", "g".repeat(40)), &"0".repeat(41)]
        {
            assert_eq!(Etag::parse(header), None, "{header}");
        }
    }

    #[test]
    fn hashes_are_those_of_git_and_sha256sum() {
        let path = std::env::temp_dir().join(format!("attentive-hub-digest-{}", std::process::id()));
        std::fs::write(&path, "test content\n").unwrap();
        // printf 'test content\n' | git hash-object --stdin; printf 'test content\n' | sha256sum
        for text in [
            "d670460b4b4aece5915caf5c68d12f560a9fe3e4",
            "a1fff0ffefb9eace7230c24e50731f0a91c62f9cefdfe77121c2f607125dffae",
        ] {
            let etag = Etag::parse(text).unwrap();
            assert_eq!(etag.of_file(&path).unwrap(), etag);
        }
        std::fs::remove_file(path).unwrap();
    }
}
