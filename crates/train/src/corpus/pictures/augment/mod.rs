//! Pictures that are seen a little differently in each epoch.

use attentive_image::{Filter, Part, Picture, Problem};
use attentive_tensor::Random;

/// What is done to pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augment {
    /// The least share of a picture's area that is seen of it; 1 is the whole picture.
    pub crop_share: f64,
    /// Whether half of the pictures are seen in a mirror.
    pub flip: bool,
}

/// How often a part is drawn before the middle is taken.
const TRIES: u32 = 10;

/// The proportions that a part may have, width to height.
const PROPORTIONS: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0];

impl Augment {
    /// Whether parts of pictures are seen.
    pub fn crops(&self) -> bool {
        self.crop_share < 1.0
    }

    /// A part of a picture, drawn as in Inception and in torchvision's `RandomResizedCrop`, in this height and width.
    pub fn crop(
        &self,
        picture: &Picture,
        [height, width]: [usize; 2],
        filter: Filter,
        random: Random,
    ) -> Result<Picture, Problem> {
        picture.part_resized(self.part(picture, random), width, height, filter)
    }

    /// The picture, or what is seen of it in a mirror.
    pub fn flipped(&self, picture: Picture, random: Random) -> Picture {
        if self.flip && random.bits(4 * TRIES) & 1 == 1 { picture.mirrored() } else { picture }
    }

    fn part(&self, picture: &Picture, random: Random) -> Part {
        let [width, height] = [picture.width() as f64, picture.height() as f64];
        let between =
            |index: u32, [low, high]: [f64; 2]| low + f64::from(random.uniform(index)) * (high - low);
        for first in (0..TRIES).map(|i| 4 * i) {
            let area = width * height * between(first, [self.crop_share, 1.0]);
            let proportion = between(first + 1, PROPORTIONS.map(f64::ln)).exp();
            let part = [(area * proportion).sqrt().round(), (area / proportion).sqrt().round()];
            if part.iter().zip([width, height]).all(|(part, whole)| (1.0..=whole).contains(part)) {
                // Every place is as likely as any other.
                let place = |index, room: f64| (between(index, [0.0, room + 1.0]).floor()).min(room);
                let left = place(first + 2, width - part[0]);
                return [left, place(first + 3, height - part[1]), part[0], part[1]];
            }
        }
        let [narrow, wide] = PROPORTIONS;
        let part = match width / height {
            proportion if proportion < narrow => [width, (width / narrow).round()],
            proportion if proportion > wide => [(height * wide).round(), height],
            _ => [width, height],
        };
        [((width - part[0]) / 2.0).floor(), ((height - part[1]) / 2.0).floor(), part[0], part[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_inside_of_the_picture_and_as_large_as_they_must_be() {
        let augment = Augment { crop_share: 0.25, flip: true };
        for (width, height) in [(30, 20), (3, 50), (1, 1)] {
            let picture = Picture::filled(width, height, [7; 3]);
            for seed in 0..200 {
                let [left, top, w, h] = augment.part(&picture, Random::new(seed));
                assert!(left >= 0.0 && top >= 0.0 && w >= 1.0 && h >= 1.0);
                assert!(left + w <= width as f64 && top + h <= height as f64, "{left} {top} {w} {h}");
                if (width, height) == (30, 20) {
                    assert!((120.0..=600.0).contains(&(w * h)), "{w} × {h}");
                }
            }
        }
    }

    #[test]
    fn half_of_the_pictures_are_flipped() {
        let augment = Augment { crop_share: 1.0, flip: true };
        let picture = Picture::new(2, 1, vec![1, 1, 1, 2, 2, 2]);
        let flipped = |seed| augment.flipped(picture.clone(), Random::new(seed)) != picture;
        let count = (0..1000).filter(|seed| flipped(*seed)).count();
        assert!((450..550).contains(&count), "{count}");
    }
}
