//! The hidden states of a step, small enough to be shown.

use attentive_generate::Step;
use serde::Serialize;

/// The hidden states of a step. A wide vector is told by so many numbers as can be seen side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hidden {
    /// The step.
    #[serde(flatten)]
    pub step: Step,
    /// How many numbers a vector has.
    pub width: usize,
    /// How many neighbouring numbers of a vector one of `values` stands for.
    pub together: usize,
    /// Of each token, the length of its vector.
    pub norms: Vec<f32>,
    /// Of each token and each group of neighbouring numbers, the one that is furthest from 0.
    pub values: Vec<Vec<f32>>,
}

/// The most numbers that are told of a vector.
const MOST: usize = 64;

impl Hidden {
    /// What is told of the vectors of a step, one for each token.
    pub fn new(step: Step, vectors: &[Vec<f32>]) -> Hidden {
        let width = vectors.first().map_or(0, Vec::len);
        let together = width.div_ceil(MOST).max(1);
        let norm = |vector: &Vec<f32>| rounded(vector.iter().map(|x| x * x).sum::<f32>().sqrt());
        let furthest = |group: &[f32]| {
            let furthest = |a: f32, b: &f32| if b.abs() > a.abs() { *b } else { a };
            rounded(group.iter().fold(0.0, furthest))
        };
        let values = |vector: &Vec<f32>| vector.chunks(together).map(furthest).collect();
        Hidden {
            step,
            width,
            together,
            norms: vectors.iter().map(norm).collect(),
            values: vectors.iter().map(values).collect(),
        }
    }
}

/// Enough digits for a page.
fn rounded(number: f32) -> f32 {
    (number * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_generate::{Point, Stack};

    #[test]
    fn wide_vectors_are_told_by_their_numbers_furthest_from_zero() {
        let step = Step { stack: Stack::Encoder, point: Point::Output, layer: 0 };
        let narrow = Hidden::new(step, &[vec![3.0, -4.0]]);
        assert_eq!((narrow.width, narrow.together, &narrow.norms[..]), (2, 1, &[5.0][..]));
        assert_eq!(narrow.values, [[3.0, -4.0]]);
        let mut wide = vec![0.5; 129];
        (wide[4], wide[128]) = (-2.0, 0.0);
        let wide = Hidden::new(step, &[wide.clone(), wide]);
        assert_eq!((wide.width, wide.together, wide.values.len()), (129, 3, 2));
        assert_eq!((wide.values[0].len(), wide.values[0][0], wide.values[0][1]), (43, 0.5, -2.0));
        assert_eq!(Hidden::new(step, &[]).values.len(), 0);
    }
}
