//! Pictures of all formats, and what Pillow and the processors of transformers make of them (`golden/image.py`).

use attentive_image::{Picture, Processor};
use safetensors::SafeTensors;
use std::path::{Path, PathBuf};

struct Folder {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Folder {
    fn open(path: PathBuf) -> Folder {
        let bytes = std::fs::read(path.join("answers.safetensors")).expect("answers");
        Folder { path, bytes }
    }

    fn golden() -> Folder {
        Folder::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/image"))
    }

    fn answers(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).expect("a file of safetensors")
    }

    /// Holds the pictures in the size that processors give them against those of transformers.
    fn check_processors(&self) {
        let answers = self.answers();
        let mut names: Vec<&str> = answers.names();
        names.sort_unstable();
        let mut compared = 0;
        for name in names {
            let &[picture, kind] = &name.split('.').collect::<Vec<_>>()[..] else { continue };
            let expected = answers.tensor(name).expect("a tensor");
            let processor = Processor::of(&self.path.join(kind)).unwrap();
            let picture = Picture::open(&self.path.join(format!("{picture}.png"))).unwrap();
            let fitted = processor.fit(&picture).unwrap();
            assert_eq!(expected.shape(), [3, fitted.height(), fitted.width()], "{name}");
            // Ours are pixel by pixel, theirs plane by plane.
            let planes = (0..3).flat_map(|channel| fitted.pixels()[channel..].iter().step_by(3));
            let far: Vec<u8> = planes.zip(expected.data()).map(|(a, b)| a.abs_diff(*b)).collect();
            let (most, differ) = (far.iter().max(), far.iter().filter(|far| **far > 0).count());
            assert_eq!(differ, 0, "{name}: of {}, at most by {most:?}", far.len());
            compared += 1;
        }
        assert!(compared > 0, "{} has nothing to compare", self.path.display());
    }
}

#[test]
fn pictures_are_resized_and_cropped_as_in_transformers() {
    Folder::golden().check_processors();
}

#[test]
fn whole_pictures_are_resized_and_cropped_as_in_transformers() {
    if let Some(folder) = std::env::var_os("ATTENTIVE_PICTURES") {
        Folder::open(folder.into()).check_processors();
    }
}

#[test]
fn numbers_are_rescaled_and_normalised_as_in_transformers() {
    let folder = Folder::golden();
    let answers = folder.answers();
    let names: Vec<&str> = answers.names();
    let values: Vec<_> = names.iter().filter_map(|name| name.strip_suffix(".values")).collect();
    assert!(!values.is_empty());
    for name in values {
        let (_, kind) = name.split_once('.').unwrap();
        let processor = Processor::of(&folder.path.join(kind)).unwrap();
        // Of the pixels that transformers had, so that every number must be the same.
        let fitted = answers.tensor(name).unwrap();
        let &[_, height, width] = fitted.shape() else { panic!("{name}") };
        let planes = fitted.data();
        let pixels =
            (0..height * width).flat_map(|i| [0, 1, 2].map(|channel| planes[channel * height * width + i]));
        let found = processor.numbers(&Picture::new(width, height, pixels.collect()));
        let expected = answers.tensor(&format!("{name}.values")).unwrap();
        let expected = expected.data().chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
        for (found, expected) in found.numbers.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-6, "{name}: {found} and {expected}");
        }
    }
}

/// What JPEG and lossy WebP lose is rounded a little differently by each decoder.
fn tolerance(name: &str) -> u8 {
    match name {
        "grey.jpg" | "full_colour.jpg" => 2,
        "cmyk.jpg" => 4,
        _ if name.ends_with(".jpg") || name == "lossy.webp" => 8,
        _ => 0,
    }
}

#[test]
fn pictures_of_all_formats_have_the_pixels_that_pillow_reads() {
    let folder = Folder::golden();
    let answers = folder.answers();
    let mut read = 0;
    for whole in answers.names() {
        let Some(name) = whole.strip_prefix("decoded.") else { continue };
        let picture = Picture::open(&folder.path.join(name)).unwrap();
        let expected = answers.tensor(whole).unwrap();
        assert_eq!(expected.shape(), [picture.height(), picture.width(), 3], "{name}");
        let far = picture.pixels().iter().zip(expected.data()).map(|(a, b)| a.abs_diff(*b)).max();
        println!("{name}: {far:?}");
        assert!(far.is_none_or(|far| far <= tolerance(name)), "{name}: {far:?}");
        read += 1;
    }
    assert_eq!(read, 17);
}

#[test]
fn a_file_that_ends_early_is_refused_and_named() {
    let folder = Folder::golden();
    for name in ["colour.jpg", "progressive.jpg", "lossy.webp", "lossless.webp", "alpha.png"] {
        let bytes = std::fs::read(folder.path.join(name)).unwrap();
        for part in [bytes.len() / 10, bytes.len() / 2, bytes.len() * 4 / 5] {
            assert!(Picture::decode(&bytes[..part]).is_err(), "{name}: {part} of {}", bytes.len());
        }
    }
    let missing = Picture::open(Path::new("no such file.jpg")).unwrap_err().to_string();
    assert!(missing.starts_with("no such file.jpg: "), "{missing}");
}
