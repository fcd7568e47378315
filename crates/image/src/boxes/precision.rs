//! COCO's twelve numbers, equal to those of pycocotools.
//!
//! Detections are matched to annotations of the same category, the most confident detection first. A detection is matched to the free
//! annotation with the greatest intersection over union (IoU), if the IoU reaches a threshold. Matched detections are true positives, all
//! others false positives. The average precision is the mean of the precision at 101 recalls, over ten thresholds from 0.5 to 0.95 and all
//! categories.
//!
//! Annotations of crowds, and boxes outside of the range of areas in question, are ignored: they count neither as missed nor as wrong.

use super::{Annotation, Bbox, Detection};
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::HashMap;

/// COCO's twelve numbers, each from 0 to 1, or -1 if no annotation is in its range of areas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BoxScores {
    /// Average precision over thresholds from 0.5 to 0.95.
    #[serde(rename = "AP")]
    pub ap: f64,
    /// Average precision at the threshold 0.5.
    #[serde(rename = "AP50")]
    pub ap50: f64,
    /// Average precision at the threshold 0.75.
    #[serde(rename = "AP75")]
    pub ap75: f64,
    /// Average precision of objects smaller than 32 × 32 pixels.
    #[serde(rename = "APsmall")]
    pub ap_small: f64,
    /// Average precision of objects from 32 × 32 to 96 × 96 pixels.
    #[serde(rename = "APmedium")]
    pub ap_medium: f64,
    /// Average precision of objects larger than 96 × 96 pixels.
    #[serde(rename = "APlarge")]
    pub ap_large: f64,
    /// Average recall with the most confident detection of each picture and category.
    #[serde(rename = "AR1")]
    pub ar1: f64,
    /// Average recall with at most ten detections.
    #[serde(rename = "AR10")]
    pub ar10: f64,
    /// Average recall with at most a hundred detections.
    #[serde(rename = "AR100")]
    pub ar100: f64,
    /// Average recall of small objects.
    #[serde(rename = "ARsmall")]
    pub ar_small: f64,
    /// Average recall of medium objects.
    #[serde(rename = "ARmedium")]
    pub ar_medium: f64,
    /// Average recall of large objects.
    #[serde(rename = "ARlarge")]
    pub ar_large: f64,
}

