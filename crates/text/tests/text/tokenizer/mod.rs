//! Tokenizers beside the libraries that they come from.

mod encoder;
mod golden;
mod multi30k;
mod train;

use std::path::PathBuf;

/// A folder of the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The data that is not part of the repository; says so and gives none where it is not there.
fn shared(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ATTENTIVE_SHARED").map_or_else(|| repository("../shared"), PathBuf::from);
    let path = folder.join(path);
    if !path.exists() {
        eprintln!("skipped: there is no {}; ATTENTIVE_SHARED names the folder that has it", path.display());
        return None;
    }
    Some(path)
}

/// The nasty text, line by line.
fn nasty() -> Vec<String> {
    let text = std::fs::read_to_string(repository("golden/text/nasty.txt")).unwrap();
    text.strip_suffix('\n').unwrap().split('\n').map(str::to_owned).collect()
}

/// A folder of its own for a test, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("attentive-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
