//! Parts of pictures, drawn as in Inception and in torchvision's `RandomResizedCrop`.

use attentive_image::{Filter, Picture, Problem};
use attentive_tensor::Random;

/// How often a part is drawn before the middle is taken.
const TRIES: u32 = 10;

/// The proportions that a part may have, width to height.
const RATIO: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0];

/// A part of a picture, whose share of the area is from `scale`, in this height and width.
pub(super) fn resized_crop(
    picture: &Picture,
    scale: [f64; 2],
    [height, width]: [usize; 2],
    filter: Filter,
    random: Random,
) -> Result<Picture, Problem> {
    let part = part([picture.width(), picture.height()], scale, random);
    picture.cropped(part).resized(width, height, filter)
}

/// Left and top edge, width and height of a part of a picture of this width and height.
fn part(size: [usize; 2], scale: [f64; 2], random: Random) -> [usize; 4] {
    let [width, height] = size.map(|length| length as f64);
    for first in (0..TRIES).map(|i| 4 * i) {
        let area = width * height * between(random, first, scale);
        let ratio = between(random, first + 1, RATIO.map(f64::ln)).exp();
        let part = [(area * ratio).sqrt().round(), (area / ratio).sqrt().round()];
        if part.iter().zip([width, height]).all(|(part, whole)| (1.0..=whole).contains(part)) {
            let part = part.map(|length| length as usize);
            let left = place(random, first + 2, size[0] - part[0]);
            return [left, place(random, first + 3, size[1] - part[1]), part[0], part[1]];
        }
    }
    let [narrow, wide] = RATIO;
    let part = match width / height {
        ratio if ratio < narrow => [size[0], (width / narrow).round() as usize],
        ratio if ratio > wide => [(height * wide).round() as usize, size[1]],
        _ => size,
    };
    [(size[0] - part[0]) / 2, (size[1] - part[1]) / 2, part[0], part[1]]
}

/// A number between two others.
pub(super) fn between(random: Random, index: u32, [low, high]: [f64; 2]) -> f64 {
    low + f64::from(random.uniform(index)) * (high - low)
}

/// A whole number from 0 to `room`, each as likely as any other.
pub(super) fn place(random: Random, index: u32, room: usize) -> usize {
    ((f64::from(random.uniform(index)) * (room as f64 + 1.0)) as usize).min(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_inside_of_the_picture_and_as_large_as_they_must_be() {
        for size in [[30, 20], [3, 50], [1, 1]] {
            for seed in 0..200 {
                let [left, top, w, h] = part(size, [0.25, 0.5], Random::new(seed));
                assert!(
                    w >= 1 && h >= 1 && left + w <= size[0] && top + h <= size[1],
                    "{left} {top} {w} {h}"
                );
                if size == [30, 20] {
                    // Sides are rounded.
                    assert!((125..=330).contains(&(w * h)), "{w} × {h}");
                }
            }
        }
    }

    #[test]
    fn parts_come_from_everywhere() {
        let corners: Vec<[usize; 2]> = (0..400)
            .map(|seed| part([8, 8], [0.2, 0.3], Random::new(seed)))
            .map(|[left, top, ..]| [left, top])
            .collect();
        let share = |axis: usize| {
            corners.iter().map(|corner| corner[axis] as f64).sum::<f64>() / corners.len() as f64
        };
        assert!((1.6..2.4).contains(&share(0)) && (1.6..2.4).contains(&share(1)), "{corners:?}");
    }
}
