//! `pytorch_model.bin`: a ZIP archive with a pickled state dict and the storages that its tensors lie in.
//!
//! `<name>/data.pkl` says which tensors there are, `<name>/data/<key>` has the numbers of a storage, raw.
//! Before any of them is read, the checksums of all of them are held against their bytes. Before PyTorch 1.6 it was no
//! archive: [`before_zip`](super::torch_before_zip).

use super::entry::Entry;
use super::pickle::{self, Tensor};
use super::{torch_before_zip, zip};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Seek, SeekFrom};

/// The tensors of an archive by name.
pub(super) fn entries(file: &mut (impl Read + Seek)) -> Result<BTreeMap<String, Entry>, String> {
    if torch_before_zip::is_it(file) {
        return torch_before_zip::entries(file);
    }
    let archive = zip::entries(file)
        .map_err(|problem| format!("not a complete PyTorch file (a ZIP archive): {problem}"))?;
    let folder = archive.keys().find_map(|name| name.strip_suffix("data.pkl"));
    let folder = folder.ok_or("not a PyTorch file: the archive has no data.pkl")?;
    big_endian_is_refused(file, &archive, folder)?;
    let pickle = archive[&format!("{folder}data.pkl")];
    if pickle.length > pickle::LONGEST {
        return Err(format!("its data.pkl has {} bytes, too many for a model", pickle.length));
    }
    check(file, &pickle).map_err(|problem| format!("its data.pkl is damaged: {problem}"))?;
    let pickle = zip::read(file, pickle.start, pickle.length)?;
    let mut entries = BTreeMap::new();
    let mut checked = BTreeSet::new();
    for (name, tensor) in pickle::tensors(&pickle)?.0 {
        let storage = archive.get(&format!("{folder}data/{}", tensor.storage));
        let storage = storage.ok_or_else(|| format!("the storage of `{name}` is missing"))?;
        if checked.insert(storage.start) {
            check(file, storage)
                .map_err(|problem| format!("the numbers of `{name}` are damaged: {problem}"))?;
        }
        let entry =
            place(&tensor, storage.start, storage.length).map_err(|problem| format!("`{name}` {problem}"))?;
        entries.insert(name.to_owned(), entry);
    }
    Ok(entries)
}

fn big_endian_is_refused(
    file: &mut (impl Read + Seek),
    archive: &HashMap<String, zip::Entry>,
    folder: &str,
) -> Result<(), String> {
    let Some(order) = archive.get(&format!("{folder}byteorder")) else { return Ok(()) };
    match zip::read(file, order.start, order.length.min(8))?.as_slice() {
        b"little" => Ok(()),
        _ => Err("its byte order is not little-endian, which is not supported".to_owned()),
    }
}

/// Holds the bytes of an entry against their checksum.
fn check(file: &mut (impl Read + Seek), storage: &zip::Entry) -> Result<(), String> {
    file.seek(SeekFrom::Start(storage.start)).map_err(|error| error.to_string())?;
    let (mut hasher, mut left) = (crc32fast::Hasher::new(), storage.length);
    let mut buffer = vec![0; left.min(1 << 20) as usize];
    while left > 0 {
        let piece = &mut buffer[..left.min(1 << 20) as usize];
        file.read_exact(piece).map_err(|error| error.to_string())?;
        hasher.update(piece);
        left -= piece.len() as u64;
    }
    match hasher.finalize() {
        sum if sum == storage.checksum => Ok(()),
        sum => Err(format!("the checksum is {sum:08x}, but should be {:08x}", storage.checksum)),
    }
}

