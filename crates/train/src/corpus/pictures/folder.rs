//! A folder with a folder for each class.

use super::{Found, LabelledPicture, Source, note, wrong};
use crate::corpus::Error;
use std::path::{Path, PathBuf};

/// What the names of pictures end with.
const ENDINGS: [&str; 4] = ["png", "jpg", "jpeg", "webp"];

pub(super) fn read(root: &Path, checksum: &mut crc32fast::Hasher) -> Result<Found, Error> {
    let (mut pictures, mut bytes) = (Vec::new(), 0);
    for class in entries(root)?.into_iter().filter(|entry| entry.is_dir()) {
        let name = class.file_name().unwrap_or_default();
        let Some(label) = name.to_str() else {
            return Err(wrong(&class, "has a name that is not UTF-8, which no label can be"));
        };
        for file in entries(&class)?.into_iter().filter(|entry| is_picture(entry)) {
            bytes += note(&file, label, checksum)?;
            pictures.push(LabelledPicture { source: Source::File(file), label: label.to_owned() });
        }
    }
    if pictures.is_empty() {
        return Err(wrong(root, "has no folders with pictures: put a folder for each class there"));
    }
    Ok(Found { pictures, size: None, bytes })
}

/// What is in a folder, by name, but for what is hidden.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::File { path: folder.to_owned(), source };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

fn is_picture(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&&*ending)) && path.is_file()
}
