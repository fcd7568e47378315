//! Pictures with labels, to learn from or to judge by.
//!
//! | | where labels are |
//! |---|---|
//! | a folder of folders | the names of the inner folders |
//! | `.tsv` | `path<TAB>label` in each line; paths begin at the file's folder |
//! | `…images…idx3-ubyte` | the file beside it that is called `…labels…idx1-ubyte`, as MNIST has it |
//! | the word `scenes` | the program draws [scenes](crate::scenes); the label is the kind of the largest shape |
//!
//! IDX files may be compressed (`.gz`), others not. Pictures of a folder or a table stay on the disk until they are needed; those of an
//! IDX file are in memory.

mod augment;
mod folder;
mod idx;
mod scenes;
mod table;

pub use augment::{Augment, ColorJitter, share_of_mixup};

use super::Error;
use super::labelled::Labels;
use crate::scenes::Scene;
use attentive_image::Picture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A picture, or where it is.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A file of its own.
    File(PathBuf),
    /// One of the pictures of an IDX file.
    Grey { file: Arc<GreyFile>, number: usize },
    /// The scene of a seed.
    Scene(u64),
}

/// An IDX file in memory.
#[derive(Debug)]
pub(crate) struct GreyFile {
    path: PathBuf,
    levels: Vec<u8>,
    /// Height and width of each picture.
    size: [usize; 2],
}

impl Source {
    /// The file that has the picture.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Source::File(path) => path.clone(),
            Source::Grey { file, .. } => file.path.clone(),
            Source::Scene(seed) => PathBuf::from(format!("scene {seed}")),
        }
    }

    /// The picture.
    pub(crate) fn read(&self) -> Result<Picture, Error> {
        match self {
            Source::File(path) => Ok(Picture::open(path)?),
            Source::Grey { file, number } => {
                let [height, width] = file.size;
                let grey = &file.levels[number * height * width..][..height * width];
                Ok(Picture::new(width, height, grey.iter().flat_map(|&level| [level; 3]).collect()))
            }
            Source::Scene(seed) => Ok(Scene::new(*seed).picture),
        }
    }
}

/// A picture with the name of its class.
#[derive(Debug, Clone)]
pub(crate) struct LabelledPicture {
    pub source: Source,
    pub label: String,
}

/// All pictures of some files and folders.
#[derive(Debug, Clone)]
pub(crate) struct LabelledPictures {
    /// The pictures; there is at least one.
    pub pictures: Vec<LabelledPicture>,
    /// All labels: those that were given, or those that the pictures have.
    pub labels: Labels,
    /// Height and width, if all are known to have the same.
    pub size: Option<[usize; 2]>,
    /// Bytes of all files.
    pub bytes: u64,
    /// A checksum of what is in the files, or of what they are called and how long they are.
    pub checksum: u32,
}

/// What a reader found in one file or folder.
struct Found {
    pictures: Vec<LabelledPicture>,
    size: Option<[usize; 2]>,
    bytes: u64,
}

/// Reads files and folders. Labels that are not among `known` are refused.
pub(crate) fn read_pictures(paths: &[PathBuf], known: Option<&Labels>) -> Result<LabelledPictures, Error> {
    let mut checksum = crc32fast::Hasher::new();
    let (mut pictures, mut sizes, mut bytes) = (Vec::new(), Vec::new(), 0);
    for path in paths {
        let found = if crate::scenes::are_meant_by(path) {
            scenes::find(known.is_some())
        } else {
            read_one(path, &mut checksum)?
        };
        if found.pictures.is_empty() {
            return Err(wrong(path, "has no pictures: PNG, JPEG and WebP files are read"));
        }
        if let Some(known) = known
            && let Some(picture) = found.pictures.iter().find(|one| known.number(&one.label).is_none())
        {
            let problem = format!("has the label `{}`, which training never saw", picture.label);
            return Err(wrong(path, &problem));
        }
        sizes.push(found.size);
        bytes += found.bytes;
        pictures.extend(found.pictures);
    }
    let labels = || Labels::sorted(pictures.iter().map(|picture| picture.label.clone()));
    Ok(LabelledPictures {
        labels: known.cloned().unwrap_or_else(labels),
        size: sizes.iter().skip(1).fold(sizes[0], |all, size| all.filter(|_| all == *size)),
        bytes,
        checksum: checksum.finalize(),
        pictures,
    })
}

