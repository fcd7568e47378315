//! Resizing with the filters and the arithmetic of Pillow, to the bit.
//!
//! A pixel of the result is a weighted mean of the pixels around its position: first along rows, then along columns. If the picture
//! shrinks, the filter grows by the same factor, so that all pixels count. Weights are fixed-point numbers with 22 fractional bits, and the
//! result of each pass is rounded to 8 bits. That is why no other library gives the same pixels (those that were tried differ by up to 2 of
//! 255 levels).

use crate::decode::check_size;
use crate::error::Problem;
use crate::picture::Picture;
use std::f64::consts::PI;
use std::ops::Range;

/// The interpolation filter: the weight of a pixel by its distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The nearest pixel alone.
    Nearest,
    /// A windowed sinc over three pixels on each side.
    Lanczos,
    /// A triangle.
    Bilinear,
    /// A cubic with a = -0.5.
    Bicubic,
    /// The same weight for all pixels.
    Box,
    /// A windowed sinc over one pixel on each side.
    Hamming,
}

/// A region of a picture: left and top edge, width and height, in pixels, which need not be whole.
pub type Region = [f64; 4];

impl Filter {
    /// The filter with this number in Pillow, which `resample` in the files of transformers is.
    pub fn numbered(number: u64) -> Option<Filter> {
        let filters = [
            Filter::Nearest,
            Filter::Lanczos,
            Filter::Bilinear,
            Filter::Bicubic,
            Filter::Box,
            Filter::Hamming,
        ];
        usize::try_from(number).ok().and_then(|number| filters.get(number)).copied()
    }

