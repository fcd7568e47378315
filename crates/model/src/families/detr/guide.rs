//! The guide: an auxiliary loss that gives the encoder targets of its own while a new model learns.
//!
//! At first the decoder finds no objects, and the encoder learns only through the decoder: a DETR with random weights had learned nothing
//! after 1,500 steps. The guide applies the class and box heads to each cell of the encoder's feature map, too. The target of a cell is the
//! object that covers its centre, so no matching is needed. The decoder then only has to attend to the right cells.
//!
//! arXiv:2211.12860 has such a loss with further heads. Here the heads are those of the decoder, so the trained model is a plain DETR.

use super::loss::{RowTarget, Targets};
use attentive_tensor::Pictures;
use std::ops::RangeInclusive;

/// The weight of the class loss in a new model. It is 1 in the paper, whose backbone was pretrained on ImageNet. With random weights the
/// gradient of the boxes is so much larger that the classes are learned late.
pub(super) const CLASS_LOSS: f64 = 4.0;

/// The target of each cell of the feature maps: the smallest object that covers the centre of the cell.
///
/// An object that covers no centre is the target of the cell in which its own centre lies. A smaller object takes cells from a larger one,
/// which may lose all of its cells.
pub(super) fn cell_targets(maps: &Pictures, targets: &[Targets]) -> Vec<RowTarget> {
    let mut cells = Vec::new();
    for (&[rows, columns], targets) in maps.sizes().iter().zip(targets) {
        let first = cells.len();
        cells.resize(first + rows * columns, None);
        let mut objects: Vec<_> =
            targets.classes.iter().copied().zip(targets.boxes.iter().copied()).collect();
        // The largest first: a later object overwrites the cells of earlier ones.
        objects.sort_by(|(_, a), (_, b)| (b[2] * b[3]).total_cmp(&(a[2] * a[3])));
        for (class, located) in objects {
            let [x, y, width, height] = located;
            for row in covered(y, height, rows) {
                for column in covered(x, width, columns) {
                    cells[first + row * columns + column] = Some((class, located));
                }
            }
        }
    }
    cells
}

/// The cells whose centres lie inside an interval with this centre and length, where `count` cells divide the unit length. If no centre
/// lies inside, the cell that contains the centre of the interval.
fn covered(centre: f64, length: f64, count: usize) -> RangeInclusive<usize> {
    let cell = |at: f64| at.clamp(0.0, count as f64 - 1.0) as usize;
    let first = cell(((centre - length / 2.0) * count as f64 - 0.5).ceil());
    let last = cell(((centre + length / 2.0) * count as f64 - 0.5).floor());
    let own = cell((centre * count as f64).floor());
    if first <= last { first..=last } else { own..=own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_cell_is_the_smallest_object_that_covers_its_centre() {
        let large = [0.5, 0.5, 1.0, 1.0];
        let small = [0.625, 0.5, 0.25, 0.8];
        let between = [0.26, 0.34, 0.01, 0.01];
        let first = Targets { classes: vec![4, 5, 6], boxes: vec![small, large, between] };
        // Outside of the picture: files may contain such boxes.
        let second = Targets { classes: vec![7], boxes: vec![[1.5, -0.5, 0.1, 0.1]] };
        let maps = Pictures::new([[3, 4], [2, 2], [1, 1]]);
        let found: Vec<Option<usize>> = cell_targets(&maps, &[first, second, Targets::default()])
            .into_iter()
            .map(|target| target.map(|(class, _)| class))
            .collect();
        let [four, five, six] = [Some(4), Some(5), Some(6)];
        assert_eq!(found[..12], [five, five, four, five, five, six, four, five, five, five, four, five]);
        assert_eq!(found[12..], [None, Some(7), None, None, None]);
    }

    #[test]
    fn an_interval_covers_the_cells_whose_centres_it_contains() {
        assert_eq!(covered(0.5, 1.0, 8), 0..=7);
        assert_eq!(covered(0.5, 0.5, 8), 2..=5);
        assert_eq!(covered(0.5, 0.12, 8), 4..=4);
        assert_eq!(covered(0.0, 0.01, 8), 0..=0);
        assert_eq!(covered(1.0, 0.01, 8), 7..=7);
    }
}
