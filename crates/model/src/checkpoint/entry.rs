//! Where the numbers of a tensor lie in a file.

use safetensors::tensor::Dtype;

/// A tensor in a file: `length` bytes from `start` on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// Which of the checkpoint's files it is in.
    pub file: usize,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub start: u64,
    pub length: usize,
    /// How many numbers lie between neighbours in each dimension, where rows do not simply lie one after the
    /// other.
    pub strides: Option<Vec<usize>>,
}

impl Entry {
    /// The same tensor with its two dimensions exchanged; one of another number of dimensions stays as it is.
    pub fn transposed(mut self) -> Entry {
        if let &[rows, cols] = &self.shape[..] {
            let strides = self.strides.unwrap_or_else(|| vec![cols, 1]);
            self.shape = vec![cols, rows];
            self.strides = Some(vec![strides[1], strides[0]]);
        }
        self
    }

    /// The same tensor `[out, in, height, width]` as `[out, height, width, in]`; one of another number of dimensions stays as it is.
    pub fn channels_last(mut self) -> Entry {
        if let &[outputs, inputs, height, width] = &self.shape[..] {
            let strides = self.strides.unwrap_or_else(|| dense(&self.shape));
            self.shape = vec![outputs, height, width, inputs];
            self.strides = Some(vec![strides[0], strides[2], strides[3], strides[1]]);
        }
        self
    }

    /// Part `index` of `of` equal ones along the first dimension; none if it cannot be divided so.
    pub fn part(mut self, index: usize, of: usize) -> Option<Entry> {
        let first = *self.shape.first().filter(|size| of > 0 && index < of && size.is_multiple_of(of))?;
        let rows = first / of;
        let width: usize = self.shape[1..].iter().product();
        let strides = self.strides.clone().unwrap_or_else(|| dense(&self.shape));
        let size = self.dtype.bitsize() / 8;
        self.shape[0] = rows;
        self.start += (index * rows * strides[0] * size) as u64;
        let reach: usize =
            self.shape.iter().zip(&strides).map(|(n, stride)| n.saturating_sub(1) * stride).sum();
        self.length = if rows * width == 0 { 0 } else { (reach + 1) * size };
        Some(self)
    }

    /// Its numbers in the order of the shape, from those that it has in the file.
    pub fn in_order<T: Copy>(&self, numbers: Vec<T>) -> Vec<T> {
        let Some(strides) = &self.strides else { return numbers };
        if numbers.is_empty() {
            return numbers;
        }
        let mut ordered = Vec::with_capacity(self.shape.iter().product());
        let mut index = vec![0; self.shape.len()];
        let (last, inner) = match (self.shape.last(), strides.last()) {
            (Some(&last), Some(&inner)) => (last, inner),
            _ => (1, 1),
        };
        let outer = index.len().saturating_sub(1);
        loop {
            // A row at a time.
            let at: usize = index.iter().zip(strides).map(|(i, stride)| i * stride).sum();
            ordered.extend((0..last).map(|i| numbers[at + i * inner]));
            let Some(dimension) = (0..outer).rfind(|&d| index[d] + 1 < self.shape[d]) else {
                return ordered;
            };
            index[dimension] += 1;
            index[dimension + 1..].fill(0);
        }
    }
}

/// The strides of rows that lie one after the other.
fn dense(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[2, 6]` of the numbers from 0 to 11, in two bytes each.
    fn entry() -> Entry {
        Entry { file: 0, dtype: Dtype::F16, shape: vec![2, 6], start: 100, length: 24, strides: None }
    }

    /// What is read of the numbers from 0 to 11.
    fn read(entry: &Entry) -> Vec<u64> {
        assert_eq!(entry.length % 2, 0);
        let first = (entry.start - 100) / 2;
        entry.in_order((first..first + entry.length as u64 / 2).collect())
    }

    #[test]
    fn transposed_and_cut_it_has_the_numbers_that_it_should_have() {
        let turned = entry().transposed();
        assert_eq!(turned.shape, [6, 2]);
        assert_eq!(read(&turned), [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]);
        assert_eq!(
            turned.clone().transposed().in_order((0..12).collect::<Vec<_>>()),
            (0..12).collect::<Vec<_>>()
        );
        let part = turned.clone().part(1, 3).unwrap();
        assert_eq!((&part.shape[..], read(&part)), (&[2, 2][..], vec![2, 8, 3, 9]));
        let part = entry().part(1, 2).unwrap();
        assert_eq!((&part.shape[..], read(&part)), (&[1, 6][..], (6..12).collect()));
        assert_eq!((entry().part(0, 3), turned.part(3, 3)), (None, None));
    }

    #[test]
    fn channels_of_a_convolution_come_last() {
        let convolution = Entry { shape: vec![2, 3, 1, 2], ..entry() }.channels_last();
        assert_eq!(convolution.shape, [2, 1, 2, 3]);
        assert_eq!(read(&convolution), [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
        assert_eq!(entry().channels_last(), entry());
    }

    #[test]
    fn a_vector_is_cut_and_has_nothing_to_exchange() {
        let vector = Entry { shape: vec![12], ..entry() };
        assert_eq!(vector.clone().transposed(), vector);
        assert_eq!(read(&vector.part(2, 3).unwrap()), [8, 9, 10, 11]);
    }
}