    /// Its number in Pillow.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The radius of the filter in pixels.
    fn support(self) -> f64 {
        match self {
            Filter::Nearest | Filter::Box => 0.5,
            Filter::Bilinear | Filter::Hamming => 1.0,
            Filter::Bicubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    /// The weight of a pixel at the distance `x`, in pixels.
    fn weight(self, x: f64) -> f64 {
        let distance = x.abs();
        match self {
            Filter::Nearest | Filter::Box => f64::from(-0.5 < x && x <= 0.5),
            Filter::Bilinear => (1.0 - distance).max(0.0),
            Filter::Hamming if distance >= 1.0 => 0.0,
            Filter::Hamming => sinc(x) * (0.54 + 0.46 * (PI * x).cos()),
            Filter::Bicubic if distance < 1.0 => (1.5 * distance - 2.5) * distance * distance + 1.0,
            Filter::Bicubic if distance < 2.0 => {
                (((distance - 5.0) * distance + 8.0) * distance - 4.0) * -0.5
            }
            Filter::Bicubic => 0.0,
            Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

impl Picture {
    /// The picture in another size. Fails if the size is zero or too large.
    pub fn resized(&self, width: usize, height: usize, filter: Filter) -> Result<Picture, Problem> {
        self.region_resized([0.0, 0.0, self.width() as f64, self.height() as f64], width, height, filter)
    }

    /// A region of the picture in another size. Fails if the size is zero or too large.
    ///
    /// # Panics
    /// If the region is not inside of the picture.
    pub fn region_resized(
        &self,
        region: Region,
        width: usize,
        height: usize,
        filter: Filter,
    ) -> Result<Picture, Problem> {
        check_size(width, height)?;
        let [left, top, old_width, old_height] = region;
        let whole = [self.width() as f64, self.height() as f64];
        assert!(
            left >= 0.0 && top >= 0.0 && left + old_width <= whole[0] && top + old_height <= whole[1],
            "{region:?} is not inside of {self:?}"
        );
        if filter == Filter::Nearest {
            return Ok(self.nearest(region, width, height));
        }
        let is_whole = |from: f64, length: f64, old: usize, new: usize| {
            from == 0.0 && length == old as f64 && old == new
        };
        let mut means = (!is_whole(top, old_height, self.height(), height))
            .then(|| Mean::of_line(self.height(), [top, old_height], height, filter));
        // Only rows that the second pass reads go through the first.
        let rows = means.as_deref().map_or(0..self.height(), Mean::reach);
        let length = 3 * self.width();
        let read = &self.pixels()[rows.start * length..rows.end * length];
        let wide = if is_whole(left, old_width, self.width(), width) {
            read.to_vec()
        } else {
            check_size(width, rows.len())?;
            along_rows(read, length, &Mean::of_line(self.width(), [left, old_width], width, filter))
        };
        means.iter_mut().flatten().for_each(|mean| mean.first -= rows.start);
        let pixels = match means {
            Some(means) => along_columns(&wide, 3 * width, &means),
            None => wide,
        };
        Ok(Picture::new(width, height, pixels))
    }

    fn nearest(&self, [left, top, old_width, old_height]: Region, width: usize, height: usize) -> Picture {
        // Positions are sums of steps, as in Pillow: products would be rounded differently.
        let places = |from: f64, step: f64, count: usize, most: usize| {
            let place = move |place: &mut f64, _| {
                let here = *place;
                *place += step;
                Some((here as usize).min(most))
            };
            (0..count).scan(from + step * 0.5, place).collect::<Vec<usize>>()
        };
        let columns = places(left, old_width / width as f64, width, self.width() - 1);
        let rows = places(top, old_height / height as f64, height, self.height() - 1);
        let pixels = rows.iter().flat_map(|&y| columns.iter().flat_map(move |&x| self.pixel(x, y)));
        Picture::new(width, height, pixels.collect())
    }
}

/// The number of fractional bits of weights.
const BITS: u32 = 22;

/// A pixel of the result as a weighted mean of pixels of a line.
struct Mean {
    /// The first pixel of the mean.
    first: usize,
    /// The weights of this pixel and of those after it, times 2²².
    weights: Vec<i32>,
}

impl Mean {
    /// The means for `new` pixels from `length` pixels, beginning at `from`, of a line of `old` pixels.
    fn of_line(old: usize, [from, length]: [f64; 2], new: usize, filter: Filter) -> Vec<Mean> {
        let scale = length / new as f64;
        let grown = scale.max(1.0);
        let reach = filter.support() * grown;
        let mean = |i: usize| {
            let centre = from + (i as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(old);
            let weight = |place: usize| filter.weight((place as f64 - centre + 0.5) * (1.0 / grown));
            let weights: Vec<f64> = (first..end).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            let rounded = |weight: f64| {
                let weight = if sum == 0.0 { weight } else { weight / sum };
                (weight * f64::from(1 << BITS)).round() as i32
            };
            Mean { first, weights: weights.into_iter().map(rounded).collect() }
        };
        (0..new).map(mean).collect()
    }

    /// The range of pixels that the means read.
    fn reach(means: &[Mean]) -> Range<usize> {
        let first = means.iter().map(|mean| mean.first).min();
        let end = means.iter().map(|mean| mean.first + mean.weights.len()).max();
        first.unwrap_or_default()..end.unwrap_or_default()
    }
}

/// One half in fixed point: the shift of [`level`] truncates, so that adding it rounds.
const HALF: i32 = 1 << (BITS - 1);

fn level(sum: i32) -> u8 {
    (sum >> BITS).clamp(0, 255) as u8
}

/// The means along each row. A row has `length` bytes.
fn along_rows(rows: &[u8], length: usize, means: &[Mean]) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(rows.len() / length * 3 * means.len());
    for row in rows.chunks_exact(length) {
        for Mean { first, weights } in means {
            let mut sums = [HALF; 3];
            for (pixel, weight) in row[3 * first..].chunks_exact(3).zip(weights) {
                for (sum, level) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(*level) * weight;
                }
            }
            pixels.extend(sums.map(level));
        }
    }
    pixels
}

/// The means along the columns. A row has `length` bytes.
fn along_columns(pixels: &[u8], length: usize, means: &[Mean]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(length * means.len());
    let mut sums = vec![HALF; length];
    for Mean { first, weights } in means {
        sums.fill(HALF);
        for (line, weight) in pixels[first * length..].chunks_exact(length).zip(weights) {
            for (sum, level) in sums.iter_mut().zip(line) {
                *sum += i32::from(*level) * weight;
            }
        }
        lines.extend(sums.iter().map(|&sum| level(sum)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_the_numbers_of_pillow() {
        for number in 0..6 {
            assert_eq!(Filter::numbered(number).map(Filter::number), Some(number));
        }
        assert_eq!(Filter::numbered(6), None);
    }

    #[test]
    fn one_colour_stays_one_colour() {
        let picture = Picture::filled(31, 17, [3, 250, 128]);
        for number in 0..6 {
            let filter = Filter::numbered(number).unwrap();
            for [width, height] in [[5, 40], [40, 5], [31, 17], [1, 1]] {
                let resized = picture.resized(width, height, filter).unwrap();
                assert_eq!(resized, Picture::filled(width, height, [3, 250, 128]), "{filter:?}");
            }
        }
    }

    #[test]
    fn a_region_in_its_own_size_is_a_crop() {
        let pixels = (0..3 * 12 * 9).map(|i| (i * 53 % 256) as u8).collect();
        let picture = Picture::new(12, 9, pixels);
        for filter in [Filter::Nearest, Filter::Bicubic] {
            let region = picture.region_resized([2.0, 3.0, 6.0, 4.0], 6, 4, filter).unwrap();
            for (x, y) in [(0, 0), (5, 3), (2, 1)] {
                assert_eq!(region.pixel(x, y), picture.pixel(x + 2, y + 3), "{filter:?}");
            }
        }
    }

    #[test]
    fn empty_and_enormous_sizes_are_refused() {
        let picture = Picture::filled(3, 2, [0; 3]);
        assert!(picture.resized(100_000, 100_000, Filter::Bilinear).is_err());
        assert!(picture.resized(0, 5, Filter::Bilinear).is_err());
    }
}
