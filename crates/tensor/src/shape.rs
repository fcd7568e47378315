//! The shape of a tensor.

use std::fmt;
use std::ops::Deref;

/// Up to four sizes, outermost first. The last is the width of a row; a scalar has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    sizes: [usize; 4],
    rank: usize,
}

impl Shape {
    /// The shape of a single number.
    pub const SCALAR: Shape = Shape { sizes: [0; 4], rank: 0 };

    /// How many numbers a tensor of this shape holds.
    pub fn len(&self) -> usize {
        self.iter().product()
    }

    /// Whether that is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The width of a row: the last size, or one.
    pub fn cols(&self) -> usize {
        self.last().copied().unwrap_or(1)
    }

    /// The number of rows: the product of all sizes but the last.
    pub fn rows(&self) -> usize {
        self[..self.rank.saturating_sub(1)].iter().product()
    }

    /// The same rows with another width.
    pub fn with_cols(mut self, cols: usize) -> Shape {
        assert!(self.rank > 0, "a scalar has no columns");
        self.sizes[self.rank - 1] = cols;
        self
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.sizes[..self.rank]
    }
}

impl From<&[usize]> for Shape {
    fn from(sizes: &[usize]) -> Shape {
        assert!(sizes.len() <= 4, "a tensor has at most four dimensions, not {}", sizes.len());
        let mut shape = Shape { sizes: [0; 4], rank: sizes.len() };
        shape.sizes[..sizes.len()].copy_from_slice(sizes);
        shape
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(sizes: [usize; N]) -> Shape {
        Shape::from(&sizes[..])
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_cover_the_whole() {
        let shape = Shape::from([2, 3, 5]);
        assert_eq!((shape.rows(), shape.cols(), shape.len()), (6, 5, 30));
        assert_eq!((Shape::SCALAR.rows(), Shape::SCALAR.cols(), Shape::SCALAR.len()), (1, 1, 1));
        assert_eq!(shape.with_cols(7).to_string(), "[2, 3, 7]");
    }
}