impl BoxScores {
    /// Each number with its name.
    pub fn named(&self) -> [(&'static str, f64); 12] {
        [
            ("AP", self.ap),
            ("AP50", self.ap50),
            ("AP75", self.ap75),
            ("AP small", self.ap_small),
            ("AP medium", self.ap_medium),
            ("AP large", self.ap_large),
            ("AR1", self.ar1),
            ("AR10", self.ar10),
            ("AR100", self.ar100),
            ("AR small", self.ar_small),
            ("AR medium", self.ar_medium),
            ("AR large", self.ar_large),
        ]
    }
}

const THRESHOLDS: usize = 10;
const RECALLS: usize = 101;
/// The most detections of a picture and category that count.
const MOST: usize = 100;
/// Least and greatest areas: all, small, medium, large.
const AREAS: [[f64; 2]; 4] = [[0.0, 1e10], [0.0, 1024.0], [1024.0, 9216.0], [9216.0, 1e10]];

/// `start`, … `end` in equal steps, computed as numpy does, to the bit.
fn steps<const N: usize>(start: f64, end: f64) -> [f64; N] {
    let step = (end - start) / (N - 1) as f64;
    std::array::from_fn(|i| if i + 1 == N { end } else { i as f64 * step + start })
}

/// The scores of detections in these images, for these categories. The ids of the images are sorted.
pub fn average_precision(
    images: &[i64],
    categories: &[i64],
    references: &[Annotation],
    detections: &[Detection],
) -> BoxScores {
    let mut annotated: HashMap<(i64, i64), Vec<&Annotation>> = HashMap::new();
    for annotation in references {
        annotated.entry((annotation.category_id, annotation.image_id)).or_default().push(annotation);
    }
    let mut found: HashMap<(i64, i64), Vec<&Detection>> = HashMap::new();
    for detection in detections {
        found.entry((detection.category_id, detection.image_id)).or_default().push(detection);
    }
    for found in found.values_mut() {
        found.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
        found.truncate(MOST);
    }
    let mut curves = [const { Vec::new() }; AREAS.len()];
    let mut few = [const { Vec::new() }; 2];
    for category in categories {
        let pictures: Vec<Picture> = images
            .iter()
            .filter_map(|image| {
                let key = (*category, *image);
                let (annotated, found) = (annotated.get(&key), found.get(&key));
                (annotated.is_some() || found.is_some()).then(|| {
                    let annotated = annotated.cloned().unwrap_or_default();
                    Picture::new(annotated, found.cloned().unwrap_or_default())
                })
            })
            .collect();
        for (area, curves) in AREAS.iter().zip(&mut curves) {
            let matched: Vec<Matched> = pictures.iter().map(|picture| picture.matched(*area)).collect();
            curves.extend(Curves::new(&matched, MOST));
            if *area == AREAS[0] {
                for (curves, most) in few.iter_mut().zip([1, 10]) {
                    curves.extend(Curves::new(&matched, most));
                }
            }
        }
    }
    let [all, small, medium, large] = &curves;
    let precision = |curves: &[Curves], thresholds: &[usize]| {
        let precisions =
            curves.iter().flat_map(|curves| thresholds.iter().flat_map(|&t| curves.precision[t]));
        mean(precisions)
    };
    let every: [usize; THRESHOLDS] = std::array::from_fn(|t| t);
    let recall = |curves: &[Curves]| mean(curves.iter().flat_map(|curves| curves.recall));
    BoxScores {
        ap: precision(all, &every),
        ap50: precision(all, &[0]),
        ap75: precision(all, &[5]),
        ap_small: precision(small, &every),
        ap_medium: precision(medium, &every),
        ap_large: precision(large, &every),
        ar1: recall(&few[0]),
        ar10: recall(&few[1]),
        ar100: recall(all),
        ar_small: recall(small),
        ar_medium: recall(medium),
        ar_large: recall(large),
    }
}

/// The mean, or -1 if there are no numbers.
fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), x| (sum + x, count + 1));
    if count == 0 { -1.0 } else { sum / f64::from(count) }
}

/// The annotations and detections of a category in a picture, the most confident detection first.
struct Picture<'a> {
    annotated: Vec<&'a Annotation>,
    found: Vec<&'a Detection>,
    /// The IoU of each detection with each annotation.
    overlaps: Vec<Vec<f64>>,
}

/// The detections of a category in a picture after matching.
struct Matched {
    scores: Vec<f64>,
    /// For each threshold and detection.
    outcomes: [Vec<Outcome>; THRESHOLDS],
    /// How many annotations are not ignored.
    expected: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    TruePositive,
    FalsePositive,
    Ignored,
}

impl<'a> Picture<'a> {
    fn new(annotated: Vec<&'a Annotation>, found: Vec<&'a Detection>) -> Picture<'a> {
        let overlap = |found: &Detection, one: &Annotation| overlap(found.bbox, one.bbox, one.iscrowd != 0);
        let row = |found: &&Detection| annotated.iter().map(|one| overlap(found, one)).collect();
        let overlaps = found.iter().map(row).collect();
        Picture { annotated, found, overlaps }
    }

    fn matched(&self, [least, greatest]: [f64; 2]) -> Matched {
        let outside = |area: f64| area < least || area > greatest;
        let ignored =
            |one: &Annotation| one.iscrowd != 0 || outside(one.area.unwrap_or(one.bbox[2] * one.bbox[3]));
        // Ignored annotations come last.
        let mut order: Vec<(usize, bool)> =
            self.annotated.iter().map(|one| ignored(one)).enumerate().collect();
        order.sort_by_key(|(_, ignored)| *ignored);
        let outcomes = steps::<THRESHOLDS>(0.5, 0.95).map(|threshold| {
            let mut matched = vec![false; self.annotated.len()];
            let outcome = |(found, overlaps): (&&Detection, &Vec<f64>)| {
                let best = best(&order, &matched, threshold, overlaps, |i| self.annotated[i].iscrowd != 0);
                match best {
                    Some((annotation, ignored)) => {
                        matched[annotation] = true;
                        if ignored { Outcome::Ignored } else { Outcome::TruePositive }
                    }
                    None if outside(found.bbox[2] * found.bbox[3]) => Outcome::Ignored,
                    None => Outcome::FalsePositive,
                }
            };
            self.found.iter().zip(&self.overlaps).map(outcome).collect()
        });
        Matched {
            scores: self.found.iter().map(|found| found.score).collect(),
            outcomes,
            expected: order.iter().filter(|(_, ignored)| !ignored).count(),
        }
    }
}