/// Where the numbers of a tensor lie in the file, whose storage has `length` bytes from `start` on.
pub(super) fn place(tensor: &Tensor, start: u64, length: u64) -> Result<Entry, String> {
    let size = tensor.dtype.bitsize() as u64 / 8;
    if tensor.numbers.checked_mul(size) != Some(length) {
        return Err(format!(
            "has a storage of {length} bytes, which should have {} numbers of {size} bytes",
            tensor.numbers
        ));
    }
    let shape = || format!("has shape {:?}", tensor.shape);
    let wrong = || format!("{}, which does not fit into its storage of {} numbers", shape(), tensor.numbers);
    if tensor.shape.len() != tensor.strides.len() {
        return Err(format!("{} and {} strides", shape(), tensor.strides.len()));
    }
    let numbers = tensor.shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
    // A tensor may repeat numbers of its storage, but no weights do, and memory for what is repeated has no
    // bound.
    let numbers = numbers.filter(|&numbers| numbers <= tensor.numbers).ok_or_else(wrong)?;
    let strided = || tensor.shape.iter().zip(&tensor.strides);
    let reach = strided().try_fold(1u64, |reach, (&size, &stride)| {
        reach.checked_add(size.saturating_sub(1).checked_mul(stride)?)
    });
    let reach = if numbers == 0 { 0 } else { reach.ok_or_else(wrong)? };
    if tensor.offset.checked_add(reach).is_none_or(|end| end > tensor.numbers) {
        return Err(wrong());
    }
    // All of these are at most the size of the file now.
    let whole = |size: &u64| usize::try_from(*size).map_err(|_| wrong());
    let (mut dense, mut in_order) = (1, true);
    for (&size, &stride) in strided().rev().filter(|_| numbers > 0) {
        in_order &= size == 1 || stride == dense;
        dense *= size;
    }
    let strides = tensor.strides.iter().map(whole).collect::<Result<Vec<_>, _>>()?;
    Ok(Entry {
        file: 0,
        dtype: tensor.dtype,
        shape: tensor.shape.iter().map(whole).collect::<Result<_, _>>()?,
        start: start + tensor.offset * size,
        length: whole(&(reach * size))?,
        strides: (!in_order).then_some(strides),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// The checksum of the pickle, as the archive has it.
    fn checksum_of_pickle(bytes: &[u8]) -> u32 {
        let archive = zip::entries(&mut Cursor::new(bytes)).expect("an archive");
        archive.iter().find(|(name, _)| name.ends_with("data.pkl")).expect("a pickle").1.checksum
    }

    /// Reads an archive and everything that it says is in it.
    fn read(bytes: &[u8]) -> Result<usize, String> {
        let entries = entries(&mut Cursor::new(bytes))?;
        for entry in entries.values() {
            let stored =
                bytes[entry.start as usize..][..entry.length].chunks_exact(entry.dtype.bitsize() / 8);
            let numbers = entry.shape.iter().product::<usize>();
            assert_eq!(entry.in_order(stored.collect()).len(), numbers, "{entry:?}");
        }
        Ok(entries.len())
    }

    /// Whatever is cut off, and whichever bit is turned: the file is read, or it is refused.
    #[test]
    fn no_damage_makes_it_panic_or_read_beyond_the_end() {
        let mut bytes = include_bytes!("../../../../golden/torch.bin").to_vec();
        let spread = bytes.windows(5).position(|w| w == b"K\x00K\x05\x85").expect("a tensor that is refused");
        bytes[spread + 3] = 1;
        // The checksum of the pickle stands in the directory, and is no longer right.
        let sum =
            |problem: &str| Some(problem.split("is damaged: the checksum is ").nth(1)?.get(..8)?.to_owned());
        let (is, was) = (read(&bytes).unwrap_err(), checksum_of_pickle(&bytes));
        let is = u32::from_str_radix(&sum(&is).expect("a checksum"), 16).expect("a number").to_le_bytes();
        let places = (0..bytes.len() - 4).filter(|&at| bytes[at..at + 4] == was.to_le_bytes());
        for at in places.collect::<Vec<_>>() {
            bytes[at..at + 4].copy_from_slice(&is);
        }
        assert_eq!(read(&bytes), Ok(12));
        let cut = (0..bytes.len()).filter(|&length| read(&bytes[..length]).is_ok()).count();
        assert_eq!(cut, 0);
        let mut readable = 0;
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            readable += usize::from(read(&bytes).is_ok());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        // Dates, and bytes between entries, do not matter.
        assert!((1..8 * bytes.len()).contains(&readable), "{readable}");
    }
}
