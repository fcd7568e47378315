//! Preparing pictures for a model, as `preprocessor_config.json` or `processor_config.json` says.
//!
//! ```text
//! resize → crop → · rescale_factor → (x - mean) / std → pad
//! ```

mod file;

use crate::decode::check_size;
use crate::error::{Error, Problem};
use crate::picture::Picture;
use crate::resize::Filter;
use std::path::Path;

/// The rule for the size of resized pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// This height and width. The aspect ratio is not kept.
    Exact {
        /// The height.
        height: usize,
        /// The width.
        width: usize,
    },
    /// The shorter side has this length.
    Shortest(usize),
    /// The shorter side has the first length, or less, so that the longer side is at most the second length.
    ShortestWithin(usize, usize),
    /// The largest size within these limits.
    Within {
        /// The greatest height.
        height: usize,
        /// The greatest width.
        width: usize,
    },
}

impl Size {
    /// The new width and height of a picture with this width and height, rounded as in transformers.
    pub fn of(self, width: usize, height: usize) -> [usize; 2] {
        let (short, long) = (width.min(height), width.max(height));
        // The new longer side if this is the new shorter side.
        let longer = |new: f64| (new * long as f64 / short as f64) as usize;
        let sides = |short: usize, long: usize| if width <= height { [short, long] } else { [long, short] };
        match self {
            Size::Exact { height, width } => [width, height],
            Size::Shortest(size) => sides(size, longer(size as f64)),
            Size::ShortestWithin(size, most) => {
                let grown = long as f64 / short as f64 * size as f64;
                let exact =
                    if grown > most as f64 { most as f64 * short as f64 / long as f64 } else { size as f64 };
                // Python rounds halves to the even neighbour.
                let rounded = exact.round_ties_even() as usize;
                if rounded == short { [width, height] } else { sides(rounded, longer(exact)) }
            }
            Size::Within { height: most_height, width: most_width } => {
                let factor = (most_height as f64 / height as f64).min(most_width as f64 / width as f64);
                [(width as f64 * factor) as usize, (height as f64 * factor) as usize]
            }
        }
    }
}

/// How pictures are prepared for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// The size and the filter of resizing.
    pub resize: Option<(Size, Filter)>,
    /// The height and width of the centre crop.
    pub crop: Option<[usize; 2]>,
    /// The factor of the levels, which are 0 to 255.
    pub rescale: Option<f64>,
    /// The mean and the standard deviation of red, green and blue: `(x - mean) / deviation`.
    pub normalise: Option<[[f32; 3]; 2]>,
    /// The height and width after padding, with zeros on the right and below.
    pub pad: Option<[usize; 2]>,
}

/// A prepared picture: a plane for each of red, green and blue, `[3, height, width]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pixels {
    /// The number of rows.
    pub height: usize,
    /// The number of columns.
    pub width: usize,
    /// The numbers.
    pub numbers: Vec<f32>,
}

impl Processor {
    /// Reads the processor of a model folder. It is an error if the folder has none: a model does not work with pictures that are prepared
    /// in another way than in training.
    pub fn of(folder: &Path) -> Result<Processor, Error> {
        file::read(folder)
    }

    /// The processor of ViT: pictures are resized to this height and width, and levels become numbers from -1 to 1.
    pub fn plain(height: usize, width: usize) -> Processor {
        Processor {
            resize: Some((Size::Exact { height, width }, Filter::Bilinear)),
            crop: None,
            rescale: Some(1.0 / 255.0),
            normalise: Some([[0.5; 3]; 2]),
            pad: None,
        }
    }

    /// The contents of a `preprocessor_config.json` that [`Processor::of`] reads.
    pub fn to_json(&self) -> String {
        self.to_json_as(file::class_of(self))
    }

    /// [`Processor::to_json`] with the name of a class of transformers, such as `DetrImageProcessor`.
    pub fn to_json_as(&self, class: &str) -> String {
        file::text(self, class)
    }

    /// The width and height after [`Processor::process`] of a picture with this width and height.
    pub fn size_of(&self, width: usize, height: usize) -> [usize; 2] {
        let resized = self.resize.map_or([width, height], |(size, _)| size.of(width, height));
        self.pad.or(self.crop).map_or(resized, |[height, width]| [width, height])
    }

    /// The resized and cropped picture, before rescaling and normalising.
    pub fn fit(&self, picture: &Picture) -> Result<Picture, Problem> {
        let resized = match self.resize {
            Some((size, filter)) => {
                let [width, height] = size.of(picture.width(), picture.height());
                Some(picture.resized(width, height, filter)?)
            }
            None => None,
        };
        let cropped = match self.crop {
            Some([height, width]) => {
                check_size(width, height)?;
                Some(resized.as_ref().unwrap_or(picture).centre(width, height))
            }
            None => None,
        };
        Ok(cropped.or(resized).unwrap_or_else(|| picture.clone()))
    }

