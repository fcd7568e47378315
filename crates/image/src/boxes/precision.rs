//! COCO's twelve numbers, equal to those of pycocotools.
//!
//! A box that was found, the most certain first, takes the box of the same category with which it has the greatest intersection over
//! union, if that reaches a threshold and no other has taken it. Precision and recall follow from which of the boxes found took one.
//! The average precision is the mean of the precision at 101 recalls, over ten thresholds from 0.5 to 0.95 and all categories.
//!
//! Boxes around a crowd, and boxes of another size than the one that is asked for, are neither missed nor wrong.

use super::{Annotation, Bbox, Detection};
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::HashMap;

/// COCO's twelve numbers, each from 0 to 1, or -1 if there is no box that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BoxScores {
    /// Average precision over thresholds from 0.5 to 0.95.
    #[serde(rename = "AP")]
    pub ap: f64,
    /// That at the threshold 0.5.
    #[serde(rename = "AP50")]
    pub ap50: f64,
    /// That at the threshold 0.75.
    #[serde(rename = "AP75")]
    pub ap75: f64,
    /// That of things smaller than 32 × 32 pixels.
    #[serde(rename = "APsmall")]
    pub ap_small: f64,
    /// That of things in between.
    #[serde(rename = "APmedium")]
    pub ap_medium: f64,
    /// That of things larger than 96 × 96 pixels.
    #[serde(rename = "APlarge")]
    pub ap_large: f64,
    /// Average recall with the most certain box of each picture and category.
    #[serde(rename = "AR1")]
    pub ar1: f64,
    /// With ten.
    #[serde(rename = "AR10")]
    pub ar10: f64,
    /// With a hundred.
    #[serde(rename = "AR100")]
    pub ar100: f64,
    /// That of small things.
    #[serde(rename = "ARsmall")]
    pub ar_small: f64,
    /// That of medium things.
    #[serde(rename = "ARmedium")]
    pub ar_medium: f64,
    /// That of large things.
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
/// The most boxes of a picture and category that count.
const MOST: usize = 100;
/// Least and greatest areas: all, small, medium, large.
const AREAS: [[f64; 2]; 4] = [[0.0, 1e10], [0.0, 1024.0], [1024.0, 9216.0], [9216.0, 1e10]];

/// `start`, … `end` in equal steps, computed as numpy does, to the bit.
fn steps<const N: usize>(start: f64, end: f64) -> [f64; N] {
    let step = (end - start) / (N - 1) as f64;
    std::array::from_fn(|i| if i + 1 == N { end } else { i as f64 * step + start })
}

/// The scores of what was found in these images, whose ids are sorted, for these categories.
pub fn average_precision(
    images: &[i64],
    categories: &[i64],
    references: &[Annotation],
    detections: &[Detection],
) -> BoxScores {
    let mut there: HashMap<(i64, i64), Vec<&Annotation>> = HashMap::new();
    for annotation in references {
        there.entry((annotation.category_id, annotation.image_id)).or_default().push(annotation);
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
                let (there, found) = (there.get(&key), found.get(&key));
                (there.is_some() || found.is_some()).then(|| {
                    let of = |there: Option<&Vec<_>>| there.cloned().unwrap_or_default();
                    Picture::new(of(there), found.cloned().unwrap_or_default())
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

/// The mean, or -1 of nothing.
fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), x| (sum + x, count + 1));
    if count == 0 { -1.0 } else { sum / f64::from(count) }
}

/// What there is of a category in a picture, and what was found, the most certain first.
struct Picture<'a> {
    there: Vec<&'a Annotation>,
    found: Vec<&'a Detection>,
    /// The intersection over union of each box found with each box there.
    overlaps: Vec<Vec<f64>>,
}

/// What came of the boxes that were found in a picture.
struct Matched {
    scores: Vec<f64>,
    /// For each threshold and box found.
    fates: [Vec<Fate>; THRESHOLDS],
    /// How many boxes were to be found.
    expected: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Right,
    Wrong,
    Ignored,
}

