//! Where the numbers of a tensor lie in a file.

use safetensors::tensor::Dtype;

/// A tensor in a file: `length` bytes from `start` on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub start: u64,
    pub length: usize,
    /// How many numbers lie between neighbours in each dimension, where rows do not simply lie one after the
    /// other.
    pub strides: Option<Vec<usize>>,
}

impl Entry {
    /// Its numbers in the order of the shape, from those that it has in the file.
    pub fn in_order<T: Clone>(&self, numbers: Vec<T>) -> Vec<T> {
        let Some(strides) = &self.strides else { return numbers };
        let mut ordered = Vec::with_capacity(self.shape.iter().product());
        let mut index = vec![0; self.shape.len()];
        loop {
            let at: usize = index.iter().zip(strides).map(|(i, stride)| i * stride).sum();
            ordered.push(numbers[at].clone());
            // The next index, the last dimension first.
            let Some(dimension) = (0..index.len()).rfind(|&d| index[d] + 1 < self.shape[d]) else {
                return ordered;
            };
            index[dimension] += 1;
            index[dimension + 1..].fill(0);
        }
    }
}
