//! The weights of a folder: one file, or several with an index.
//!
//! `model.safetensors.index.json` has `weight_map`, the file of each tensor. Files lie beside the index: a name that leads elsewhere
//! is refused, since a downloaded folder must not name files of its reader.

use super::{Checkpoint, Entry};
use crate::error::Error;
use serde::Deserialize;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Component, Path};

/// The file that says what a model folder holds.
pub(crate) const CONFIG: &str = "config.json";
/// The file that we write.
pub(crate) const WEIGHTS: &str = "model.safetensors";
const TORCH_WEIGHTS: &str = "pytorch_model.bin";

/// `model.safetensors.index.json`.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// The weights of a folder, if there are any.
    pub fn find(folder: &Path) -> Result<Option<Checkpoint>, Error> {
        for file in [WEIGHTS, TORCH_WEIGHTS] {
            let (whole, index) = (folder.join(file), folder.join(format!("{file}.index.json")));
            if let Some(found) = if_found(Checkpoint::open(whole))? {
                return Ok(Some(found));
            }
            if let Some(text) = if_found(read(&index))? {
                return Checkpoint::in_parts(folder, &index, &text).map(Some);
            }
        }
        Ok(None)
    }

    /// The weights of a folder, which must be there.
    pub fn of_folder(folder: &Path) -> Result<Checkpoint, Error> {
        Checkpoint::find(folder)?.ok_or_else(|| {
            let problem = format!("there is neither this file nor {TORCH_WEIGHTS}");
            Error::Format { path: folder.join(WEIGHTS), problem }
        })
    }

    /// The tensors that the index of a folder names.
    fn in_parts(folder: &Path, path: &Path, text: &str) -> Result<Checkpoint, Error> {
        let wrong = |problem: String| Error::Format { path: path.to_owned(), problem };
        let index: Index = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let mut whole = Checkpoint {
            path: path.to_owned(),
            files: Vec::new(),
            entries: BTreeMap::new(),
            notes: HashMap::new(),
            named: None,
        };
        let mut opened: HashMap<&str, (usize, BTreeMap<String, Entry>)> = HashMap::new();
        for (name, file) in &index.weight_map {
            let (number, entries) = match opened.entry(file) {
                Occupied(opened) => opened.into_mut(),
                Vacant(_) if !is_beside(file) => {
                    return Err(wrong(format!(
                        "`{name}` is said to be in `{file}`, which is not a file of this folder"
                    )));
                }
                Vacant(place) => {
                    let part = if_found(Checkpoint::open(folder.join(file)))?.ok_or_else(|| {
                        let tensors = index.weight_map.values().filter(|other| *other == file).count();
                        wrong(format!(
                            "the file `{file}` with {tensors} of the tensors is missing from the folder"
                        ))
                    })?;
                    let number = whole.files.len();
                    whole.files.extend(part.files);
                    place.insert((number, part.entries))
                }
            };
            let entry = entries.remove(name);
            let entry =
                entry.ok_or_else(|| wrong(format!("`{name}` is not in `{file}`, where it should be")))?;
            whole.entries.insert(name.clone(), Entry { file: *number, ..entry });
        }
        Ok(whole)
    }
}

/// Whether a name is that of a file beside the one that names it.
fn is_beside(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let first = matches!(components.next(), Some(Component::Normal(part)) if part == name);
    // On other systems, too.
    first && components.next().is_none() && !name.contains(['/', '\\', ':'])
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// None if there is no such file.
fn if_found<T>(opened: Result<T, Error>) -> Result<Option<T>, Error> {
    match opened {
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_beside_the_index() {
        for name in ["model-00001-of-00002.safetensors", "x.bin", "..x", "a b"] {
            assert!(is_beside(name), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/b", "/etc/passwd", "a/", "./a", "..\\x", "c:x"] {
            assert!(!is_beside(name), "{name}");
        }
    }
}