impl<'a> Picture<'a> {
    fn new(there: Vec<&'a Annotation>, found: Vec<&'a Detection>) -> Picture<'a> {
        let overlap =
            |found: &Detection, there: &Annotation| overlap(found.bbox, there.bbox, there.iscrowd != 0);
        let row = |found: &&Detection| there.iter().map(|there| overlap(found, there)).collect();
        let overlaps = found.iter().map(row).collect();
        Picture { there, found, overlaps }
    }

    fn matched(&self, [least, greatest]: [f64; 2]) -> Matched {
        let outside = |area: f64| area < least || area > greatest;
        let ignored = |there: &Annotation| {
            there.iscrowd != 0 || outside(there.area.unwrap_or(there.bbox[2] * there.bbox[3]))
        };
        // Those that count come first.
        let mut order: Vec<(usize, bool)> =
            self.there.iter().map(|there| ignored(there)).enumerate().collect();
        order.sort_by_key(|(_, ignored)| *ignored);
        let fates = steps::<THRESHOLDS>(0.5, 0.95).map(|threshold| {
            let mut taken = vec![false; self.there.len()];
            let fate = |(found, overlaps): (&&Detection, &Vec<f64>)| {
                let best = best(&order, &taken, threshold, overlaps, |there| self.there[there].iscrowd != 0);
                match best {
                    Some((there, ignored)) => {
                        taken[there] = true;
                        if ignored { Fate::Ignored } else { Fate::Right }
                    }
                    None if outside(found.bbox[2] * found.bbox[3]) => Fate::Ignored,
                    None => Fate::Wrong,
                }
            };
            self.found.iter().zip(&self.overlaps).map(fate).collect()
        });
        Matched {
            scores: self.found.iter().map(|found| found.score).collect(),
            fates,
            expected: order.iter().filter(|(_, ignored)| !ignored).count(),
        }
    }
}

/// The box that a box found takes, and whether it is ignored: the one it overlaps most, one that counts before others, the last of
/// equal ones. A crowd can be taken any number of times.
fn best(
    order: &[(usize, bool)],
    taken: &[bool],
    threshold: f64,
    overlaps: &[f64],
    is_crowd: impl Fn(usize) -> bool,
) -> Option<(usize, bool)> {
    let mut least = threshold.min(1.0 - 1e-10);
    let mut best: Option<(usize, bool)> = None;
    for &(there, ignored) in order {
        if taken[there] && !is_crowd(there) {
            continue;
        }
        if ignored && best.is_some_and(|(_, ignored)| !ignored) {
            break;
        }
        if overlaps[there] >= least {
            least = overlaps[there];
            best = Some((there, ignored));
        }
    }
    best
}

/// Intersection over union; in a crowd, over the box that was found.
fn overlap(found: Bbox, there: Bbox, crowd: bool) -> f64 {
    let side = |i: usize| (found[i] + found[i + 2]).min(there[i] + there[i + 2]) - found[i].max(there[i]);
    let (width, height) = (side(0), side(1));
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let (intersection, area) = (width * height, found[2] * found[3]);
    intersection / if crowd { area } else { area + there[2] * there[3] - intersection }
}

/// Precision and recall of a category, for each threshold.
struct Curves {
    precision: [[f64; RECALLS]; THRESHOLDS],
    recall: [f64; THRESHOLDS],
}

impl Curves {
    /// With at most so many boxes of each picture; none if there is nothing to be found.
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
            let (mut right, mut wrong) = (0.0, 0.0);
            let (mut recalls, mut precisions) = (Vec::new(), Vec::new());
            for &(_, picture, place) in &order {
                match pictures[picture].fates[threshold][place] {
                    Fate::Right => right += 1.0,
                    Fate::Wrong => wrong += 1.0,
                    Fate::Ignored => {}
                }
                recalls.push(right / expected as f64);
                precisions.push(right / (wrong + right + f64::EPSILON));
            }
            curves.recall[threshold] = recalls.last().copied().unwrap_or(0.0);
            // The precision at a recall is the best that can be had with so much recall or more.
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
