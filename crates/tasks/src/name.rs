//! What a model folder is called.

use std::path::Path;

/// The name of a model folder; of a snapshot in the cache of the Hugging Face Hub, `models--OWNER--NAME/snapshots/COMMIT`, the name of
/// the model there, `OWNER/NAME`. None if the folder has none, as `/`.
pub fn model_name(folder: &Path) -> Option<String> {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let of_snapshot = || {
        let snapshots = whole.parent().filter(|parent| parent.ends_with("snapshots"))?;
        let place = name(snapshots.parent()?)?;
        Some(place.strip_prefix("models--")?.replacen("--", "/", 1))
    };
    of_snapshot().or_else(|| name(&whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_have_the_name_of_their_model_and_other_folders_their_own() {
        for (path, expected) in [
            ("/c/models--a--b/snapshots/0123", Some("a/b")),
            ("/c/models--gpt2/snapshots/0123", Some("gpt2")),
            ("/c/datasets--a--b/snapshots/0123", Some("0123")),
            ("/c/models--a--b/0123", Some("0123")),
            ("/c/en-de/", Some("en-de")),
            ("/", None),
        ] {
            assert_eq!(model_name(Path::new(path)).as_deref(), expected, "{path}");
        }
    }
}
