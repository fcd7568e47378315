//! WebP.

use super::{Decoded, check_size};
use crate::error::Problem;
use image_webp::{DecodingError, WebPDecoder};
use std::io::Cursor;

/// The most memory that the decoder may use for metadata.
const BESIDE: usize = 64 << 20;

pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Problem> {
    let broken = |error: DecodingError| Problem::broken("WebP", error);
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(broken)?;
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    check_size(width, height)?;
    decoder.set_memory_limit(BESIDE);
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut samples = vec![0; channels * width * height];
    // Of an animation, the first picture.
    decoder.read_image(&mut samples).map_err(broken)?;
    // A broken block of metadata is no reason to refuse the picture.
    let exif = decoder.exif_metadata().ok().flatten();
    Ok(Decoded { width, height, channels, samples, exif })
}
