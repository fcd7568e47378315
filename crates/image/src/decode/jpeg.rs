//! JPEG.

use super::{Decoded, check_size};
use crate::error::Problem;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The longest side that the format has.
const LONGEST: usize = 65_535;

pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Problem> {
    let broken = |error: DecodeErrors| Problem::broken("JPEG", error);
    let options = DecoderOptions::default()
        .set_max_width(LONGEST)
        .set_max_height(LONGEST)
        // Otherwise the decoder fills the rest of a truncated file with grey.
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(broken)?;
    let info = decoder.info().ok_or_else(|| Problem::broken("JPEG", "it has no size"))?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    check_size(width, height)?;
    let samples = decoder.decode().map_err(broken)?;
    if samples.len() != 3 * width * height {
        return Err(Problem::broken("JPEG", "its colours cannot be read"));
    }
    Ok(Decoded { width, height, channels: 3, samples, exif: decoder.exif().cloned() })
}
