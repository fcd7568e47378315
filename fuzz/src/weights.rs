//! Files of weights: all of their tensors are read.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_model::checkpoint::Checkpoint;

/// A whole `.safetensors` file.
pub(crate) fn safetensors() -> Reader {
    read_as("safetensors", "model.safetensors", <[u8]>::to_vec)
}

/// A whole file of PyTorch, which is a ZIP archive.
pub(crate) fn zip() -> Reader {
    read_as("zip", "pytorch_model.bin", <[u8]>::to_vec)
}

/// The pickle in such a file: checksums would keep nearly every mutation from being read.
pub(crate) fn pickle() -> Reader {
    read_as("pickle", "pytorch_model.bin", archive)
}

/// `model.safetensors.index.json`, beside files of the same model.
pub(crate) fn index() -> Reader {
    let scratch = Scratch::new("index");
    let weights = std::fs::read(crate::repository("golden/marian/separate/model.safetensors"));
    let weights = weights.expect("a file of the repository");
    for part in ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"] {
        scratch.write(part, &weights);
    }
    Box::new(move |input| {
        scratch.write("model.safetensors.index.json", input);
        let Ok(Some(checkpoint)) = Checkpoint::find(scratch.folder()) else { return false };
        checkpoint.names().iter().filter(|name| checkpoint.stored(name).is_ok()).count() > 0
    })
}

fn read_as(target: &str, name: &'static str, file: fn(&[u8]) -> Vec<u8>) -> Reader {
    let scratch = Scratch::new(target);
    Box::new(move |input| {
        let Ok(checkpoint) = Checkpoint::open(scratch.write(name, &file(input))) else { return false };
        checkpoint.names().iter().filter(|name| checkpoint.stored(name).is_ok()).count() > 0
    })
}

/// The bytes of the storages that the seeds speak of.
const STORAGES: [usize; 9] = [48, 8, 4, 0, 16, 4, 4, 8, 4];

/// An archive as PyTorch writes it, with right checksums.
fn archive(pickle: &[u8]) -> Vec<u8> {
    let zeros = [0; 48];
    let storages = STORAGES.iter().enumerate().map(|(i, &len)| (format!("x/data/{i}"), &zeros[..len]));
    let mut entries = vec![("x/data.pkl".to_owned(), pickle)];
    entries.extend(storages);
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in &entries {
        let place = file.len() as u32;
        let sizes = [crc32fast::hash(bytes), bytes.len() as u32, bytes.len() as u32];
        let sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
        let name_len = (name.len() as u16).to_le_bytes();
        // Version, flags, method, time, date; checksum and sizes; lengths of the name and of what else there is.
        let common = [&[0; 10][..], &sizes, &name_len, &[0; 2]].concat();
        file.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), bytes].concat());
        let place = place.to_le_bytes();
        directory.extend([&b"PK\x01\x02\0\0"[..], &common, &[0; 10], &place, name.as_bytes()].concat());
    }
    let count = (entries.len() as u16).to_le_bytes();
    let [size, start] = [directory.len(), file.len()].map(|number| (number as u32).to_le_bytes());
    file.extend([&directory[..], b"PK\x05\x06\0\0\0\0", &count, &count, &size, &start, &[0; 2]].concat());
    file
}
