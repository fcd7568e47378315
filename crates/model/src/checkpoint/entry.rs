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
    /// The bytes of its numbers in the order of the shape, from those that it has in the file.
    pub fn in_order(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(strides) = &self.strides else { return bytes };
        let size = self.dtype.bitsize() / 8;
        let mut ordered = Vec::with_capacity(self.shape.iter().product::<usize>() * size);
        let mut index = vec![0; self.shape.len()];
        loop {
            let at = index.iter().zip(strides).map(|(i, stride)| i * stride).sum::<usize>() * size;
            ordered.extend_from_slice(&bytes[at..at + size]);
            // The next index, the last dimension first.
            let Some(dimension) = (0..index.len()).rfind(|&d| index[d] + 1 < self.shape[d]) else {
                return ordered;
            };
            index[dimension] += 1;
            index[dimension + 1..].fill(0);
        }
    }
}
