//! Pictures of all formats, and what Pillow and the processors of transformers make of them (`golden/image.py`).

use attentive_image::{Filter, Picture, Processor};
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

/// `golden/augment.py`.
#[test]
fn pictures_are_changed_as_torchvision_and_pillow_change_them() {
    let folder = Folder::golden();
    let bytes = std::fs::read(folder.path.join("augment.safetensors")).unwrap();
    let answers = SafeTensors::deserialize(&bytes).unwrap();
    let picture = Picture::open(&folder.path.join("astronaut.png")).unwrap();
    for case in answers.names() {
        let (name, numbers) = case.split_once(' ').unwrap();
        let numbers: Vec<f64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        let whole = |i: usize| numbers[i] as usize;
        let mut found = picture.clone();
        match name {
            "brightness" => found.adjust_brightness(numbers[0] as f32),
            "contrast" => found.adjust_contrast(numbers[0] as f32),
            "saturation" => found.adjust_saturation(numbers[0] as f32),
            "hue" => found.adjust_hue(numbers[0]),
            "solarize" => found.solarize(whole(0) as u8),
            "grey" => found.grey_out(),
            "blur" => found = picture.blurred(numbers[0] as f32),
            "erase" => {
                let [left, top, width, height] = [0, 1, 2, 3].map(|i| numbers[i] as i64);
                found.fill(left, top, width, height, [124, 116, 104]);
            }
            "bilinear" | "bicubic" => {
                let filter = if name == "bilinear" { Filter::Bilinear } else { Filter::Bicubic };
                let part = picture.cropped([0, 1, 2, 3].map(whole));
                found = part.resized(whole(5), whole(4), filter).unwrap();
            }
            _ => panic!("{case}"),
        }
        let expected = answers.tensor(case).unwrap();
        assert_eq!(expected.shape(), [found.height(), found.width(), 3], "{case}");
        let far: Vec<u8> = found.pixels().iter().zip(expected.data()).map(|(a, b)| a.abs_diff(*b)).collect();
        let (most, differ) = (far.iter().max(), far.iter().filter(|far| **far > 0).count());
        assert_eq!(differ, 0, "{case}: of {}, at most by {most:?}", far.len());
    }
    assert_eq!(answers.len(), 44);
}
