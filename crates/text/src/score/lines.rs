//! A file of segments, one on each line.

use super::Error;
use std::path::{Path, PathBuf};

/// The text of a file. Lines end with `\n` and with nothing else, as sacreBLEU has it: a lone `\r` is a
/// space, and the separators of Unicode end no line.
#[derive(Debug, Clone)]
pub struct Lines {
    path: PathBuf,
    text: String,
}

impl Lines {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Lines, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        Lines::new(path, bytes)
    }

    /// Takes the bytes that came from `path`.
    pub fn new(path: &Path, bytes: Vec<u8>) -> Result<Lines, Error> {
        let path = path.to_owned();
        if bytes.is_empty() {
            return Err(Error::Empty { path });
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Lines { path, text }),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
                Err(Error::Encoding { path, line })
            }
        }
    }

    /// The segments, without the ends of their lines.
    pub fn segments(&self) -> Vec<&str> {
        let text = self.text.strip_suffix('\n').unwrap_or(&self.text);
        text.split('\n').collect()
    }

    /// Checks that a reference has as many lines as this hypothesis.
    pub fn belongs_to(&self, reference: &Lines) -> Result<(), Error> {
        let (lines, other_lines) = (self.segments().len(), reference.segments().len());
        if lines == other_lines {
            return Ok(());
        }
        Err(Error::LineCounts { path: self.path.clone(), lines, other: reference.path.clone(), other_lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Result<Lines, Error> {
        Lines::new(Path::new("a.txt"), bytes.to_vec())
    }

    #[test]
    fn only_a_newline_ends_a_line_and_the_last_one_may_lack_it() {
        for text in ["a\rb\n\u{2028}\u{85}\n\nlast\n", "a\rb\n\u{2028}\u{85}\n\nlast"] {
            assert_eq!(lines(text.as_bytes()).unwrap().segments(), ["a\rb", "\u{2028}\u{85}", "", "last"]);
        }
        assert_eq!(lines(b"\n").unwrap().segments(), [""]);
    }

    #[test]
    fn a_broken_line_is_named_by_its_number() {
        let error = lines(b"good\n\nb\xe9d\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.txt: line 3 is not UTF-8: convert it first, for example with `iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW`"
        );
    }

    #[test]
    fn an_empty_file_has_nothing_to_score() {
        assert!(matches!(lines(b""), Err(Error::Empty { .. })));
    }
}
