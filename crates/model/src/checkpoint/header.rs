//! The header of a safetensors file: its length, a JSON object with the place of every tensor, and then
//! numbers.

use super::entry::Entry;
use super::zip::read;
use safetensors::tensor::{Metadata, TensorInfo};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom};

/// The longest header that other readers accept.
const LONGEST: u64 = 100_000_000;

type Entries = BTreeMap<String, Entry>;
type Notes = HashMap<String, String>;

/// The tensors of a file by name, and the notes beside them. All numbers are there, and nothing else is.
pub(super) fn entries(file: &mut (impl Read + Seek)) -> Result<(Entries, Notes), String> {
    let length = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    if length == 0 {
        return Err("it is empty".to_owned());
    }
    let header = read(file, 0, 8)?.try_into().map(u64::from_le_bytes);
    let header = header.map_err(|_| "it is shorter than a header")?;
    if header > LONGEST || header + 8 > length {
        return Err(format!("it has {length} bytes, too few for a header of {header} bytes"));
    }
    let text = read(file, 8, header)?;
    let metadata: Metadata =
        serde_json::from_slice(&text).map_err(|error| format!("its header is damaged: {error}"))?;
    let start = 8 + header;
    let entry = |info: &TensorInfo| {
        let (from, to) = info.data_offsets;
        let start = start.saturating_add(from as u64);
        let (dtype, shape) = (info.dtype, info.shape.clone());
        Entry { file: 0, dtype, shape, start, length: to - from, strides: None }
    };
    let tensors = metadata.tensors();
    let entries: BTreeMap<_, _> = tensors.iter().map(|(name, info)| (name.clone(), entry(info))).collect();
    let ends = entries.values().map(|entry| entry.start.saturating_add(entry.length as u64));
    let end = ends.max().unwrap_or(start);
    if end != length {
        return Err(format!("it has {length} bytes, but its last tensor ends at byte {end}"));
    }
    Ok((entries, metadata.metadata().clone().unwrap_or_default()))
}
