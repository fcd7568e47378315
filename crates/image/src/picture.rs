//! A picture in memory: `pixels[3 · (y · width + x)..]` is red, green and blue of the pixel in column `x` of row `y`.

use std::fmt;

/// Pixels of three bytes each, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// A picture of these pixels.
    ///
    /// # Panics
    /// If there are not three bytes for each pixel, or no pixels.
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Picture {
        assert!(width > 0 && height > 0, "a picture of {width} × {height} pixels");
        assert_eq!(pixels.len(), 3 * width * height, "bytes of a picture of {width} × {height} pixels");
        Picture { width, height, pixels }
    }

    /// A picture of one colour.
    ///
    /// # Panics
    /// If it has no pixels.
    pub fn filled(width: usize, height: usize, colour: [u8; 3]) -> Picture {
        Picture::new(width, height, colour.repeat(width * height))
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// All pixels, row by row: red, green and blue.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The colour in column `x` of row `y`.
    ///
    /// # Panics
    /// If the picture has no such pixel.
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = self.place(x, y);
        [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
    }

    /// Sets the colour of the pixel in column `x` of row `y`.
    ///
    /// # Panics
    /// If the picture has no such pixel.
    pub fn set(&mut self, x: usize, y: usize, colour: [u8; 3]) {
        let at = self.place(x, y);
        self.pixels[at..at + 3].copy_from_slice(&colour);
    }

    /// Replaces the colour of each pixel by `change` of it.
    pub(crate) fn change_pixels(&mut self, change: impl Fn([u8; 3]) -> [u8; 3]) {
        for pixel in self.pixels.as_chunks_mut::<3>().0 {
            *pixel = change(*pixel);
        }
    }

    fn place(&self, x: usize, y: usize) -> usize {
        assert!(x < self.width && y < self.height, "no pixel at {x}, {y} of {self:?}");
        3 * (y * self.width + x)
    }

    /// A picture of this width and height, whose pixel at `x, y` is the pixel of this picture at `from(x, y)`.
    fn rearranged(&self, [width, height]: [usize; 2], from: impl Fn(usize, usize) -> [usize; 2]) -> Picture {
        let mut pixels = Vec::with_capacity(3 * width * height);
        for y in 0..height {
            for x in 0..width {
                let [x, y] = from(x, y);
                let at = self.place(x, y);
                pixels.extend_from_slice(&self.pixels[at..at + 3]);
            }
        }
        Picture::new(width, height, pixels)
    }

    /// The region with this left and top edge, width and height.
    ///
    /// # Panics
    /// If the region is not inside of the picture, or has no pixels.
    pub fn cropped(&self, [left, top, width, height]: [usize; 4]) -> Picture {
        self.rearranged([width, height], |x, y| [left + x, top + y])
    }

    /// The picture mirrored horizontally.
    pub fn mirrored(&self) -> Picture {
        self.rearranged([self.width, self.height], |x, y| [self.width - 1 - x, y])
    }

    /// The picture rotated and mirrored as the `Orientation` of EXIF says; numbers other than 2 to 8 change nothing.
    pub fn oriented(self, orientation: u16) -> Picture {
        let (w, h) = (self.width, self.height);
        let (right, bottom) = (w - 1, h - 1);
        match orientation {
            2 => self.mirrored(),
            3 => self.rearranged([w, h], |x, y| [right - x, bottom - y]),
            4 => self.rearranged([w, h], |x, y| [x, bottom - y]),
            5 => self.rearranged([h, w], |x, y| [y, x]),
            6 => self.rearranged([h, w], |x, y| [y, bottom - x]),
            7 => self.rearranged([h, w], |x, y| [right - y, bottom - x]),
            8 => self.rearranged([h, w], |x, y| [right - y, x]),
            _ => self,
        }
    }

    /// The centre crop of `width × height` pixels. A smaller picture gets a black border; the left and the top border are as wide as the
    /// opposite one, or a pixel wider.
    ///
    /// # Panics
    /// If the crop has no pixels.
    pub fn centre(&self, width: usize, height: usize) -> Picture {
        // The left and top edge of the crop, which may be negative: Python's `//` rounds towards -∞.
        let edge = |whole: usize, crop: usize| (whole as isize - crop as isize).div_euclid(2);
        let (left, top) = (edge(self.width, width), edge(self.height, height));
        let mut crop = Picture::filled(width, height, [0; 3]);
        for y in 0..height {
            let row = usize::try_from(top + y as isize).ok().filter(|row| *row < self.height);
            let Some(row) = row else { continue };
            // The columns that both pictures have.
            let (from, to) = (left.max(0) as usize, (-left).max(0) as usize);
            let columns = (self.width - from).min(width - to);
            let (from, to) = (self.place(from, row), crop.place(to, y));
            crop.pixels[to..to + 3 * columns].copy_from_slice(&self.pixels[from..from + 3 * columns]);
        }
        crop
    }
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture({} × {})", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grey pixels of these levels.
    fn grey(width: usize, levels: &[u8]) -> Picture {
        let pixels: Vec<u8> = levels.iter().flat_map(|level| [*level; 3]).collect();
        Picture::new(width, levels.len() / width, pixels)
    }

    fn levels(picture: &Picture) -> Vec<u8> {
        picture.pixels.iter().step_by(3).copied().collect()
    }

    #[test]
    fn orientations_rotate_and_mirror() {
        let picture = grey(3, &[1, 2, 3, 4, 5, 6]);
        for (orientation, width, expected) in [
            (1, 3, [1, 2, 3, 4, 5, 6]),
            (2, 3, [3, 2, 1, 6, 5, 4]),
            (3, 3, [6, 5, 4, 3, 2, 1]),
            (4, 3, [4, 5, 6, 1, 2, 3]),
            (5, 2, [1, 4, 2, 5, 3, 6]),
            (6, 2, [4, 1, 5, 2, 6, 3]),
            (7, 2, [6, 3, 5, 2, 4, 1]),
            (8, 2, [3, 6, 2, 5, 1, 4]),
            (9, 3, [1, 2, 3, 4, 5, 6]),
        ] {
            let oriented = picture.clone().oriented(orientation);
            assert_eq!((oriented.width, &levels(&oriented)[..]), (width, &expected[..]), "{orientation}");
        }
    }

    #[test]
    fn the_centre_of_a_small_picture_has_a_border() {
        let picture = grey(3, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(levels(&picture.centre(1, 2)), [2, 5]);
        assert_eq!(levels(&picture.centre(2, 1)), [1, 2]);
        assert_eq!(levels(&picture.centre(4, 3)), [0, 0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6]);
        assert_eq!(levels(&picture.centre(5, 1)), [0, 1, 2, 3, 0]);
    }
}
