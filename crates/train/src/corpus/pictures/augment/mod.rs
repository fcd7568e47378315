//! Pictures that are seen a little differently in each epoch, as torchvision and timm let a model see them.
//!
//! ```text
//! part, resized → mirror → colours → grey → blur → solarize → erased part
//! ```
//!
//! All follows from the chance that a picture has in its epoch: each kind of change draws from a part of it, and nothing is remembered.

mod colour;
mod crop;
mod erase;
mod mixup;

pub use colour::ColorJitter;
pub use mixup::share_of_mixup;

use attentive_image::{Filter, Picture, Problem};
use attentive_tensor::Random;

/// What is done to pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augment {
    /// The least and the greatest share of a picture's area that is seen of it; 1 and 1 is the whole picture.
    pub scale: [f64; 2],
    /// How likely a picture is seen in a mirror.
    pub hflip: f64,
    /// How colours vary.
    pub color_jitter: ColorJitter,
    /// How likely they do.
    pub color_jitter_prob: f64,
    /// How likely a picture loses its colours.
    pub grayscale_prob: f64,
    /// How likely it is blurred.
    pub gaussian_blur_prob: f64,
    /// How likely its bright levels are inverted.
    pub solarize_prob: f64,
    /// How likely a part of it is erased.
    pub reprob: f64,
}

/// The standard deviation of a blur in pixels, as DINO and timm draw it.
const BLUR: [f64; 2] = [0.1, 2.0];

/// The least level that is inverted.
const BRIGHT: u8 = 128;

// What each kind of change draws from.
const CROP: u64 = 0;
const FLIP: u64 = 1;
const JITTER: u64 = 2;
const GREY: u64 = 3;
const BLURRED: u64 = 4;
const SOLARIZED: u64 = 5;
const ERASED: u64 = 6;

impl Augment {
    /// Pictures as they are.
    pub const NONE: Augment = Augment {
        scale: [1.0; 2],
        hflip: 0.0,
        color_jitter: ColorJitter { brightness: 0.0, contrast: 0.0, saturation: 0.0, hue: 0.0 },
        color_jitter_prob: 1.0,
        grayscale_prob: 0.0,
        gaussian_blur_prob: 0.0,
        solarize_prob: 0.0,
        reprob: 0.0,
    };

    /// Whether parts of pictures are seen.
    pub fn crops(&self) -> bool {
        self.scale != [1.0; 2]
    }

    /// A part of a picture in this height and width.
    pub fn crop(
        &self,
        picture: &Picture,
        size: [usize; 2],
        filter: Filter,
        random: Random,
    ) -> Result<Picture, Problem> {
        crop::resized_crop(picture, self.scale, size, filter, random.split(CROP))
    }

    /// All other changes. What is erased gets the colour `erased`.
    pub fn change(&self, mut picture: Picture, erased: [u8; 3], random: Random) -> Picture {
        let happens = |kind: u64, p: f64| p > 0.0 && f64::from(random.split(kind).uniform(0)) < p;
        // What is drawn for a change that happens; its own part, so that it does not depend on whether it happens.
        let own = |kind: u64| random.split(kind).split(0);
        if happens(FLIP, self.hflip) {
            picture = picture.mirrored();
        }
        if happens(JITTER, self.color_jitter_prob) {
            self.color_jitter.apply(&mut picture, own(JITTER));
        }
        if happens(GREY, self.grayscale_prob) {
            picture.grey_out();
        }
        if happens(BLURRED, self.gaussian_blur_prob) {
            picture = picture.blurred(crop::between(own(BLURRED), 0, BLUR) as f32);
        }
        if happens(SOLARIZED, self.solarize_prob) {
            picture.solarize(BRIGHT);
        }
        if happens(ERASED, self.reprob) {
            erase::erase(&mut picture, erased, own(ERASED));
        }
        picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a thousand pictures, how many are changed.
    fn changed(augment: Augment) -> usize {
        let pixels = (0..3 * 64).map(|i| (i * 37 % 256) as u8).collect();
        let picture = Picture::new(8, 8, pixels);
        let differs = |seed: &u64| augment.change(picture.clone(), [0; 3], Random::new(*seed)) != picture;
        (0..1000).filter(differs).count()
    }

    #[test]
    fn each_change_happens_as_often_as_it_should() {
        let none = Augment::NONE;
        assert_eq!(changed(none), 0);
        let jitter = ColorJitter::of(&[0.4, 0.4, 0.4, 0.1]).unwrap();
        for (augment, expected) in [
            (Augment { hflip: 0.5, ..none }, 450..550),
            (Augment { color_jitter: jitter, color_jitter_prob: 0.8, ..none }, 750..850),
            (Augment { grayscale_prob: 0.2, ..none }, 150..250),
            (Augment { gaussian_blur_prob: 0.1, ..none }, 60..140),
            (Augment { solarize_prob: 0.3, ..none }, 250..350),
            (Augment { reprob: 0.25, ..none }, 200..300),
        ] {
            let count = changed(augment);
            assert!(expected.contains(&count), "{augment:?}: {count}");
        }
    }

    #[test]
    fn the_same_chance_gives_the_same_picture_and_another_one_another() {
        let picture = Picture::new(9, 7, (0..189).collect());
        let augment = Augment {
            scale: [0.3, 1.0],
            hflip: 0.5,
            color_jitter: ColorJitter::of(&[0.4]).unwrap(),
            ..Augment::NONE
        };
        let seen = |seed: u64| {
            let random = Random::new(seed);
            let part = augment.crop(&picture, [6, 6], Filter::Bicubic, random).unwrap();
            augment.change(part, [0; 3], random)
        };
        assert!(seen(1) == seen(1) && seen(1) != seen(2));
    }
}
