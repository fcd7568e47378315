//! The directory of a ZIP archive whose entries are stored as they are, as PyTorch writes them.
//!
//! An archive ends with a record that says where the central directory lies; the directory has the name, the
//! size, the checksum and the place of every entry. Places and sizes that need more than 32 bits stand in a
//! second record ("ZIP64"), which PyTorch always writes. Compressed or encrypted entries are refused.

use super::bytes::Bytes;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// An entry: `length` bytes from `start` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub start: u64,
    pub length: u64,
    /// CRC-32 of the bytes.
    pub checksum: u32,
}

/// The longest comment that an archive may end with, and the record before it.
const LONGEST_END: u64 = 0xFFFF + END_LENGTH;
const END_LENGTH: u64 = 22;
const LOCATOR_LENGTH: u64 = 20;
const END64_LENGTH: u64 = 56;
const LOCAL_LENGTH: u64 = 30;
/// The largest directory that is read: some 100,000 entries.
const LARGEST_DIRECTORY: u64 = 1 << 24;

const END: [u8; 4] = *b"PK\x05\x06";
const LOCATOR: [u8; 4] = *b"PK\x06\x07";
const END64: [u8; 4] = *b"PK\x06\x06";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";

/// All entries by name.
pub(super) fn entries(file: &mut (impl Read + Seek)) -> Result<HashMap<String, Entry>, String> {
    let length = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let (start, size) = directory(file, length)?;
    let directory = read(file, start, size)?;
    let mut bytes = Bytes::new(&directory);
    let mut entries = HashMap::new();
    while bytes.at() < directory.len() {
        let record = Record::read(&mut bytes).ok_or("its directory is damaged")?;
        let name = String::from_utf8_lossy(record.name).into_owned();
        if record.method != 0 || record.encrypted || record.stored != record.length {
            return Err(format!("its entry `{name}` is compressed or encrypted, which is not supported"));
        }
        let start = record.start(file).ok_or_else(|| format!("its entry `{name}` is damaged"))?;
        if start.checked_add(record.length).is_none_or(|end| end > length) {
            return Err(format!("its entry `{name}` reaches beyond the end of the file"));
        }
        entries.insert(name, Entry { start, length: record.length, checksum: record.checksum });
    }
    Ok(entries)
}

/// Bytes of the file, of which there are not too many.
pub(super) fn read(file: &mut (impl Read + Seek), start: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| "it is too large")?];
    let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut bytes));
    read.map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => error.to_string(),
    })?;
    Ok(bytes)
}

/// Where the central directory lies, and its size.
fn directory(file: &mut (impl Read + Seek), length: u64) -> Result<(u64, u64), String> {
    const CUT: &str = "its end is missing: the file is incomplete";
    let tail_start = length.saturating_sub(LONGEST_END);
    let tail = read(file, tail_start, length - tail_start)?;
    let end = tail.windows(END.len()).rposition(|window| window == END).ok_or(CUT)?;
    let (mut size, mut start) = end_record(&tail[end..]).ok_or(CUT)?;
    let end = tail_start + end as u64;
    if let Some(second) = end.checked_sub(LOCATOR_LENGTH) {
        let locator = read(file, second, LOCATOR_LENGTH)?;
        if locator.starts_with(&LOCATOR) {
            (size, start) = long_end(file, &locator, length).ok_or("its ZIP64 directory is damaged")?;
        }
    }
    if size > LARGEST_DIRECTORY || start.checked_add(size).is_none_or(|end| end > length) {
        return Err("its directory reaches beyond the end of the file".to_owned());
    }
    Ok((start, size))
}

/// The size of the directory and where it begins.
fn end_record(record: &[u8]) -> Option<(u64, u64)> {
    let mut bytes = Bytes::new(record);
    bytes.take(12)?;
    let (size, start) = (bytes.u32()?.into(), bytes.u32()?.into());
    let comment = bytes.u16()?;
    bytes.take(comment.into())?;
    Some((size, start))
}

/// The size of the directory and where it begins, in 64 bits.
fn long_end(file: &mut (impl Read + Seek), locator: &[u8], length: u64) -> Option<(u64, u64)> {
    let mut bytes = Bytes::new(locator);
    bytes.take(8)?;
    let start = bytes.u64()?;
    if start.checked_add(END64_LENGTH)? > length {
        return None;
    }
    let record = read(file, start, END64_LENGTH).ok()?;
    let mut bytes = Bytes::new(record.strip_prefix(&END64)?);
    bytes.take(36)?;
    Some((bytes.u64()?, bytes.u64()?))
}

/// What the central directory says of an entry.
struct Record<'a> {
    name: &'a [u8],
    encrypted: bool,
    method: u16,
    checksum: u32,
    stored: u64,
    length: u64,
    header: u64,
}

impl<'a> Record<'a> {
    fn read(bytes: &mut Bytes<'a>) -> Option<Record<'a>> {
        if bytes.take(4)? != CENTRAL {
            return None;
        }
        bytes.take(4)?;
        let (flags, method) = (bytes.u16()?, bytes.u16()?);
        bytes.take(4)?;
        let (checksum, stored, length) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
        let [name, extra, comment] = [bytes.u16()?, bytes.u16()?, bytes.u16()?].map(usize::from);
        bytes.take(8)?;
        let header = bytes.u32()?;
        let (name, extra) = (bytes.take(name)?, bytes.take(extra)?);
        bytes.take(comment)?;
        // Numbers that do not fit stand in the extra field, in this order, those that do not alone.
        let mut long = Bytes::new(long_numbers(extra).unwrap_or_default());
        let mut number = |short: u32| if short == u32::MAX { long.u64() } else { Some(short.into()) };
        let (length, stored, header) = (number(length)?, number(stored)?, number(header)?);
        Some(Record { name, encrypted: flags & 1 != 0, method, checksum, stored, length, header })
    }

    /// Where its bytes begin: behind a header that repeats the name.
    fn start(&self, file: &mut (impl Read + Seek)) -> Option<u64> {
        let header = read(file, self.header, LOCAL_LENGTH).ok()?;
        let mut bytes = Bytes::new(header.strip_prefix(&LOCAL)?);
        bytes.take(22)?;
        let (name, extra) = (u64::from(bytes.u16()?), u64::from(bytes.u16()?));
        self.header.checked_add(LOCAL_LENGTH + name + extra)
    }
}

/// The field of an entry's extra fields that has the numbers of ZIP64.
fn long_numbers(extra: &[u8]) -> Option<&[u8]> {
    const ZIP64: u16 = 1;
    let mut bytes = Bytes::new(extra);
    loop {
        let (kind, length) = (bytes.u16()?, bytes.u16()?);
        let field = bytes.take(length.into())?;
        if kind == ZIP64 {
            return Some(field);
        }
    }
}
