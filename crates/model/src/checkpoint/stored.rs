//! Numbers as a file keeps them.

use attentive_tensor::quantise;
use half::bf16;
use safetensors::tensor::Dtype;

/// The types that numbers are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredType {
    /// 32-bit floating point.
    F32,
    /// The upper half of an `f32`.
    Bf16,
    /// Rows of 8-bit integers with a scale for each.
    Int8,
}

impl StoredType {
    pub(crate) fn dtype(self) -> Dtype {
        match self {
            StoredType::F32 => Dtype::F32,
            StoredType::Bf16 => Dtype::BF16,
            StoredType::Int8 => Dtype::I8,
        }
    }
}

/// The numbers of a tensor, row after row, as a file keeps them: what is computed with them need not go by
/// way of `f32`.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// 32-bit floating point; 16-bit floating point of IEEE 754 becomes that, too.
    F32(Vec<f32>),
    /// The upper halves of `f32`.
    Bf16(Vec<bf16>),
    /// 8-bit integers with a scale for each row: a number is `row · scale`.
    Int8 {
        /// The integers, −127 to 127.
        rows: Vec<i8>,
        /// A scale for each row.
        scales: Vec<f32>,
    },
}

impl Stored {
    /// The numbers as `f32`, exactly, or for int8 the products with their scales.
    pub fn into_f32(self) -> Vec<f32> {
        match self {
            Stored::F32(numbers) => numbers,
            Stored::Bf16(numbers) => numbers.into_iter().map(bf16::to_f32).collect(),
            Stored::Int8 { rows, scales } => {
                let width = rows.len() / scales.len().max(1);
                rows.iter().enumerate().map(|(i, &x)| f32::from(x) * scales[i / width]).collect()
            }
        }
    }

    /// The same numbers in another type, `width` in a row: rounded to the nearest, in int8 as
    /// [`quantise`](attentive_tensor::quantise) does it. What is in this type already stays as it is.
    pub fn into_type(self, stored: StoredType, width: usize) -> Stored {
        match (self, stored) {
            (numbers @ Stored::Bf16(_), StoredType::Bf16)
            | (numbers @ Stored::Int8 { .. }, StoredType::Int8) => numbers,
            (numbers, StoredType::F32) => Stored::F32(numbers.into_f32()),
            (numbers, StoredType::Bf16) => {
                Stored::Bf16(numbers.into_f32().into_iter().map(bf16::from_f32).collect())
            }
            (numbers, StoredType::Int8) => {
                let numbers = numbers.into_f32();
                let mut rows = vec![0; numbers.len()];
                let each = numbers.chunks(width.max(1)).zip(rows.chunks_mut(width.max(1)));
                let scales = each.map(|(row, to)| quantise(row, to)).collect();
                Stored::Int8 { rows, scales }
            }
        }
    }

    /// The same numbers with row `i` or, if `columns`, column `i` of the new ones being `from[i]` of the old
    /// ones.
    pub(crate) fn reorder(self, from: &[usize], columns: bool) -> Stored {
        match self {
            Stored::F32(numbers) => Stored::F32(reordered(&numbers, from, columns)),
            Stored::Bf16(numbers) => Stored::Bf16(reordered(&numbers, from, columns)),
            // Every number stays in its row or moves with the whole of it, so that scales remain true.
            Stored::Int8 { rows, scales } => Stored::Int8 {
                rows: reordered(&rows, from, columns),
                scales: if columns { scales } else { reordered(&scales, from, columns) },
            },
        }
    }

    /// As bytes, in the order of safetensors; of int8 the rows alone.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Stored::F32(numbers) => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Stored::Bf16(numbers) => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Stored::Int8 { rows, .. } => rows.iter().map(|&x| x as u8).collect(),
        }
    }
}

fn reordered<T: Copy>(numbers: &[T], from: &[usize], columns: bool) -> Vec<T> {
    if columns {
        return numbers.chunks_exact(from.len()).flat_map(|row| from.iter().map(|&i| row[i])).collect();
    }
    let width = numbers.len() / from.len();
    from.iter().flat_map(|&i| numbers[i * width..][..width].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int8_is_rounded_row_by_row_and_comes_back_as_products() {
        let numbers = Stored::F32(vec![1.27, -0.5, 0.0, 0.0, 0.0, 0.0]);
        let int8 = numbers.into_type(StoredType::Int8, 3);
        assert_eq!(int8, Stored::Int8 { rows: vec![127, -50, 0, 0, 0, 0], scales: vec![1.27 / 127.0, 0.0] });
        assert_eq!(int8.clone().into_type(StoredType::Int8, 3), int8);
        let back = int8.into_f32();
        assert_eq!(back[3..], [0.0; 3]);
        assert!((back[0] - 1.27).abs() < 1e-6 && (back[1] + 0.5).abs() < 1e-6, "{back:?}");
    }

    #[test]
    fn rows_and_columns_change_places_with_their_scales() {
        let numbers = || Stored::Int8 { rows: vec![1, 2, 3, 4, 5, 6], scales: vec![0.5, 2.0] };
        assert_eq!(
            numbers().reorder(&[1, 0], false),
            Stored::Int8 { rows: vec![4, 5, 6, 1, 2, 3], scales: vec![2.0, 0.5] }
        );
        assert_eq!(
            numbers().reorder(&[2, 0, 1], true),
            Stored::Int8 { rows: vec![3, 1, 2, 6, 4, 5], scales: vec![0.5, 2.0] }
        );
        assert_eq!(
            Stored::F32(vec![1.0, 2.0, 3.0]).reorder(&[2, 0, 1], false),
            Stored::F32(vec![3.0, 1.0, 2.0])
        );
    }
}
