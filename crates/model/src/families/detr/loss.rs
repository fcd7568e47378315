//! The loss of a set: each box that is to be found is matched with one query, and the other queries are to say that there is nothing.
//!
//! ```text
//! cost of a match = c₁·(-p(class)) + c₂·Σ|b - b̂| + c₃·(-GIoU(b, b̂))
//! loss = λ₀·Σ w·(-log p(class)) / Σ w  +  λ₁·Σ|b - b̂| / n  +  λ₂·Σ (1 - GIoU(b, b̂)) / n
//! ```
//!
//! `w` is 1 for a box and less for nothing; `n` is the number of boxes. Each layer of the decoder has its own matching and its own loss
//! (auxiliary losses). Matching is a decision of the host, so that losses and gradients are computed there: they are few numbers.

use super::Found;
use super::boxes::{LocatedBox, distance, giou, giou_with_gradient};
use super::config::LossWeights;
use super::matching::assign;
use attentive_tensor::{Tape, Tensor, Var};

/// What is to be found in a picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Targets {
    /// The class of each thing.
    pub classes: Vec<usize>,
    /// The box around it.
    pub boxes: Vec<LocatedBox>,
}

/// A loss, and what it is made of in the last layer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MatchedLoss {
    /// What is learned from: all terms of all layers.
    pub total: f64,
    /// The weighted mean of `-log p(class)`.
    pub classes: f64,
    /// The distance of the boxes.
    pub boxes: f64,
    /// `1 - GIoU` of the boxes.
    pub giou: f64,
}

/// What a row of answers is to say: a class and a box, or that there is nothing.
pub(super) type Wanted = Option<(usize, LocatedBox)>;

/// The loss of what the layers of a decoder found, the last of which counts as the model's own.
pub(super) fn matched(
    tape: &Tape,
    found: &[Found],
    targets: &[Targets],
    weights: &LossWeights,
    boxes: f32,
) -> (Var, MatchedLoss) {
    let (mut sum, mut last, mut gradients) = (0.0, MatchedLoss::default(), Vec::new());
    for found in found {
        let answers = Answers::read(tape, found);
        let wanted = answers.assigned(targets, weights);
        let (loss, [classes, located]) = answers.loss(tape, &wanted, weights, f64::from(boxes));
        sum += loss.total;
        last = loss;
        gradients.extend([(found.classes.clone(), classes), (found.boxes.clone(), located)]);
    }
    (tape.given_loss(sum as f32, gradients), MatchedLoss { total: sum, ..last })
}

/// The loss of rows that are each told what to say, without a matching. `n` is how many of them are told of a thing.
pub(super) fn told(tape: &Tape, found: &Found, wanted: &[Wanted], weights: &LossWeights) -> Var {
    let boxes = wanted.iter().flatten().count().max(1);
    let (loss, [classes, located]) = Answers::read(tape, found).loss(tape, wanted, weights, boxes as f64);
    let gradients = vec![(found.classes.clone(), classes), (found.boxes.clone(), located)];
    tape.given_loss(loss.total as f32, gradients)
}

/// What the heads say in each row.
struct Answers {
    /// `[rows, classes + 1]`
    probabilities: Vec<f64>,
    /// Classes, with the one of nothing.
    width: usize,
    boxes: Vec<LocatedBox>,
}

impl Answers {
    fn read(tape: &Tape, found: &Found) -> Answers {
        let backend = tape.backend();
        let width = found.classes.shape().cols();
        let logits = backend.download_f32(found.classes.value());
        let raw = backend.download_f32(found.boxes.value());
        Answers {
            probabilities: logits.chunks_exact(width).flat_map(softmax).collect(),
            width,
            boxes: raw.as_chunks::<4>().0.iter().map(|raw| raw.map(sigmoid)).collect(),
        }
    }

    /// What each query is to say. Each thing goes to one of them, so that the sum of the costs is least.
    fn assigned(&self, targets: &[Targets], weights: &LossWeights) -> Vec<Wanted> {
        let rows = self.boxes.len();
        let count = targets.len();
        assert!(count > 0 && rows.is_multiple_of(count), "targets for {count} pictures");
        let queries = rows / count;
        let mut wanted = vec![None; rows];
        for (targets, first) in targets.iter().zip((0..rows).step_by(queries.max(1))) {
            let cost = |thing: usize, query: usize| {
                let (there, here) = (targets.boxes[thing], self.boxes[first + query]);
                let of_class = -self.probabilities[(first + query) * self.width + targets.classes[thing]];
                let cost = weights.class_cost * of_class + weights.box_cost * distance(here, there)
                    - weights.giou_cost * giou(here, there);
                // A model that has gone astray still gets a loss.
                if cost.is_finite() { cost } else { 1e30 }
            };
            let things = targets.boxes.len();
            let costs: Vec<f64> = (0..things * queries).map(|i| cost(i / queries, i % queries)).collect();
            for (thing, query) in assign(&costs, things, queries).into_iter().enumerate() {
                let Some(query) = query else { continue };
                wanted[first + query] = Some((targets.classes[thing], targets.boxes[thing]));
            }
        }
        wanted
    }

    /// The loss of all rows, whose boxes are divided by a count, and its gradients for the two heads.
    fn loss(
        &self,
        tape: &Tape,
        wanted: &[Wanted],
        weights: &LossWeights,
        count: f64,
    ) -> (MatchedLoss, [Tensor; 2]) {
        let (rows, width) = (self.boxes.len(), self.width);
        let mut loss = MatchedLoss::default();
        let mut of_boxes = vec![[0.0f32; 4]; rows];
        for ((wanted, &here), gradient) in wanted.iter().zip(&self.boxes).zip(&mut of_boxes) {
            let Some((_, there)) = *wanted else { continue };
            let (agreement, slope) = giou_with_gradient(here, there);
            loss.boxes += distance(here, there) / count;
            loss.giou += (1.0 - agreement) / count;
            for i in 0..4 {
                let sign = if here[i] == there[i] { 0.0 } else { (here[i] - there[i]).signum() };
                let of_share = (weights.box_loss * sign - weights.giou_loss * slope[i]) / count;
                gradient[i] = (of_share * here[i] * (1.0 - here[i])) as f32;
            }
        }
        let class_of = |wanted: &Wanted| wanted.map_or(width - 1, |(class, _)| class);
        let weight_of = |wanted: &Wanted| if wanted.is_some() { 1.0 } else { weights.nothing };
        let total_weight: f64 = wanted.iter().map(weight_of).sum();
        let mut of_classes = Vec::with_capacity(rows * width);
        for (wanted, row) in wanted.iter().zip(self.probabilities.chunks_exact(width)) {
            let (class, factor) = (class_of(wanted), weight_of(wanted) / total_weight);
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
    fn gradients_of_rows_that_are_told_what_to_say_match_differences() {
        let wanted = [Some((1, [0.3, 0.6, 0.2, 0.4])), None, Some((0, [0.5, 0.5, 0.9, 0.1])), None];
        check_gradients("rows that are told", &[&[4, 3], &[4, 4]], |tape, v| {
            let found = Found { classes: v[0].clone(), boxes: v[1].clone() };
            told(tape, &found, &wanted, &LossWeights { class_loss: 4.0, ..LossWeights::default() })
        });
    }
}
