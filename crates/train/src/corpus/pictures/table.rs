//! A table of paths and labels.

use super::{Found, LabelledPicture, Source, note};
use crate::corpus::Error;
use std::path::Path;

pub(super) fn read(path: &Path, checksum: &mut crc32fast::Hasher) -> Result<Found, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let text = String::from_utf8(std::fs::read(path).map_err(failed)?).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Error::Encoding { path: path.to_owned(), line }
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let (mut pictures, mut bytes) = (Vec::new(), 0);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let wrong = |problem: &str| Error::Line {
            path: path.to_owned(),
            line: number + 1,
            problem: problem.to_owned(),
        };
        let fields: Vec<&str> = line.split('\t').collect();
        let &[file, label] = &fields[..] else {
            return Err(wrong(
                "must have two fields with a tab between them: the path of a picture, and its label",
            ));
        };
        if label.is_empty() {
            return Err(wrong("has an empty label: give it one, or remove the line"));
        }
        let file = folder.join(file);
        bytes += note(&file, label, checksum)?;
        pictures.push(LabelledPicture { source: Source::File(file), label: label.to_owned() });
    }
    Ok(Found { pictures, size: None, bytes })
}
