//! PNG.

use super::{Decoded, check_size};
use crate::error::Problem;
use ::png::{Decoder, DecodingError, Limits, Transformations};

/// The most memory that the decoder may use besides the picture: rows, palettes, profiles.
const BESIDE: usize = 64 << 20;

pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Problem> {
    let broken = |error: DecodingError| Problem::broken("PNG", error);
    let mut decoder = Decoder::new_with_limits(bytes, Limits { bytes: BESIDE });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    // Palettes, samples of less than 8 bits and samples of 16 bits become samples of 8 bits.
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let info = decoder.read_header_info().map_err(broken)?;
    let (width, height) = (info.width as usize, info.height as usize);
    check_size(width, height)?;
    let mut reader = decoder.read_info().map_err(broken)?;
    let mut samples = vec![0; reader.output_buffer_size()];
    // Of an animation, the default image.
    let frame = reader.next_frame(&mut samples).map_err(broken)?;
    samples.truncate(frame.buffer_size());
    let channels = frame.color_type.samples();
    if samples.len() != width * height * channels {
        return Err(Problem::broken("PNG", "its first frame is smaller than the picture"));
    }
    Ok(Decoded { width, height, channels, samples, exif: exif(bytes).map(<[u8]>::to_vec) })
}

/// The EXIF block, which the decoder does not return. The file is a signature of eight bytes and chunks: length, name, data and checksum.
fn exif(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.get(8..)?;
    loop {
        let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        let data = rest.get(8..)?.get(..length)?;
        if &rest[4..8] == b"eXIf" {
            return Some(data);
        }
        rest = rest.get(12 + length..)?;
    }
}
