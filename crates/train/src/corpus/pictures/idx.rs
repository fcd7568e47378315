//! IDX, the format of MNIST: four bytes that say the type and the number of dimensions, these as big-endian numbers, and the bytes.

use super::{Found, GreyFile, LabelledPicture, Source, wrong};
use crate::corpus::Error;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The longest file that is read into memory, unpacked.
const MOST_BYTES: u64 = 1 << 32;

/// The longest side of a picture.
const LONGEST: usize = 1 << 14;

pub(super) fn read(path: &Path, checksum: &mut crc32fast::Hasher) -> Result<Found, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = name.replace("images", "labels").replace("idx3", "idx1");
    if beside == name.replace("idx3", "idx1") {
        return Err(wrong(
            path,
            "must have `images` in its name: then its labels are in the file with `labels`",
        ));
    }
    let (sizes, images) = numbers::<3>(path, checksum)?;
    let labels_path = path.with_file_name(beside);
    let ([count], labels) = numbers::<1>(&labels_path, checksum)?;
    let [pictures, height, width] = sizes;
    if pictures != count {
        let problem = format!("has {count} labels, and {} has {pictures} pictures", path.display());
        return Err(wrong(&labels_path, &problem));
    }
    if height == 0 || width == 0 || height > LONGEST || width > LONGEST {
        return Err(wrong(path, &format!("has pictures of {width} × {height} pixels")));
    }
    let (bytes, size) = ((images.len() + labels.len()) as u64, [height, width]);
    let file = Arc::new(GreyFile { path: path.to_owned(), levels: images, size });
    let picture = |(number, label): (usize, &u8)| LabelledPicture {
        source: Source::Grey { file: Arc::clone(&file), number },
        label: label.to_string(),
    };
    Ok(Found { pictures: labels.iter().enumerate().map(picture).collect(), size: Some(size), bytes })
}

/// The sizes and the bytes of a file.
fn numbers<const DIMENSIONS: usize>(
    path: &Path,
    checksum: &mut crc32fast::Hasher,
) -> Result<([usize; DIMENSIONS], Vec<u8>), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let damaged = || Error::Damaged { path: path.to_owned() };
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        MultiGzDecoder::new(file).take(MOST_BYTES).read_to_end(&mut bytes).map_err(|_| damaged())?;
    } else {
        file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    }
    checksum.update(&bytes);
    let header = 4 + 4 * DIMENSIONS;
    if bytes.get(..4) != Some(&[0, 0, 8, DIMENSIONS as u8]) {
        return Err(wrong(path, &format!("is no IDX file of bytes in {DIMENSIONS} dimensions")));
    }
    let size = |i: usize| -> Option<usize> {
        let bytes = bytes.get(4 + 4 * i..8 + 4 * i)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(bytes)).ok()
    };
    let mut sizes = [0; DIMENSIONS];
    for (i, place) in sizes.iter_mut().enumerate() {
        *place = size(i).ok_or_else(damaged)?;
    }
    let expected = sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let rest = bytes.split_off(header);
    if expected != Some(rest.len()) {
        return Err(damaged());
    }
    Ok((sizes, rest))
}
