//! Weights in the type and the order in which products read them.

use super::memory::Number;
use super::order::Order;
use super::view::f32s;
use super::{CpuBackend, Precision};
use crate::backend::{Form, Raw, Role};
use crate::tensor::{Buffer, DType, Tensor};
use attentive_kernels::gemm::{Int8Weights, Operand, PackedWeights, Weights};
use half::bf16;
use std::borrow::Cow;

/// What a buffer of prepared weights holds.
#[derive(Debug)]
pub(super) struct Prepared {
    packed: Packed,
    /// The order of the columns of what products with them give.
    pub order: Option<Order>,
}

#[derive(Debug)]
enum Packed {
    F32(PackedWeights<f32>),
    Bf16(PackedWeights<bf16>),
    Int8(Int8Weights),
}

impl Prepared {
    /// As products with activations of type `T` take them.
    ///
    /// # Panics
    /// If they were prepared for another precision.
    pub(super) fn weights<T: Number>(&self, name: &Tensor) -> Weights<'_, T> {
        let any: Option<&dyn std::any::Any> = match &self.packed {
            Packed::Int8(weights) => return Weights::Int8(weights),
            Packed::F32(weights) => Some(weights),
            Packed::Bf16(weights) => Some(weights),
        };
        let packed = any.and_then(|weights| weights.downcast_ref::<PackedWeights<T>>());
        let wrong = || panic!("{name:?} was prepared for another precision than {:?}", T::DTYPE);
        packed.map_or_else(wrong, PackedWeights::all)
    }

    /// As a table whose rows are looked up, if it is in f32 and its columns have the usual order.
    pub(super) fn table(&self) -> Option<&PackedWeights<f32>> {
        match &self.packed {
            Packed::F32(table) if self.order.is_none() => Some(table),
            _ => None,
        }
    }
}

impl CpuBackend {
    pub(super) fn prepare_weights(&self, weights: Raw, form: Form, role: Role) -> Tensor {
        let order = Order::of(role, form);
        let shape = match weights {
            Raw::Tensor(weights) => weights.shape(),
            Raw::Int8 { shape, .. } => shape,
        };
        let (n, k) = (shape.rows(), shape.cols());
        if let (Raw::Int8 { rows, scales, .. }, Form::Int8) = (weights, form) {
            let (rows, scales) = (arranged(rows, order.as_ref()), arranged(scales, order.as_ref()));
            let packed = Packed::Int8(Int8Weights::from_rows(&rows, &scales, n, k));
            return Tensor::new(Buffer::new(Prepared { packed, order }), shape, DType::I8);
        }
        let numbers = match weights {
            Raw::Tensor(weights) => Cow::Borrowed(f32s(weights)),
            Raw::Int8 { rows, scales, .. } => {
                let row = |(row, scale): (&[i8], &f32)| {
                    row.iter().map(|&x| f32::from(x) * scale).collect::<Vec<_>>()
                };
                Cow::Owned(rows.chunks_exact(k).zip(scales).flat_map(row).collect())
            }
        };
        let numbers = match &order {
            Some(order) => Cow::Owned(order.arrange(&numbers)),
            None => numbers,
        };
        if shape[..].len() == 1 {
            return self.ordered(self.build(shape, |bias| bias.copy_from_slice(&numbers)), order);
        }
        let (packed, dtype) = match (form, self.precision) {
            (Form::Int8, _) => (Packed::Int8(Int8Weights::new(&self.cpu, &numbers, n, k)), DType::I8),
            (_, Precision::F32) => (Packed::F32(f32::pack(&self.cpu, &numbers, n, k)), DType::F32),
            (_, Precision::Bf16) => (Packed::Bf16(bf16::pack(&self.cpu, &numbers, n, k)), DType::Bf16),
        };
        Tensor::new(Buffer::new(Prepared { packed, order }), shape, dtype)
    }
}

fn arranged<'a, T: Copy>(rows: &'a [T], order: Option<&Order>) -> Cow<'a, [T]> {
    order.map_or(Cow::Borrowed(rows), |order| Cow::Owned(order.arrange(rows)))
}
