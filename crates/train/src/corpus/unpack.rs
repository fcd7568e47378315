//! Compressed files, unpacked once to a folder.
//!
//! Lines are read in any order, which a compressed file does not allow. What it was unpacked to is named
//! after the file, its size and its time, so that it is found again by the next run, and not when the file is
//! another.

use super::Error;
use attentive_model::checkpoint::Staged;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes that are read and written at once.
const BUFFER: usize = 1 << 18;

/// The folder that files are unpacked to, and what was put there.
pub(super) struct Cache<'a> {
    folder: &'a Path,
    folder_is_new: bool,
    made: Vec<PathBuf>,
}

impl<'a> Cache<'a> {
    /// The folder is made when it is needed.
    pub(super) fn new(folder: &'a Path) -> Cache<'a> {
        Cache { folder, folder_is_new: !folder.exists(), made: Vec::new() }
    }

    /// The file itself, or what it was unpacked to if it is compressed.
    pub(super) fn unpacked(&mut self, path: &Path) -> Result<PathBuf, Error> {
        let Some(format) = Format::of(path) else { return Ok(path.to_owned()) };
        let failed = |source| Error::File { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let place = self.folder.join(place(path, &file.metadata().map_err(failed)?));
        if place.exists() {
            return Ok(place);
        }
        std::fs::create_dir_all(self.folder)
            .map_err(|source| Error::File { path: self.folder.to_owned(), source })?;
        let reader = BufReader::with_capacity(BUFFER, file);
        let staged = Staged::with(&place, |out| match format {
            Format::Gzip => copy(MultiGzDecoder::new(reader), path, out, &place),
            Format::Zstandard => frames(reader, path, out, &place),
        })?;
        staged.commit()?;
        self.made.push(place.clone());
        Ok(place)
    }

    /// Takes back what was made: a corpus that is refused leaves nothing behind.
    pub(super) fn undo(self) {
        self.made.iter().for_each(|file| drop(std::fs::remove_file(file)));
        if self.folder_is_new {
            // A file that another process has put there since then stays.
            let _ = std::fs::remove_dir(self.folder);
        }
    }
}

#[derive(Clone, Copy)]
enum Format {
    Gzip,
    Zstandard,
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "gz" => Some(Format::Gzip),
            "zst" => Some(Format::Zstandard),
            _ => None,
        }
    }
}

fn place(path: &Path, metadata: &Metadata) -> String {
    let mut hasher = DefaultHasher::new();
    let path_anywhere = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    (path_anywhere, metadata.len(), metadata.modified().ok()).hash(&mut hasher);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{name}.{:016x}", hasher.finish())
}

/// A stream of zstandard is one frame after the other, some of which hold no text.
fn frames(mut reader: impl BufRead, path: &Path, out: &mut File, place: &Path) -> Result<(), Error> {
    let damaged = || Error::Damaged { path: path.to_owned() };
    let mut decoder = FrameDecoder::new();
    let mut any = false;
    while !any || !reader.fill_buf().map_err(|error| unreadable(error, path))?.is_empty() {
        any = true;
        let mut frame = match StreamingDecoder::new_with_decoder(&mut reader, &mut decoder) {
            Ok(frame) => frame,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let skipped = std::io::copy(&mut (&mut reader).take(length.into()), &mut std::io::sink());
                match skipped {
                    Ok(bytes) if bytes == u64::from(length) => continue,
                    _ => return Err(damaged()),
                }
            }
            Err(_) => return Err(damaged()),
        };
        copy(&mut frame, path, out, place)?;
        let (said, found) = (decoder.get_checksum_from_data(), decoder.get_calculated_checksum());
        if said.is_some() && said != found {
            return Err(damaged());
        }
    }
    Ok(())
}

/// Copies everything; whether reading or writing failed decides whose fault it is.
fn copy(mut from: impl Read, path: &Path, out: &mut File, place: &Path) -> Result<(), Error> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let bytes = from.read(&mut buffer).map_err(|error| unreadable(error, path))?;
        if bytes == 0 {
            return Ok(());
        }
        out.write_all(&buffer[..bytes]).map_err(|source| Error::File { path: place.to_owned(), source })?;
    }
}

/// Decoders call what they do not understand invalid, an unexpected end, or something other; the rest is the
/// system's.
fn unreadable(error: std::io::Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof | ErrorKind::Other => {
            Error::Damaged { path: path.to_owned() }
        }
        _ => Error::File { path: path.to_owned(), source: error },
    }
}
