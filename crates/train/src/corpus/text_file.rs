//! A file of lines that stays on the disk, and an index of where its lines begin.

use super::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes between two wanted lines that are read along: cheaper than to go there.
const READ_OVER: u64 = 4096;
/// Bytes that are read in one go, if no line is longer.
const RUN: u64 = 1 << 20;
/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;
/// Bytes of the longest line, what ends it included: what is longer is no sentence, and memory has an end.
const LONGEST: usize = 1 << 20;

/// An indexed file.
#[derive(Debug)]
pub(super) struct TextFile {
    /// The path that the user gave. Errors in the text name it.
    named: PathBuf,
    /// The file that is read: the same, or the unpacked one. Errors of the system name it.
    path: PathBuf,
    /// Where each line begins, and the end of the last.
    begins: Vec<u64>,
    /// CRC-32 of all bytes.
    checksum: u32,
}

impl TextFile {
    /// Reads the file once: every line must be UTF-8, and `check` must have nothing to say about it.
    pub(super) fn index(
        named: &Path,
        path: PathBuf,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<TextFile, Error> {
        let (mut begins, mut checksum) = (vec![0], crc32fast::Hasher::new());
        each_line(named, &path, |number, bytes, line| {
            checksum.update(bytes);
            check(line).map_err(|problem| Error::Line { path: named.to_owned(), line: number, problem })?;
            begins.push(begins[number - 1] + bytes.len() as u64);
            Ok(())
        })?;
        begins.shrink_to_fit();
        Ok(TextFile { named: named.to_owned(), path, begins, checksum: checksum.finalize() })
    }

    /// What the user named.
    pub(super) fn named(&self) -> &Path {
        &self.named
    }

    pub(super) fn lines(&self) -> usize {
        self.begins.len() - 1
    }

    pub(super) fn bytes(&self) -> u64 {
        self.begins[self.lines()]
    }

    pub(super) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Reads some lines, given by their numbers from zero in ascending order.
    pub(super) fn read(&self, lines: &[usize]) -> Result<Texts, Error> {
        let mut file = self.open()?;
        let mut texts = Texts { text: String::new(), ranges: Vec::with_capacity(lines.len()) };
        let mut rest = lines;
        while let Some(&first) = rest.first() {
            let begin = self.begins[first];
            let goes_on = |two: &&[usize]| {
                let (between, end) = (self.begins[two[0] + 1]..self.begins[two[1]], self.begins[two[1] + 1]);
                between.end.saturating_sub(between.start) <= READ_OVER && end - begin <= RUN
            };
            let (run, after) = rest.split_at(1 + rest.windows(2).take_while(goes_on).count());
            rest = after;
            let piece = self.piece(&mut file, begin, self.begins[run[run.len() - 1] + 1])?;
            for &line in run {
                let within = |at: u64| (at - begin) as usize;
                let bytes = within(self.begins[line])..within(self.begins[line + 1]);
                // It was UTF-8 when the file was indexed.
                let text = piece.get(bytes).ok_or_else(|| self.changed())?;
                let start = texts.text.len();
                texts.text.push_str(without_end(text));
                texts.ranges.push(start..texts.text.len());
            }
        }
        Ok(texts)
    }

    fn open(&self) -> Result<File, Error> {
        let failed = |source| Error::File { path: self.path.clone(), source };
        let file = File::open(&self.path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() != self.bytes() {
            return Err(self.changed());
        }
        Ok(file)
    }

    fn piece(&self, file: &mut File, begin: u64, end: u64) -> Result<String, Error> {
        let failed = |source| Error::File { path: self.path.clone(), source };
        let mut bytes = vec![0; (end - begin) as usize];
        file.seek(SeekFrom::Start(begin)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        String::from_utf8(bytes).map_err(|_| self.changed())
    }

    fn changed(&self) -> Error {
        Error::Changed { path: self.named.clone() }
    }
}

/// Some lines of a file.
pub(super) struct Texts {
    text: String,
    ranges: Vec<std::ops::Range<usize>>,
}

impl Texts {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|range| &self.text[range.clone()])
    }
}

/// Shows each line of a file: its number from one, its bytes, and its text without what ends it. A line that is too long or not
/// UTF-8 is an error of the file that the user `named`.
pub(super) fn each_line(
    named: &Path,
    path: &Path,
    mut show: impl FnMut(usize, &[u8], &str) -> Result<(), Error>,
) -> Result<(), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let mut reader = BufReader::with_capacity(BUFFER, File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let bytes = reader.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line).map_err(failed)?;
        if bytes == 0 {
            break;
        }
        if bytes > LONGEST {
            let problem = "is longer than 1 MiB: a line must be a sentence".to_owned();
            return Err(Error::Line { path: named.to_owned(), line: number, problem });
        }
        let text =
            str::from_utf8(&line).map_err(|_| Error::Encoding { path: named.to_owned(), line: number })?;
        show(number, &line, without_end(text))?;
    }
    Ok(())
}

/// A line without what ends it, on any system.
fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}
