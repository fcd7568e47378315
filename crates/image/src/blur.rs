//! Gaussian blur with the arithmetic of Pillow, to the bit: three passes of a box filter in each direction, which together have the
//! deviation of the Gaussian (Gwosdek et al. 2011).
//!
//! The box extends `r` whole pixels to each side, and a fraction `a` of a pixel further. Pixels beyond the edge repeat the pixel at the
//! edge. Weights are fixed-point numbers with 24 fractional bits, and the result of each pass is rounded to 8 bits.

use crate::picture::Picture;

/// The number of box filters that together approximate a Gaussian.
const PASSES: usize = 3;

/// The number of fractional bits of weights.
const BITS: u32 = 24;

impl Picture {
    /// The picture blurred by a Gaussian with this standard deviation, in pixels. Zero changes nothing.
    ///
    /// # Panics
    /// If the deviation is negative or NaN.
    pub fn blurred(&self, deviation: f32) -> Picture {
        assert!(deviation >= 0.0, "a blur of {deviation} pixels");
        if deviation == 0.0 {
            return self.clone();
        }
        let (width, height, window) = (self.width(), self.height(), Window::of(deviation));
        let mut pixels = self.pixels().to_vec();
        for channel in 0..3 {
            for row in 0..height {
                window.blur(&mut pixels, 3 * row * width + channel, 3, width);
            }
            for column in 0..width {
                window.blur(&mut pixels, 3 * column + channel, 3 * width, height);
            }
        }
        Picture::new(width, height, pixels)
    }
}

/// A box filter.
struct Window {
    /// The number of whole pixels on each side.
    reach: usize,
    /// The weight of a whole pixel.
    whole: u32,
    /// The weight of the pixels at both ends.
    part: u32,
}

impl Window {
    /// The box filter whose three passes have this deviation. Numbers are rounded to f32 where Pillow does it.
    fn of(deviation: f32) -> Window {
        let variance = deviation * deviation / PASSES as f32;
        let length = (12.0 * f64::from(variance) + 1.0).sqrt() as f32;
        let reach = ((f64::from(length) - 1.0) / 2.0).floor() as f32;
        let part = (2.0 * reach + 1.0) * (reach * (reach + 1.0) - 3.0 * variance)
            / (6.0 * (variance - (reach + 1.0) * (reach + 1.0)));
        let radius = reach + part;
        let reach = radius as usize;
        let one = 1u32 << BITS;
        let whole = (one as f32 / (radius * 2.0 + 1.0)) as u32;
        Window { reach, whole, part: (one - (2 * reach as u32 + 1) * whole) / 2 }
    }

    /// Blurs `count` bytes that are `step` apart, beginning at `first`.
    fn blur(&self, bytes: &mut [u8], first: usize, step: usize, count: usize) {
        let mut line: Vec<u32> = (0..count).map(|i| u32::from(bytes[first + i * step])).collect();
        for _ in 0..PASSES {
            line = self.means(&line);
        }
        for (i, level) in line.into_iter().enumerate() {
            bytes[first + i * step] = level as u8;
        }
    }

    fn means(&self, line: &[u32]) -> Vec<u32> {
        let reach = self.reach as isize;
        let at = |place: isize| line[place.clamp(0, line.len() as isize - 1) as usize];
        let mut sum: u32 = (-reach..=reach).map(at).sum();
        let mean = |place: isize| {
            let ends = at(place - reach - 1) + at(place + reach + 1);
            let mean = (sum * self.whole + ends * self.part + (1 << (BITS - 1))) >> BITS;
            sum = sum + at(place + reach + 1) - at(place - reach);
            mean
        };
        (0..line.len() as isize).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blur_spreads_a_point_evenly_and_keeps_one_colour() {
        let mut point = Picture::filled(31, 31, [0; 3]);
        point.set(15, 15, [255, 0, 0]);
        let blurred = point.blurred(1.5);
        let red = |x, y| blurred.pixel(x, y)[0];
        assert_eq!([red(14, 15), red(15, 14), red(15, 16)], [red(16, 15); 3]);
        assert!(red(15, 15) > red(16, 15) && red(16, 15) > red(17, 15) && red(25, 15) == 0);
        let plain = Picture::filled(5, 3, [9, 200, 255]);
        assert_eq!(plain.blurred(2.0), plain);
        // The box is wider than the picture.
        assert_eq!(plain.blurred(50.0), plain);
    }
}
