//! A part of a picture that is erased, drawn as in torchvision's `RandomErasing` (Zhong et al. 2017).

use super::crop::{between, place};
use attentive_image::Picture;
use attentive_tensor::Random;

/// How often a part is drawn before the picture stays whole.
const TRIES: u32 = 10;

/// The share of the area that is erased.
const SCALE: [f64; 2] = [0.02, 0.33];

/// The proportions of the part, height to width.
const RATIO: [f64; 2] = [0.3, 3.3];

/// Fills a part of the picture with a colour.
pub(super) fn erase(picture: &mut Picture, colour: [u8; 3], random: Random) {
    let size = [picture.width(), picture.height()];
    if let Some(part) = part(size, random) {
        let [left, top, width, height] = part.map(|length| length as i64);
        picture.fill(left, top, width, height, colour);
    }
}

/// Left and top edge, width and height of a part that is smaller than the picture on both sides; none if none was drawn.
fn part([width, height]: [usize; 2], random: Random) -> Option<[usize; 4]> {
    (0..TRIES).map(|i| 4 * i).find_map(|first| {
        let area = (width * height) as f64 * between(random, first, SCALE);
        let ratio = between(random, first + 1, RATIO.map(f64::ln)).exp();
        let [wide, high] = [area / ratio, area * ratio].map(|square| square.sqrt().round() as usize);
        (wide < width && high < height).then(|| {
            [place(random, first + 2, width - wide), place(random, first + 3, height - high), wide, high]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_erased_is_a_part_of_the_area_that_is_allowed() {
        for seed in 0..300 {
            let Some([left, top, w, h]) = part([40, 30], Random::new(seed)) else { continue };
            assert!(left + w <= 40 && top + h <= 30 && w < 40 && h < 30, "{left} {top} {w} {h}");
            // Sides are rounded.
            assert!((18..=430).contains(&(w * h)), "{w} × {h}");
        }
        let drawn = (0..300).filter(|seed| part([40, 30], Random::new(*seed)).is_some()).count();
        assert!(drawn > 290, "{drawn}");
        // Nothing of a single pixel is smaller than it is.
        for seed in 0..300 {
            assert!(part([1, 1], Random::new(seed)).is_none_or(|[.., w, h]| w * h == 0));
        }
    }
}
