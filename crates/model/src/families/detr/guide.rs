//! The guide of a new model: what each place of a picture is to say.
//!
//! At first the decoder finds nothing in what the encoder says, and the encoder learns only from what the decoder finds, so that a DETR
//! from random weights learned nothing in the 1,500 steps that were tried. A guide tells the encoder from the first step on: the heads read its places,
//! too, and a place is to say what thing it lies in. The decoder then has but to look there. Others have such a loss with more heads
//! (arXiv:2211.12860). Here the heads are those of the decoder, so that a learned model is a DETR and nothing else.

use super::loss::{Targets, Wanted};
use attentive_tensor::Pictures;
use std::ops::RangeInclusive;

/// What the classes count in the loss of a new model. In the paper they count 1, after a training on the classes of ImageNet. From random
/// weights the gradient of the boxes is so much larger that classes are learned late.
pub(super) const CLASS_LOSS: f64 = 4.0;

/// What each place of pictures is to say: the smallest thing around its centre. A thing around none has the place that its own centre is in.
/// A smaller thing takes the places of a larger one, which then may have none.
pub(super) fn wanted(places: &Pictures, targets: &[Targets]) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (&[rows, columns], targets) in places.sizes().iter().zip(targets) {
        let first = wanted.len();
        wanted.resize(first + rows * columns, None);
        let mut things: Vec<_> = targets.classes.iter().copied().zip(targets.boxes.iter().copied()).collect();
        // What comes later takes the places of what came before.
        things.sort_by(|(_, a), (_, b)| (b[2] * b[3]).total_cmp(&(a[2] * a[3])));
        for (class, located) in things {
            let [x, y, width, height] = located;
            for row in within(y, height, rows) {
                for column in within(x, width, columns) {
                    wanted[first + row * columns + column] = Some((class, located));
                }
            }
        }
    }
    wanted
}

/// The places, of so many along an axis, whose centres are within a side with this centre.
fn within(centre: f64, side: f64, count: usize) -> RangeInclusive<usize> {
    let place = |at: f64| at.clamp(0.0, count as f64 - 1.0) as usize;
    let first = place(((centre - side / 2.0) * count as f64 - 0.5).ceil());
    let last = place(((centre + side / 2.0) * count as f64 - 0.5).floor());
    let own = place((centre * count as f64).floor());
    if first <= last { first..=last } else { own..=own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_say_the_smallest_thing_around_them_and_a_thing_around_none_has_its_own() {
        let large = [0.5, 0.5, 1.0, 1.0];
        let small = [0.625, 0.5, 0.25, 0.8];
        let between = [0.26, 0.34, 0.01, 0.01];
        let first = Targets { classes: vec![4, 5, 6], boxes: vec![small, large, between] };
        // Outside of the picture, as a model may be told by a file.
        let second = Targets { classes: vec![7], boxes: vec![[1.5, -0.5, 0.1, 0.1]] };
        let places = Pictures::new([[3, 4], [2, 2], [1, 1]]);
        let found: Vec<Option<usize>> = wanted(&places, &[first, second, Targets::default()])
            .into_iter()
            .map(|wanted| wanted.map(|(class, _)| class))
            .collect();
        let [four, five, six] = [Some(4), Some(5), Some(6)];
        assert_eq!(found[..12], [five, five, four, five, five, six, four, five, five, five, four, five]);
        assert_eq!(found[12..], [None, Some(7), None, None, None]);
    }

    #[test]
    fn a_side_has_the_places_whose_centres_it_holds() {
        assert_eq!(within(0.5, 1.0, 8), 0..=7);
        assert_eq!(within(0.5, 0.5, 8), 2..=5);
        assert_eq!(within(0.5, 0.12, 8), 4..=4);
        assert_eq!(within(0.0, 0.01, 8), 0..=0);
        assert_eq!(within(1.0, 0.01, 8), 7..=7);
    }
}
