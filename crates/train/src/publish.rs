//! A run's folder is a model folder: the best weights so far are in it.

use crate::Error;
use crate::checkpoints::exists;
use attentive_model::checkpoint::Staged;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where a folder has its weights.
pub(crate) fn weights(folder: &Path) -> PathBuf {
    folder.join("model.safetensors")
}

/// Whether there are weights in a folder.
pub(crate) fn is_model(folder: &Path) -> Result<bool, Error> {
    exists(&weights(folder))
}

/// Lets the weights in `file` be those of the folder: a second name for the same file, where the system has
/// such, or else a copy. The old ones are replaced at once.
pub(crate) fn publish(folder: &Path, file: &Path) -> Result<(), Error> {
    let path = weights(folder);
    let beside = folder.join(format!(".model.safetensors.{}.link.part", std::process::id()));
    if std::fs::hard_link(file, &beside).is_err() {
        // Not to `beside`: if that could not be removed before, it is a second name of another checkpoint.
        let copy = Staged::with(&path, |copy| {
            let copied = File::open(file).and_then(|mut file| std::io::copy(&mut file, copy));
            copied.map(drop).map_err(Error::file(&path))
        });
        return Ok(copy?.commit()?);
    }
    let renamed = std::fs::rename(&beside, &path);
    // After renaming one name of a file to another of the same file, both are there.
    let _ = std::fs::remove_file(&beside);
    renamed.and_then(|()| File::open(folder)?.sync_all()).map_err(Error::file(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_not_be_removed_does_not_lead_to_the_checkpoint_that_it_is_a_name_of() {
        let folder = std::env::temp_dir().join(format!("attentive-publish-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.join(name));
        std::fs::write(&first, "first").unwrap();
        std::fs::write(&second, "second").unwrap();
        publish(&folder, &first).unwrap();
        let left = folder.join(format!(".model.safetensors.{}.link.part", std::process::id()));
        std::fs::hard_link(&first, left).unwrap();
        publish(&folder, &second).unwrap();
        let texts = [&first, &second, &weights(&folder)].map(|path| std::fs::read_to_string(path).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(texts, ["first", "second", "second"]);
    }
}
