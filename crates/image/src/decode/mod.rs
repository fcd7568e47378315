//! Picture files to pixels: PNG, JPEG and WebP.
//!
//! The size in a file is checked before memory is allocated. Grey becomes RGB. Transparent pictures are composed over white, as in
//! transformers. Of 16 bits the upper 8 are kept. Pictures are rotated as their EXIF block says.

mod exif;
mod jpeg;
mod png;
mod webp;

use crate::error::{Error, Fault, Problem};
use crate::picture::Picture;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The most pixels that a picture may have: 300 MB in memory.
pub const MOST_PIXELS: usize = 100_000_000;

/// The longest file that is read.
const MOST_BYTES: u64 = 1 << 29;

/// The output of a decoder.
struct Decoded {
    width: usize,
    height: usize,
    /// Bytes of each pixel: grey, grey and alpha, colour, colour and alpha.
    channels: usize,
    samples: Vec<u8>,
    exif: Option<Vec<u8>>,
}

impl Picture {
    /// Reads a picture file: PNG, JPEG or WebP, whatever its name ends with.
    pub fn open(path: &Path) -> Result<Picture, Error> {
        let failed = |source| Error::file(path, source);
        let mut bytes = Vec::new();
        File::open(path).map_err(failed)?.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(Problem::new("longer than 512 MiB, which is more than a picture needs").of(path));
        }
        Picture::decode(&bytes).map_err(|problem| problem.of(path))
    }

    /// Reads the bytes of a picture file.
    pub fn decode(bytes: &[u8]) -> Result<Picture, Problem> {
        let decoded = match bytes {
            [0x89, b'P', b'N', b'G', ..] => png::decode(bytes),
            [0xff, 0xd8, ..] => jpeg::decode(bytes),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp::decode(bytes),
            _ => {
                let problem = "no picture that can be read: supported are PNG, JPEG and WebP";
                Err(Problem::new(problem).with_fault(Fault::Format))
            }
        }?;
        let orientation = decoded.exif.as_deref().map_or(1, exif::orientation);
        Ok(decoded.into_picture().oriented(orientation))
    }
}

/// Fails for sizes that are empty or too large. Called before memory is allocated.
pub(crate) fn check_size(width: usize, height: usize) -> Result<(), Problem> {
    if width == 0 || height == 0 {
        return Err(Problem::new(format!("a picture of {width} × {height} pixels has none")));
    }
    if width.checked_mul(height).is_none_or(|pixels| pixels > MOST_PIXELS) {
        let problem = format!(
            "{width} × {height} pixels are more than {} million: make the picture smaller",
            MOST_PIXELS / 1_000_000
        );
        return Err(Problem::new(problem).with_fault(Fault::Size));
    }
    Ok(())
}

impl Decoded {
    fn into_picture(self) -> Picture {
        let Decoded { width, height, channels, samples, .. } = self;
        let pixels = match channels {
            1 => samples.iter().flat_map(|&grey| [grey; 3]).collect(),
            2 => samples.chunks_exact(2).flat_map(|x| [on_white(x[0], x[1]); 3]).collect(),
            3 => samples,
            4 => samples.chunks_exact(4).flat_map(|x| [0, 1, 2].map(|i| on_white(x[i], x[3]))).collect(),
            other => unreachable!("{other} channels"),
        };
        Picture::new(width, height, pixels)
    }
}

/// A colour with this opacity over white, rounded as in Pillow's `alpha_composite`.
fn on_white(colour: u8, alpha: u8) -> u8 {
    let (colour, alpha) = (u32::from(colour), u32::from(alpha));
    let sum = (colour * alpha + 255 * (255 - alpha)) * 128 + (0x80 << 7);
    ((((sum >> 8) + sum) >> 8) >> 7) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(bytes: &[u8]) -> String {
        Picture::decode(bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_picture_is_refused_with_what_is() {
        for bytes in [&b""[..], b"GIF89a", b"RIFFxxxxWAVE", b"hello"] {
            assert_eq!(problem(bytes), "no picture that can be read: supported are PNG, JPEG and WebP");
            assert_eq!(Picture::decode(bytes).unwrap_err().fault(), Fault::Format);
        }
    }

    #[test]
    fn colours_are_composed_over_white() {
        assert_eq!([0, 255].map(|alpha| on_white(10, alpha)), [255, 10]);
        assert_eq!((on_white(0, 128), on_white(100, 51)), (127, 224));
    }

    /// The beginning of a PNG file of this size, with nothing behind it.
    fn header(width: u32, height: u32) -> Vec<u8> {
        let mut chunk = b"IHDR".to_vec();
        chunk.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
        chunk.extend([8, 2, 0, 0, 0]);
        let mut crc = !0u32;
        for byte in &chunk {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
            }
        }
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec(), chunk, (!crc).to_be_bytes().to_vec()].concat()
    }

    #[test]
    fn an_enormous_picture_is_refused_before_memory_is_allocated() {
        assert_eq!(
            problem(&header(100_000, 100_000)),
            "100000 × 100000 pixels are more than 100 million: make the picture smaller"
        );
        assert_eq!(Picture::decode(&header(100_000, 100_000)).unwrap_err().fault(), Fault::Size);
        let empty = problem(&header(0, 0));
        assert!(empty.starts_with("a broken PNG picture: "), "{empty}");
    }

    #[test]
    fn a_file_that_ends_early_is_refused() {
        let whole = Picture::filled(40, 30, [10, 200, 30]).to_png();
        for length in 8..whole.len() - 12 {
            let problem = problem(&whole[..length]);
            assert!(problem.starts_with("a broken PNG picture: "), "{length}: {problem}");
            assert_eq!(Picture::decode(&whole[..length]).unwrap_err().fault(), Fault::Broken);
        }
    }
}
