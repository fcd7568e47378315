//! The set prediction loss: each object of a picture is matched with one query, and the target of all other queries is "no object".
//!
//! ```text
//! cost of a match = c₁·(-p(class)) + c₂·Σ|b - b̂| + c₃·(-GIoU(b, b̂))
//! loss = λ₀·Σ w·(-log p(class)) / Σ w  +  λ₁·Σ|b - b̂| / n  +  λ₂·Σ (1 - GIoU(b, b̂)) / n
//! ```
//!
//! `b` is the predicted box and `b̂` the target; `w` is 1 for a query with an object and less for one without; `n` is the number of
//! objects. Each layer of the decoder has its own matching and its own loss (auxiliary losses). Matching runs on the host, and so do the
//! losses and their gradients, which are few numbers.

use super::Found;
use super::boxes::{LocatedBox, distance, giou, giou_with_gradient};
use super::config::LossWeights;
use super::matching::assign;
use attentive_tensor::{Tape, Tensor, Var};

/// The objects of a picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Targets {
    /// The class of each object.
    pub classes: Vec<usize>,
    /// The box around each object.
    pub boxes: Vec<LocatedBox>,
}

/// A loss, and the terms that the last layer of the decoder adds to it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MatchedLoss {
    /// The loss that training minimises: all terms of all layers.
    pub total: f64,
    /// The weighted mean of `-log p(class)`.
    pub classes: f64,
    /// The L1 distance of the matched boxes.
    pub boxes: f64,
    /// `1 - GIoU` of the matched boxes.
    pub giou: f64,
}

/// The target of a row of predictions: the class and the box of an object, or none for "no object".
pub(super) type RowTarget = Option<(usize, LocatedBox)>;

/// The loss of the predictions of all decoder layers, each with a matching of its own. The terms that are returned are those of the last
/// layer. `boxes` is what the terms of the boxes are divided by.
pub(super) fn matched(
    tape: &Tape,
    found: &[Found],
    targets: &[Targets],
    weights: &LossWeights,
    boxes: f32,
) -> (Var, MatchedLoss) {
    let (mut sum, mut last, mut gradients) = (0.0, MatchedLoss::default(), Vec::new());
    for found in found {
        let predictions = Predictions::read(tape, found);
        let assigned = predictions.assign(targets, weights);
        let (loss, [classes, located]) = predictions.loss(tape, &assigned, weights, f64::from(boxes));
        sum += loss.total;
        last = loss;
        gradients.extend([(found.classes.clone(), classes), (found.boxes.clone(), located)]);
    }
    (tape.given_loss(sum as f32, gradients), MatchedLoss { total: sum, ..last })
}

/// The loss of rows whose targets are given, without a matching. `n` is the number of rows that have an object.
pub(super) fn assigned(tape: &Tape, found: &Found, targets: &[RowTarget], weights: &LossWeights) -> Var {
    let boxes = targets.iter().flatten().count().max(1);
    let predictions = Predictions::read(tape, found);
    let (loss, [classes, located]) = predictions.loss(tape, targets, weights, boxes as f64);
    let gradients = vec![(found.classes.clone(), classes), (found.boxes.clone(), located)];
    tape.given_loss(loss.total as f32, gradients)
}

/// The predictions of the heads, a row for each query or cell.
struct Predictions {
    /// `[rows, classes + 1]`
    probabilities: Vec<f64>,
    /// The number of classes, "no object" included.
    width: usize,
    boxes: Vec<LocatedBox>,
}

impl Predictions {
    fn read(tape: &Tape, found: &Found) -> Predictions {
        let backend = tape.backend();
        let width = found.classes.shape().cols();
        let logits = backend.download_f32(found.classes.value());
        let raw = backend.download_f32(found.boxes.value());
        Predictions {
            probabilities: logits.chunks_exact(width).flat_map(softmax).collect(),
            width,
            boxes: raw.as_chunks::<4>().0.iter().map(|raw| raw.map(sigmoid)).collect(),
        }
    }