    /// The prepared picture: resized, cropped, rescaled, normalised and padded.
    pub fn process(&self, picture: &Picture) -> Result<Pixels, Problem> {
        let pixels = self.numbers(&self.fit(picture)?);
        match self.pad {
            Some(size) => pixels.padded(size),
            None => Ok(pixels),
        }
    }

    /// The rescaled and normalised picture, in its own size.
    pub fn numbers(&self, picture: &Picture) -> Pixels {
        let tables = [0, 1, 2].map(|channel| self.table(channel));
        let bytes = picture.pixels();
        let plane = |(channel, table): (usize, &[f32; 256])| -> Vec<f32> {
            bytes[channel..].iter().step_by(3).map(|byte| table[usize::from(*byte)]).collect()
        };
        let numbers = tables.iter().enumerate().flat_map(plane).collect();
        Pixels { height: picture.height(), width: picture.width(), numbers }
    }

    /// The colour whose normalised numbers are nearest to zero.
    pub fn mean_colour(&self) -> [u8; 3] {
        let [mean, _] = self.normalise.unwrap_or_default();
        let level = |mean: f32| (f64::from(mean) / self.rescale.unwrap_or(1.0)).round() as u8;
        mean.map(level)
    }

    /// The number for each level of a channel, rounded where transformers rounds.
    fn table(&self, channel: usize) -> [f32; 256] {
        std::array::from_fn(|byte| {
            let rescaled = self.rescale.map_or(byte as f32, |factor| (byte as f64 * factor) as f32);
            self.normalise
                .map_or(rescaled, |[mean, deviation]| (rescaled - mean[channel]) / deviation[channel])
        })
    }
}

impl Pixels {
    /// Pads with zeros on the right and below. Fails if the picture is larger than that.
    pub fn padded(self, [height, width]: [usize; 2]) -> Result<Pixels, Problem> {
        if [height, width] == [self.height, self.width] {
            return Ok(self);
        }
        if self.height > height || self.width > width {
            let problem = format!(
                "{} × {} pixels do not fit into the {width} × {height} that pad_size says",
                self.width, self.height
            );
            return Err(Problem::new(problem));
        }
        check_size(width, height)?;
        let mut numbers = vec![0.0; 3 * height * width];
        for (row, from) in self.numbers.chunks_exact(self.width).enumerate() {
            let (plane, row) = (row / self.height, row % self.height);
            numbers[(plane * height + row) * width..][..self.width].copy_from_slice(from);
        }
        Ok(Pixels { height, width, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_in_python() {
        for (size, from, expected) in [
            (Size::Exact { height: 2, width: 3 }, [9, 9], [3, 2]),
            (Size::Shortest(224), [640, 480], [298, 224]),
            (Size::Shortest(224), [480, 641], [224, 299]),
            (Size::ShortestWithin(800, 1333), [640, 480], [1066, 800]),
            (Size::ShortestWithin(800, 1333), [500, 1000], [666, 1333]),
            (Size::ShortestWithin(800, 1333), [800, 900], [800, 900]),
            (Size::Within { height: 10, width: 30 }, [100, 50], [20, 10]),
        ] {
            assert_eq!(size.of(from[0], from[1]), expected, "{size:?} of {from:?}");
        }
    }

    #[test]
    fn numbers_are_planes() {
        let picture = Picture::new(2, 1, vec![0, 255, 51, 255, 0, 102]);
        let processor = Processor { resize: None, ..Processor::plain(1, 2) };
        let pixels = processor.process(&picture).unwrap();
        assert_eq!((pixels.height, pixels.width), (1, 2));
        assert_eq!(pixels.numbers, [-1.0, 1.0, 1.0, -1.0, (0.2f32 - 0.5) / 0.5, (0.4f32 - 0.5) / 0.5]);
        let padded = pixels.clone().padded([2, 3]).unwrap();
        assert_eq!(padded.numbers[..6], [-1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert!(pixels.padded([1, 1]).is_err());
    }

    #[test]
    fn sizes_are_known_before_a_picture_is_read() {
        let resize = Some((Size::Shortest(4), Filter::Bilinear));
        let resized = Processor { resize, ..Processor::plain(1, 1) };
        let cropped = Processor { crop: Some([3, 2]), ..resized.clone() };
        let padded = Processor { pad: Some([9, 12]), ..resized.clone() };
        for processor in [Processor { resize: None, ..resized.clone() }, resized, cropped, padded] {
            let pixels = processor.process(&Picture::filled(8, 5, [0; 3])).unwrap();
            assert_eq!(processor.size_of(8, 5), [pixels.width, pixels.height], "{processor:?}");
        }
    }

    #[test]
    fn a_long_thin_picture_is_refused_before_it_becomes_enormous() {
        let picture = Picture::filled(1, 50_000, [0; 3]);
        let processor =
            Processor { resize: Some((Size::Shortest(224), Filter::Bicubic)), ..Processor::plain(1, 1) };
        let problem = processor.fit(&picture).unwrap_err().to_string();
        assert!(problem.contains("more than 100 million"), "{problem}");
    }
}
