//! An output that is written line by line, so that an interrupted translation can go on (`--resume`).
//!
//! `big.de` is written as `big.de.part` and gets its name when it is complete. Each of its whole lines belongs to a line of the input,
//! in order: as many are there, so many need not be translated again.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write, stderr};
use std::path::{Path, PathBuf};

/// The file on its way.
pub(super) struct Partial {
    output: PathBuf,
    path: PathBuf,
    pub(super) file: File,
    /// The lines that it has.
    pub(super) lines: usize,
}

impl Partial {
    /// Whether an output is complete; prints a message if it is.
    pub(super) fn is_complete(output: &Path) -> bool {
        let is_complete = output.exists() && !path_of(output).exists();
        if is_complete {
            // The exit code reports success even if stderr is closed.
            let _ = writeln!(stderr(), "attentive: {} is complete", output.display());
        }
        is_complete
    }

    /// Opens what there is of an output, or begins it.
    pub(super) fn open(output: &Path) -> Result<Partial, Error> {
        let path = path_of(output);
        let failed = failed(&path);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = options.map_err(&failed)?;
        let (lines, bytes) = whole_lines(&file).map_err(&failed)?;
        // A line that was being written is written again.
        file.set_len(bytes).map_err(&failed)?;
        file.seek(SeekFrom::Start(bytes)).map_err(&failed)?;
        Ok(Partial { output: output.to_owned(), path, file, lines })
    }

    /// Gives it its name.
    pub(super) fn complete(self) -> Result<(), Error> {
        self.file.sync_all().map_err(failed(&self.path))?;
        std::fs::rename(&self.path, &self.output).map_err(failed(&self.output))
    }
}

/// Where an output is while it is on its way.
fn path_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| attentive_model::Error::File { path: path.clone(), source }.into()
}

/// How many lines a file has that are whole, and how many bytes these are.
fn whole_lines(file: &File) -> std::io::Result<(usize, u64)> {
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let (mut lines, mut bytes, mut read) = (0, 0, 0);
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            return Ok((lines, bytes));
        }
        for (at, _) in part.iter().enumerate().filter(|&(_, &byte)| byte == b'\n') {
            lines += 1;
            bytes = read + at as u64 + 1;
        }
        let length = part.len();
        read += length as u64;
        reader.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_stay_and_the_rest_is_written_again() {
        let output = std::env::temp_dir().join(format!("attentive-partial-{}", std::process::id()));
        let part = output.with_extension("part");
        std::fs::write(&part, "eins\n\nzw").unwrap();
        assert!(!Partial::is_complete(&output));
        let mut partial = Partial::open(&output).unwrap();
        assert_eq!(partial.lines, 2);
        partial.file.write_all(b"zwei\n").unwrap();
        partial.complete().unwrap();
        assert!(Partial::is_complete(&output));
        let text = std::fs::read_to_string(&output).unwrap();
        std::fs::remove_file(&output).unwrap();
        assert_eq!((text.as_str(), part.exists()), ("eins\n\nzwei\n", false));
    }
}
