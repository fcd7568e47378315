//! Drawing boxes and labels on pictures.

mod font;

use crate::Picture;
use font::{HEIGHT, WIDTH, glyph};

/// Colours that are easy to distinguish, on dark and on bright pictures.
const COLOURS: [[u8; 3]; 8] = [
    [230, 60, 50],
    [40, 120, 220],
    [30, 160, 80],
    [240, 150, 20],
    [150, 70, 200],
    [20, 170, 180],
    [220, 70, 150],
    [130, 120, 30],
];

/// The colour of the class with this number.
pub fn colour_of(class: usize) -> [u8; 3] {
    COLOURS[class % COLOURS.len()]
}

impl Picture {
    /// Draws a frame along the inner edges of a box, `[left, top, width, height]`, and a label above it, or inside of it if there is no
    /// room above. What lies outside of the picture is clipped.
    pub fn frame(&mut self, bbox: [f64; 4], colour: [u8; 3], word: &str) {
        let size = self.width().min(self.height());
        let (thickness, scale) = ((size / 250).clamp(1, 8) as i64, (size / 400).clamp(1, 6) as i64);
        let [left, top, width, height] = bbox.map(|x| x.round().clamp(-1e6, 1e6) as i64);
        let (right, bottom) = (left + width.max(1), top + height.max(1));
        for (x, y, wide, high) in [
            (left, top, right - left, thickness),
            (left, bottom - thickness, right - left, thickness),
            (left, top, thickness, bottom - top),
            (right - thickness, top, thickness, bottom - top),
        ] {
            self.fill(x, y, wide, high, colour);
        }
        if !word.is_empty() {
            let high = (HEIGHT as i64 + 2) * scale;
            let above = if top >= high { top - high } else { top };
            self.label(left, above, scale, colour, word);
        }
    }

    /// Writes a word in white on a background of this colour, with its top left corner at `x, y`.
    fn label(&mut self, x: i64, y: i64, scale: i64, colour: [u8; 3], word: &str) {
        let (advance, letters) = (WIDTH as i64 + 1, word.chars().count() as i64);
        self.fill(x, y, (letters * advance + 1) * scale, (HEIGHT as i64 + 2) * scale, colour);
        for (number, letter) in word.chars().enumerate() {
            let columns = glyph(letter);
            for (column, bits) in columns.iter().enumerate() {
                for row in (0..HEIGHT).filter(|row| bits >> row & 1 == 1) {
                    let at = x + (number as i64 * advance + column as i64 + 1) * scale;
                    self.fill(at, y + (row as i64 + 1) * scale, scale, scale, [255; 3]);
                }
            }
        }
    }

    /// Fills a rectangle, clipped to the picture.
    pub fn fill(&mut self, x: i64, y: i64, width: i64, height: i64, colour: [u8; 3]) {
        let inside = |from: i64, length: i64, end: usize| {
            let end = end as i64;
            from.clamp(0, end) as usize..(from + length).clamp(0, end) as usize
        };
        let columns = inside(x, width, self.width());
        for y in inside(y, height, self.height()) {
            for x in columns.clone() {
                self.set(x, y, colour);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_clipped_to_the_picture() {
        let mut picture = Picture::filled(8, 6, [0; 3]);
        picture.frame([2.0, 1.0, 4.0, 4.0], [9; 3], "");
        let row = |y: usize| (0..8).map(|x| picture.pixel(x, y)[0]).collect::<Vec<_>>();
        assert_eq!(row(0), [0; 8]);
        assert_eq!(row(1), [0, 0, 9, 9, 9, 9, 0, 0]);
        assert_eq!(row(2), [0, 0, 9, 0, 0, 9, 0, 0]);
        assert_eq!(row(4), [0, 0, 9, 9, 9, 9, 0, 0]);
        assert_eq!(row(5), [0; 8]);
        let mut picture = Picture::filled(8, 6, [0; 3]);
        picture.frame([-5.0, -5.0, 1e12, f64::NAN], [9; 3], "a word that is too long");
        picture.frame([100.0, 100.0, 5.0, 5.0], [9; 3], "outside");
    }

    #[test]
    fn words_are_written_in_white() {
        let mut picture = Picture::filled(20, 20, [0; 3]);
        picture.frame([1.0, 10.0, 5.0, 5.0], [9; 3], "I");
        let letters = picture.pixels().chunks_exact(3).filter(|pixel| *pixel == [255; 3]).count();
        assert_eq!(letters, glyph('I').iter().map(|bits| bits.count_ones() as usize).sum::<usize>());
        assert_eq!(glyph('é'), glyph('?'));
    }
}