    /// The target of each query: every object is assigned to one query, so that the sum of the costs is least.
    fn assign(&self, targets: &[Targets], weights: &LossWeights) -> Vec<RowTarget> {
        let rows = self.boxes.len();
        let count = targets.len();
        assert!(count > 0 && rows.is_multiple_of(count), "targets for {count} pictures");
        let queries = rows / count;
        let mut assigned = vec![None; rows];
        for (targets, first) in targets.iter().zip((0..rows).step_by(queries.max(1))) {
            let cost = |object: usize, query: usize| {
                let (target, predicted) = (targets.boxes[object], self.boxes[first + query]);
                let of_class = -self.probabilities[(first + query) * self.width + targets.classes[object]];
                let cost = weights.class_cost * of_class + weights.box_cost * distance(predicted, target)
                    - weights.giou_cost * giou(predicted, target);
                // A model that has diverged still gets a loss.
                if cost.is_finite() { cost } else { 1e30 }
            };
            let objects = targets.boxes.len();
            let costs: Vec<f64> = (0..objects * queries).map(|i| cost(i / queries, i % queries)).collect();
            for (object, query) in assign(&costs, objects, queries).into_iter().enumerate() {
                let Some(query) = query else { continue };
                assigned[first + query] = Some((targets.classes[object], targets.boxes[object]));
            }
        }
        assigned
    }

    /// The loss of all rows, and its gradients with respect to the logits of the classes and to the boxes before the sigmoid. `count` is
    /// `n` of the formula.
    fn loss(
        &self,
        tape: &Tape,
        targets: &[RowTarget],
        weights: &LossWeights,
        count: f64,
    ) -> (MatchedLoss, [Tensor; 2]) {
        let (rows, width) = (self.boxes.len(), self.width);
        let mut loss = MatchedLoss::default();
        let mut of_boxes = vec![[0.0f32; 4]; rows];
        for ((target, &predicted), gradient) in targets.iter().zip(&self.boxes).zip(&mut of_boxes) {
            let Some((_, target)) = *target else { continue };
            let (giou, slope) = giou_with_gradient(predicted, target);
            loss.boxes += distance(predicted, target) / count;
            loss.giou += (1.0 - giou) / count;
            for i in 0..4 {
                let difference = predicted[i] - target[i];
                let sign = if difference == 0.0 { 0.0 } else { difference.signum() };
                let of_share = (weights.box_loss * sign - weights.giou_loss * slope[i]) / count;
                // Through the sigmoid.
                gradient[i] = (of_share * predicted[i] * (1.0 - predicted[i])) as f32;
            }
        }
        let class_of = |target: &RowTarget| target.map_or(width - 1, |(class, _)| class);
        let weight_of = |target: &RowTarget| if target.is_some() { 1.0 } else { weights.no_object };
        let total_weight: f64 = targets.iter().map(weight_of).sum();
        let mut of_classes = Vec::with_capacity(rows * width);
        for (target, row) in targets.iter().zip(self.probabilities.chunks_exact(width)) {
            let (class, factor) = (class_of(target), weight_of(target) / total_weight);
            loss.classes -= factor * row[class].max(f64::MIN_POSITIVE).ln();
            let factor = weights.class_loss * factor;
            let gradient = |(i, p): (usize, &f64)| ((p - f64::from(u8::from(i == class))) * factor) as f32;
            of_classes.extend(row.iter().enumerate().map(gradient));
        }
        loss.total =
            weights.class_loss * loss.classes + weights.box_loss * loss.boxes + weights.giou_loss * loss.giou;
        let backend = tape.backend();
        let of_boxes = backend.upload_f32(of_boxes.as_flattened(), [rows, 4]);
        (loss, [backend.upload_f32(&of_classes, [rows, width]), of_boxes])
    }
}

fn softmax(logits: &[f32]) -> impl Iterator<Item = f64> {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|&x| f64::from(x - greatest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(move |power| power / sum)
}

pub(super) fn sigmoid(x: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(x)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_tensor::check::check_gradients;

    #[test]
    fn gradients_of_rows_with_given_targets_match_differences() {
        let targets = [Some((1, [0.3, 0.6, 0.2, 0.4])), None, Some((0, [0.5, 0.5, 0.9, 0.1])), None];
        check_gradients("rows with given targets", &[&[4, 3], &[4, 4]], |tape, v| {
            let found = Found { classes: v[0].clone(), boxes: v[1].clone() };
            assigned(tape, &found, &targets, &LossWeights { class_loss: 4.0, ..LossWeights::default() })
        });
    }
}
