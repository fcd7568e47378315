//! The loss of a set: each box that is to be found is matched with one query, and the other queries are to say that there is nothing.
//!
//! ```text
//! cost of a match = c₁·(-p(class)) + c₂·Σ|b - b̂| + c₃·(-GIoU(b, b̂))
//! loss = Σ w·(-log p(class)) / Σ w  +  λ₁·Σ|b - b̂| / n  +  λ₂·Σ (1 - GIoU(b, b̂)) / n
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
        let (loss, [classes, located]) = of_layer(tape, found, targets, weights, f64::from(boxes));
        sum += loss.total;
        last = loss;
        gradients.extend([(found.classes.clone(), classes), (found.boxes.clone(), located)]);
    }
    (tape.given_loss(sum as f32, gradients), MatchedLoss { total: sum, ..last })
}

/// What a layer says of a picture.
struct Answers<'a> {
    /// `[queries, classes + 1]`
    probabilities: &'a [f64],
    boxes: Vec<LocatedBox>,
}

fn of_layer(
    tape: &Tape,
    found: &Found,
    targets: &[Targets],
    weights: &LossWeights,
    count: f64,
) -> (MatchedLoss, [Tensor; 2]) {
    let backend = tape.backend();
    let width = found.classes.shape().cols();
    let rows = found.classes.shape().rows();
    assert!(
        !targets.is_empty() && rows.is_multiple_of(targets.len()),
        "targets for {} pictures",
        targets.len()
    );
    let queries = rows / targets.len();
    let logits = backend.download_f32(found.classes.value());
    let probabilities: Vec<f64> = logits.chunks_exact(width).flat_map(softmax).collect();
    let boxes: Vec<LocatedBox> = backend
        .download_f32(found.boxes.value())
        .as_chunks::<4>()
        .0
        .iter()
        .map(|raw| raw.map(sigmoid))
        .collect();
    let mut loss = MatchedLoss::default();
    let (mut classes, mut total_weight) = (vec![width - 1; rows], 0.0);
    let mut of_boxes = vec![[0.0; 4]; rows];
    for (picture, targets) in targets.iter().enumerate() {
        let first = picture * queries;
        let answers = Answers {
            probabilities: &probabilities[first * width..][..queries * width],
            boxes: boxes[first..first + queries].to_vec(),
        };
        for (thing, query) in answers.matched(targets, weights).into_iter().enumerate() {
            let Some(row) = query.map(|query| first + query) else { continue };
            let (there, here) = (targets.boxes[thing], boxes[row]);
            classes[row] = targets.classes[thing];
            let (agreement, slope) = giou_with_gradient(here, there);
            loss.boxes += distance(here, there) / count;
            loss.giou += (1.0 - agreement) / count;
            for i in 0..4 {
                let sign = if here[i] == there[i] { 0.0 } else { (here[i] - there[i]).signum() };
                let gradient = (weights.box_loss * sign - weights.giou_loss * slope[i]) / count;
                of_boxes[row][i] = gradient * here[i] * (1.0 - here[i]);
            }
        }
    }
    let weight = |class: usize| if class == width - 1 { weights.nothing } else { 1.0 };
    for (&class, row) in classes.iter().zip(probabilities.chunks_exact(width)) {
        total_weight += weight(class);
        loss.classes -= weight(class) * row[class].max(f64::MIN_POSITIVE).ln();
    }
    loss.classes /= total_weight;
    let of_classes: Vec<f32> = classes
        .iter()
        .zip(probabilities.chunks_exact(width))
        .flat_map(|(&class, row)| {
            let factor = weight(class) / total_weight;
            row.iter().enumerate().map(move |(i, p)| ((p - f64::from(u8::from(i == class))) * factor) as f32)
        })
        .collect();
    loss.total = loss.classes + weights.box_loss * loss.boxes + weights.giou_loss * loss.giou;
    let of_boxes: Vec<f32> = of_boxes.as_flattened().iter().map(|&x| x as f32).collect();
    let gradients =
        [backend.upload_f32(&of_classes, [rows, width]), backend.upload_f32(&of_boxes, [rows, 4])];
    (loss, gradients)
}

impl Answers<'_> {
    /// The query of each thing.
    fn matched(&self, targets: &Targets, weights: &LossWeights) -> Vec<Option<usize>> {
        let (things, queries) = (targets.boxes.len(), self.boxes.len());
        let width = self.probabilities.len() / queries.max(1);
        let cost = |thing: usize, query: usize| {
            let (there, here) = (targets.boxes[thing], self.boxes[query]);
            let of_class = -self.probabilities[query * width + targets.classes[thing]];
            let cost = weights.class_cost * of_class + weights.box_cost * distance(here, there)
                - weights.giou_cost * giou(here, there);
            // A model that has gone astray still gets a loss.
            if cost.is_finite() { cost } else { 1e30 }
        };
        let costs: Vec<f64> = (0..things * queries).map(|i| cost(i / queries, i % queries)).collect();
        assign(&costs, things, queries)
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
