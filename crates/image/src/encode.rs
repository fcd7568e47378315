//! Pictures as PNG files.

use crate::error::Error;
use crate::picture::Picture;
use std::path::Path;

impl Picture {
    /// The picture as a PNG file, eight bits for each of red, green and blue.
    pub fn to_png(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let [width, height] =
            [self.width(), self.height()].map(|size| u32::try_from(size).expect("fewer than 2³² pixels"));
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(self.pixels()));
        written.expect("writing to memory succeeds, and the number of bytes matches the size");
        file
    }

    /// Writes the picture to a PNG file.
    pub fn save_png(&self, path: &Path) -> Result<(), Error> {
        std::fs::write(path, self.to_png()).map_err(|source| Error::file(path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_comes_back_from_its_file() {
        let pixels = (0..3 * 7 * 5).map(|i| (i * 37 % 256) as u8).collect();
        let picture = Picture::new(7, 5, pixels);
        assert_eq!(Picture::decode(&picture.to_png()).unwrap(), picture);
    }
}