/// The annotation that a detection is matched to, and whether it is ignored: the one with the greatest IoU, the last of equal ones. An
/// ignored annotation is matched only if no other reaches the threshold. A crowd can be matched any number of times.
fn best(
    order: &[(usize, bool)],
    matched: &[bool],
    threshold: f64,
    overlaps: &[f64],
    is_crowd: impl Fn(usize) -> bool,
) -> Option<(usize, bool)> {
    let mut least = threshold.min(1.0 - 1e-10);
    let mut best: Option<(usize, bool)> = None;
    for &(annotation, ignored) in order {
        if matched[annotation] && !is_crowd(annotation) {
            continue;
        }
        if ignored && best.is_some_and(|(_, ignored)| !ignored) {
            break;
        }
        if overlaps[annotation] >= least {
            least = overlaps[annotation];
            best = Some((annotation, ignored));
        }
    }
    best
}

/// Intersection over union. For a crowd, intersection over the area of the detection.
fn overlap(found: Bbox, annotated: Bbox, crowd: bool) -> f64 {
    let side = |i: usize| {
        (found[i] + found[i + 2]).min(annotated[i] + annotated[i + 2]) - found[i].max(annotated[i])
    };
    let (width, height) = (side(0), side(1));
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let (intersection, area) = (width * height, found[2] * found[3]);
    intersection / if crowd { area } else { area + annotated[2] * annotated[3] - intersection }
}

/// Precision and recall of a category, for each threshold.
struct Curves {
    precision: [[f64; RECALLS]; THRESHOLDS],
    recall: [f64; THRESHOLDS],
}

impl Curves {
    /// With at most `most` detections of each picture; none if no annotation counts.
    fn new(pictures: &[Matched], most: usize) -> Option<Curves> {
        let expected: usize = pictures.iter().map(|picture| picture.expected).sum();
        if expected == 0 {
            return None;
        }
        let places = pictures.iter().enumerate();
        let mut order: Vec<(f64, usize, usize)> = places
            .flat_map(|(i, picture)| {
                picture.scores.iter().take(most).enumerate().map(move |(j, &s)| (s, i, j))
            })
            .collect();
        order.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
        let mut curves = Curves { precision: [[0.0; RECALLS]; THRESHOLDS], recall: [0.0; THRESHOLDS] };
        for threshold in 0..THRESHOLDS {
            let (mut true_positives, mut false_positives) = (0.0, 0.0);
            let (mut recalls, mut precisions) = (Vec::new(), Vec::new());
            for &(_, picture, place) in &order {
                match pictures[picture].outcomes[threshold][place] {
                    Outcome::TruePositive => true_positives += 1.0,
                    Outcome::FalsePositive => false_positives += 1.0,
                    Outcome::Ignored => {}
                }
                recalls.push(true_positives / expected as f64);
                precisions.push(true_positives / (false_positives + true_positives + f64::EPSILON));
            }
            curves.recall[threshold] = recalls.last().copied().unwrap_or(0.0);
            // Interpolated: the precision at a recall is the greatest precision at this recall or a higher one.
            for i in (1..precisions.len()).rev() {
                precisions[i - 1] = f64::max(precisions[i - 1], precisions[i]);
            }
            for (precision, recall) in curves.precision[threshold].iter_mut().zip(steps::<RECALLS>(0.0, 1.0))
            {
                let first = recalls.partition_point(|&reached| reached < recall);
                *precision = precisions.get(first).copied().unwrap_or(0.0);
            }
        }
        Some(curves)
    }
}
