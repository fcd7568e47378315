//! Files, whole: read at once, written beside the old one before they take its place.

use super::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// Reads a text whose lines are all UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(read(path)?).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        Error::Utf8 { path: path.to_owned(), line }
    })
}

pub(crate) fn read_json(path: &Path) -> Result<serde_json::Value, Error> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| Error::format(path, format!("not JSON: {error}")))
}

/// Writes a file under another name, waits for the disk, and renames it.
pub(crate) fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|source| {
        // Whatever else is wrong, no half of a file is left behind.
        let _ = std::fs::remove_file(&beside);
        Error::File { path: path.to_owned(), source }
    })
}

pub(crate) fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), Error> {
    write(path, format!("{value:#}\n").as_bytes())
}

/// Makes a folder and those above it.
pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|source| Error::File { path: path.to_owned(), source })
}