fn read_one(path: &Path, checksum: &mut crc32fast::Hasher) -> Result<Found, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.is_dir() {
        return folder::read(path, checksum);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.contains("idx3") {
        idx::read(path, checksum)
    } else if name.ends_with(".tsv") {
        table::read(path, checksum)
    } else {
        Err(wrong(
            path,
            "is no folder of folders with pictures, no .tsv file of paths and labels, no idx3-ubyte file, and not the word `scenes`",
        ))
    }
}

fn wrong(path: &Path, problem: &str) -> Error {
    Error::Pictures { path: path.to_owned(), problem: problem.to_owned() }
}

/// Takes note of a file that is read later.
fn note(path: &Path, label: &str, checksum: &mut crc32fast::Hasher) -> Result<u64, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(failed)?.len();
    checksum.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    checksum.update(label.as_bytes());
    checksum.update(&length.to_le_bytes());
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn scratch(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("attentive-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn labels(found: &LabelledPictures) -> Vec<&str> {
        found.pictures.iter().map(|picture| &picture.label[..]).collect()
    }

    #[test]
    fn folders_and_tables_name_the_class_of_each_picture() {
        let Scratch(root) = &scratch("pictures");
        for (label, level) in [("dog", 9), ("cat", 200)] {
            std::fs::create_dir_all(root.join("all").join(label)).unwrap();
            let picture = Picture::filled(5, 4, [level; 3]);
            picture.save_png(&root.join("all").join(label).join("one.png")).unwrap();
        }
        std::fs::write(root.join("all/cat/notes.txt"), "no picture").unwrap();
        let found = read_pictures(&[root.join("all")], None).unwrap();
        assert_eq!(
            (labels(&found), found.labels.names()),
            (vec!["cat", "dog"], &["cat".to_owned(), "dog".to_owned()][..])
        );
        assert_eq!(found.pictures[1].source.read().unwrap(), Picture::filled(5, 4, [9; 3]));

        std::fs::write(root.join("some.tsv"), "all/dog/one.png\tbig dog\nall/cat/one.png\tcat\n").unwrap();
        let found = read_pictures(&[root.join("some.tsv")], None).unwrap();
        assert_eq!(labels(&found), ["big dog", "cat"]);
        let known = Labels::sorted(["cat".to_owned(), "dog".to_owned()]);
        let error = read_pictures(&[root.join("some.tsv")], Some(&known)).unwrap_err().to_string();
        assert!(error.contains("`big dog`"), "{error}");
        let error = read_pictures(&[root.join("all/cat")], None).unwrap_err().to_string();
        assert!(error.contains("a folder for each class"), "{error}");
    }

    #[test]
    fn the_word_scenes_stands_for_pictures_that_are_drawn_others_for_validation() {
        let path = PathBuf::from("nowhere/scenes");
        let train = read_pictures(std::slice::from_ref(&path), None).unwrap();
        let valid = read_pictures(&[path], Some(&train.labels)).unwrap();
        assert_eq!((train.pictures.len(), valid.pictures.len(), train.size), (20_000, 500, Some([128; 2])));
        assert_eq!(train.labels.names(), ["circle", "cross", "diamond", "ring", "square", "triangle"]);
        let [first, held] = [&train, &valid].map(|found| found.pictures[0].source.read().unwrap());
        assert_eq!(first, Scene::new(0).picture);
        assert_ne!(first, held);
    }

    #[test]
    fn idx_files_have_their_labels_beside_them() {
        let Scratch(root) = &scratch("idx");
        let mut images = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3];
        images.extend(0..12);
        let path = root.join("train-images-idx3-ubyte");
        std::fs::write(&path, &images).unwrap();
        std::fs::write(root.join("train-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 2, 7, 0]).unwrap();
        let found = read_pictures(std::slice::from_ref(&path), None).unwrap();
        assert_eq!((labels(&found), found.size), (vec!["7", "0"], Some([2, 3])));
        let second = found.pictures[1].source.read().unwrap();
        assert_eq!((second.width(), second.height(), second.pixel(2, 1)), (3, 2, [11; 3]));
        std::fs::write(&path, &images[..20]).unwrap();
        assert!(matches!(read_pictures(&[path], None), Err(Error::Damaged { .. })));
    }
}
