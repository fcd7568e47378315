//! The orientation of the camera: the tag `Orientation` of an EXIF block, which has the format of a TIFF file.

/// The tag.
const ORIENTATION: u16 = 0x0112;

/// The orientation, from 1 to 8. It is 1, an upright picture, if the block is broken or does not have the tag.
pub(super) fn orientation(exif: &[u8]) -> u16 {
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    find(tiff).filter(|orientation| (1..=8).contains(orientation)).unwrap_or(1)
}

fn find(tiff: &[u8]) -> Option<u16> {
    let is_little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let first = tiff.get(4..8)?.try_into().ok()?;
    let directory = if is_little { u32::from_le_bytes(first) } else { u32::from_be_bytes(first) } as usize;
    // Each entry has twelve bytes: tag, type, count and value.
    let mut entries = (0..usize::from(short(directory)?)).map(|i| directory + 2 + 12 * i);
    entries.find(|&at| short(at) == Some(ORIENTATION)).and_then(|at| short(at + 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(little: bool, tag: u16, value: u16) -> Vec<u8> {
        let short = |x: u16| if little { x.to_le_bytes() } else { x.to_be_bytes() };
        let long = |x: u32| if little { x.to_le_bytes() } else { x.to_be_bytes() };
        let mut block = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
        block.extend(long(8));
        block.extend([short(1), short(tag), short(3)].concat());
        block.extend(long(1));
        block.extend([short(value), [0, 0]].concat());
        block
    }

    #[test]
    fn the_tag_is_found_in_both_orders_of_bytes() {
        for little in [true, false] {
            assert_eq!(orientation(&block(little, ORIENTATION, 6)), 6);
            assert_eq!(orientation(&[&b"Exif\0\0"[..], &block(little, ORIENTATION, 8)].concat()), 8);
            assert_eq!(orientation(&block(little, ORIENTATION, 9)), 1);
            assert_eq!(orientation(&block(little, 0x010f, 6)), 1);
        }
    }

    #[test]
    fn a_broken_block_means_an_upright_picture() {
        let whole = block(true, ORIENTATION, 6);
        for length in 0..whole.len() - 2 {
            assert_eq!(orientation(&whole[..length]), 1, "{length}");
        }
        let mut far = whole;
        far[4..8].copy_from_slice(&[0xff; 4]);
        assert_eq!(orientation(&far), 1);
    }
}
