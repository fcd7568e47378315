//! Colour augmentation as torchvision does it on Pillow's pictures, with Pillow's arithmetic, to the bit.
//!
//! Brightness, contrast and saturation are one operation: a weighted sum of the picture and a degenerate one.
//!
//! ```text
//! level = degenerate + factor · (level - degenerate)
//! ```
//!
//! | | the degenerate picture |
//! |---|---|
//! | brightness | is black |
//! | contrast | has the mean grey level everywhere |
//! | saturation | is the same picture in grey |
//!
//! A factor of 0 gives the degenerate picture, 1 the picture itself. Levels are truncated, not rounded.

use crate::picture::Picture;

impl Picture {
    /// Changes the brightness.
    pub fn adjust_brightness(&mut self, factor: f32) {
        self.change_pixels(|pixel| blend([0; 3], pixel, factor));
    }

    /// Changes the contrast.
    pub fn adjust_contrast(&mut self, factor: f32) {
        let sum: u64 = self.pixels().chunks_exact(3).map(|pixel| u64::from(grey(pixel))).sum();
        let mean = (sum as f64 / (self.width() * self.height()) as f64 + 0.5) as u8;
        self.change_pixels(|pixel| blend([mean; 3], pixel, factor));
    }

    /// Changes the saturation.
    pub fn adjust_saturation(&mut self, factor: f32) {
        self.change_pixels(|pixel| blend([grey(&pixel); 3], pixel, factor));
    }

    /// Shifts all hues by a fraction of the colour circle, from -0.5 to 0.5.
    pub fn adjust_hue(&mut self, fraction: f64) {
        let shift = (fraction * 255.0) as i32 as u8;
        self.change_pixels(|pixel| {
            let [hue, saturation, value] = to_hsv(pixel);
            of_hsv([hue.wrapping_add(shift), saturation, value])
        });
    }

    /// Converts the picture to grey.
    pub fn grey_out(&mut self) {
        self.change_pixels(|pixel| [grey(&pixel); 3]);
    }

    /// Inverts all levels from `threshold` on.
    pub fn solarize(&mut self, threshold: u8) {
        self.change_pixels(|pixel| pixel.map(|level| if level < threshold { level } else { 255 - level }));
    }
}

/// The grey level of red, green and blue (ITU-R 601-2). Weights are fixed-point numbers with 16 fractional bits.
fn grey(pixel: &[u8]) -> u8 {
    let parts = [19_595u32, 38_470, 7_471];
    let sum: u32 = pixel.iter().zip(parts).map(|(&level, part)| u32::from(level) * part).sum();
    ((sum + (1 << 15)) >> 16) as u8
}

fn blend(degenerate: [u8; 3], pixel: [u8; 3], factor: f32) -> [u8; 3] {
    std::array::from_fn(|i| {
        let (from, to) = (f32::from(degenerate[i]), f32::from(pixel[i]));
        // `as` saturates at 0 and 255.
        (from + factor * (to - from)) as u8
    })
}

/// Hue, saturation and value, each from 0 to 255. Numbers are rounded to f32 where Pillow does it.
fn to_hsv([red, green, blue]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let below = |level: u8| f32::from(most - level) / range;
    let (r, g, b) = (below(red), below(green), below(blue));
    let hue = if red == most {
        b - g
    } else if green == most {
        (2.0 + f64::from(r) - f64::from(b)) as f32
    } else {
        (4.0 + f64::from(g) - f64::from(r)) as f32
    };
    let hue = ((f64::from(hue) / 6.0 + 1.0) % 1.0) as f32;
    let saturation = range / f32::from(most);
    [(f64::from(hue) * 255.0) as u8, (f64::from(saturation) * 255.0) as u8, most]
}

/// The inverse of [`to_hsv`].
fn of_hsv([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    if saturation == 0 {
        return [value; 3];
    }
    let place = f64::from(hue) * 6.0 / 255.0;
    let sixth = place.floor();
    let rest = f64::from((place - sixth) as f32);
    let share = f64::from((f64::from(saturation) / 255.0) as f32);
    let level = |part: f64| (f64::from(value) * part).round() as u8;
    let (low, falling, rising) =
        (level(1.0 - share), level(1.0 - share * rest), level(1.0 - share * (1.0 - rest)));
    match sixth as u8 % 6 {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(pixels: &[[u8; 3]], change: impl Fn(&mut Picture)) -> Vec<[u8; 3]> {
        let mut picture = Picture::new(pixels.len(), 1, pixels.concat());
        change(&mut picture);
        picture.pixels().as_chunks::<3>().0.to_vec()
    }

    /// Worked by hand: the grey levels of pure red, green and blue are 76, 150 and 29, their mean is 85.
    #[test]
    fn each_change_is_its_formula() {
        let pure = [[255, 0, 0], [0, 255, 0], [0, 0, 255]];
        assert_eq!(changed(&pure, Picture::grey_out), [[76; 3], [150; 3], [29; 3]]);
        assert_eq!(changed(&pure, |p| p.adjust_brightness(0.5))[0], [127, 0, 0]);
        assert_eq!(changed(&pure, |p| p.adjust_contrast(0.0)), [[85; 3]; 3]);
        assert_eq!(changed(&pure, |p| p.adjust_contrast(2.0))[1], [0, 255, 0]);
        assert_eq!(changed(&pure, |p| p.adjust_saturation(0.5))[0], [165, 38, 38]);
        // A third of the circle is 85 of 255.
        assert_eq!(changed(&pure, |p| p.adjust_hue(1.0 / 3.0)), [[0, 255, 0], [0, 0, 255], [255, 0, 0]]);
        assert_eq!(changed(&[[127, 128, 255]], |p| p.solarize(128)), [[127, 127, 0]]);
    }

    #[test]
    fn a_factor_of_one_leaves_every_bit() {
        let pixels: Vec<[u8; 3]> = (0..200u8).map(|i| [i, i.wrapping_mul(7), 255 - i]).collect();
        assert_eq!(changed(&pixels, |p| p.adjust_brightness(1.0)), pixels);
        assert_eq!(changed(&pixels, |p| p.adjust_contrast(1.0)), pixels);
        assert_eq!(changed(&pixels, |p| p.adjust_saturation(1.0)), pixels);
    }
}
