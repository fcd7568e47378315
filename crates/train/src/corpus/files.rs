//! The files of a corpus, and what can be seen about them without reading.

use super::{Error, FieldNames};
use std::path::{Path, PathBuf};

/// Where the pairs are. Files whose names end with `.gz` or `.zst` are unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorpusFiles {
    /// Line n of a source file belongs to line n of the target file in the same place.
    Pairs {
        /// The source files.
        sources: Vec<PathBuf>,
        /// As many target files.
        targets: Vec<PathBuf>,
    },
    /// Each line is a text alone, or an object of JSON with a field `text` in files named `.jsonl`, `.ndjson` or `.json`.
    Texts(Vec<PathBuf>),
    /// Each line has a source, a tab and a target.
    Tsv(Vec<PathBuf>),
    /// Each line is an object of JSON.
    Jsonl {
        /// The files.
        files: Vec<PathBuf>,
        /// Where in an object source and target are.
        fields: FieldNames,
    },
}

impl CorpusFiles {
    /// All files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let (first, second): (&[PathBuf], &[PathBuf]) = match self {
            CorpusFiles::Pairs { sources, targets } => (sources, targets),
            CorpusFiles::Texts(files) | CorpusFiles::Tsv(files) | CorpusFiles::Jsonl { files, .. } => {
                (files, &[])
            }
        };
        first.iter().chain(second).map(PathBuf::as_path)
    }

    /// Checks that all files are files, and that sources and targets belong together, before anything is
    /// read.
    pub(super) fn check(&self) -> Result<(), Error> {
        check_paths(self.paths())?;
        let CorpusFiles::Pairs { sources, targets } = self else { return Ok(()) };
        if sources.len() != targets.len() {
            return Err(Error::FileCounts { sources: sources.len(), targets: targets.len() });
        }
        let same = |(source, target): &(&PathBuf, &PathBuf)| {
            let canonical = |path: &Path| path.canonicalize().ok();
            canonical(source).is_some_and(|source| canonical(target) == Some(source))
        };
        match sources.iter().zip(targets).find(same) {
            Some((source, _)) => Err(Error::SameFile { path: source.clone() }),
            None => Ok(()),
        }
    }
}

/// Whether the name of a file, unpacked, ends so.
pub(crate) fn is_called(path: &Path, ending: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    name.ends_with(ending)
}

/// Whether the name of a file, unpacked, says that its lines are objects of JSON.
pub(crate) fn is_json(path: &Path) -> bool {
    [".jsonl", ".ndjson", ".json"].iter().any(|ending| is_called(path, ending))
}

/// Checks that all files are there and no folders.
pub(super) fn check_paths<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<(), Error> {
    for path in paths {
        let failed = |source| Error::File { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(Error::Directory { path: path.to_owned() });
        }
    }
    Ok(())
}
