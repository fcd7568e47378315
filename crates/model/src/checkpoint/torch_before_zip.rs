//! `pytorch_model.bin` as it was before PyTorch 1.6: pickles one after the other, and behind them the storages.
//!
//! The pickles are a magic number, a version, what the machine was like, the state dict, and the keys of the storages in
//! the order in which they follow. Each storage is the count of its numbers in eight bytes, and then the numbers, raw. There are no
//! checksums.

use super::entry::Entry;
use super::{pickle, torch, zip};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom};

/// The magic number 0x1950a86a20f9469cfc6c and the version 1001.
const BEGIN: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.";
/// The bytes of a count.
const COUNT: u64 = 8;

/// Whether a file begins as one of these does.
pub(super) fn is_it(file: &mut (impl Read + Seek)) -> bool {
    zip::read(file, 0, BEGIN.len() as u64).is_ok_and(|start| start == BEGIN)
}

/// The tensors by name.
pub(super) fn entries(file: &mut (impl Read + Seek)) -> Result<BTreeMap<String, Entry>, String> {
    let length = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let pickles = zip::read(file, 0, length.min(pickle::LONGEST))?;
    let mut at = BEGIN.len();
    let (is_little, read) = pickle::flag(&pickles[at..], "little_endian")?;
    if is_little == Some(false) {
        return Err("its byte order is not little-endian, which is not supported".to_owned());
    }
    at += read;
    let (tensors, read) = pickle::tensors(&pickles[at..])?;
    at += read;
    let (keys, read) = pickle::texts(&pickles[at..])?;
    at += read;
    // Only the description of a tensor says how wide the numbers of its storage are.
    let sizes: HashMap<&str, u64> =
        tensors.iter().map(|(_, tensor)| (tensor.storage, tensor.dtype.bitsize() as u64 / 8)).collect();
    let (mut start, mut storages) = (at as u64, HashMap::new());
    for key in keys {
        let count = zip::read(file, start, COUNT).map_err(|problem| format!("not complete: {problem}"))?;
        let count = u64::from_le_bytes(count.try_into().expect("eight bytes"));
        let size = *sizes.get(key).ok_or("it has a storage that no tensor lies in")?;
        start += COUNT;
        let bytes = count.checked_mul(size).filter(|bytes| *bytes <= length - start);
        let bytes = bytes.ok_or("not complete: a storage reaches beyond its end")?;
        storages.insert(key, (start, bytes));
        start += bytes;
    }
    let mut entries = BTreeMap::new();
    for (name, tensor) in tensors {
        let storage = storages.get(tensor.storage);
        let &(start, bytes) = storage.ok_or_else(|| format!("the storage of `{name}` is missing"))?;
        let entry = torch::place(&tensor, start, bytes).map_err(|problem| format!("`{name}` {problem}"))?;
        entries.insert(name.to_owned(), entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Whatever is cut off, and whichever bit is turned: the file is read, or it is refused.
    #[test]
    fn no_damage_makes_it_panic_or_read_beyond_the_end() {
        let mut bytes = include_bytes!("../../../../golden/torch_before_zip.bin").to_vec();
        let read = |bytes: &[u8]| {
            let entries = entries(&mut Cursor::new(bytes))?;
            for entry in entries.values() {
                assert!(entry.start + entry.length as u64 <= bytes.len() as u64, "{entry:?}");
            }
            Ok::<_, String>(entries.len())
        };
        assert!(is_it(&mut Cursor::new(&bytes[..])));
        let all = read(&bytes).unwrap();
        assert!(all > 3);
        for length in BEGIN.len()..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
        for bit in 8 * BEGIN.len()..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            drop(read(&bytes));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
