//! Colours that vary, drawn as in torchvision's `ColorJitter`.

use super::crop::between;
use attentive_image::Picture;
use attentive_tensor::Random;

/// How much brightness, contrast and saturation may differ from 1, and the hue from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ColorJitter {
    /// Of the brightness.
    pub brightness: f64,
    /// Of the contrast.
    pub contrast: f64,
    /// Of the saturation.
    pub saturation: f64,
    /// Of the hue, at most 0.5.
    pub hue: f64,
}

impl ColorJitter {
    /// From the numbers of timm's `color_jitter`: one for brightness, contrast and saturation alike, or one for each, or these and one for the
    /// hue. None where there are others, or no numbers at all.
    pub fn of(numbers: &[f64]) -> Option<ColorJitter> {
        match *numbers {
            [same] => Some(ColorJitter { brightness: same, contrast: same, saturation: same, hue: 0.0 }),
            [brightness, contrast, saturation] => {
                Some(ColorJitter { brightness, contrast, saturation, hue: 0.0 })
            }
            [brightness, contrast, saturation, hue] => {
                Some(ColorJitter { brightness, contrast, saturation, hue })
            }
            _ => None,
        }
    }

    /// Changes a picture: one kind of change after the other, in an order that is drawn, too.
    pub(super) fn apply(&self, picture: &mut Picture, random: Random) {
        let factor =
            |index: u32, most: f64| between(random, index, [(1.0 - most).max(0.0), 1.0 + most]) as f32;
        for change in order(random.split(0)) {
            match change {
                0 if self.brightness > 0.0 => picture.adjust_brightness(factor(0, self.brightness)),
                1 if self.contrast > 0.0 => picture.adjust_contrast(factor(1, self.contrast)),
                2 if self.saturation > 0.0 => picture.adjust_saturation(factor(2, self.saturation)),
                3 if self.hue > 0.0 => picture.adjust_hue(between(random, 3, [-self.hue, self.hue])),
                _ => {}
            }
        }
    }
}

/// The numbers from 0 to 3 in a random order (Fisher and Yates).
fn order(random: Random) -> [usize; 4] {
    let mut order = [0, 1, 2, 3];
    for last in (1..order.len()).rev() {
        order.swap(last, super::crop::place(random, last as u32, last));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn all_orders_are_alike() {
        let mut counts: HashMap<[usize; 4], usize> = HashMap::new();
        for seed in 0..2400 {
            *counts.entry(order(Random::new(seed))).or_default() += 1;
        }
        assert!(counts.len() == 24 && counts.values().all(|count| (60..150).contains(count)), "{counts:?}");
    }

    #[test]
    fn factors_stay_between_their_bounds() {
        let jitter = ColorJitter::of(&[0.4, 0.0, 0.0]).unwrap();
        let levels: Vec<u8> = (0..500)
            .map(|seed| {
                let mut picture = Picture::filled(1, 1, [100; 3]);
                jitter.apply(&mut picture, Random::new(seed));
                picture.pixel(0, 0)[0]
            })
            .collect();
        assert!(levels.iter().all(|level| (60..=140).contains(level)), "{levels:?}");
        assert!(levels.iter().any(|level| *level < 65) && levels.iter().any(|level| *level > 135));
    }

    #[test]
    fn one_number_leaves_the_hue_alone() {
        let same = ColorJitter { brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.0 };
        assert_eq!(ColorJitter::of(&[0.4]), Some(same));
        assert_eq!(ColorJitter::of(&[0.4; 2]), None);
    }
}
