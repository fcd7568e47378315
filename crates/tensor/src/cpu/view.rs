//! What is behind the tensors of the backend for the processor: slices, matrices and rows, and whether they fit together.

use super::memory::{Memory, Number};
use super::order::Order;
use super::prepared::Prepared;
use crate::shape::Shape;
use crate::tensor::{DType, Tensor};
use attentive_kernels::attention::Rows;
use attentive_kernels::gemm::{BothWays, Int8Rows, Matrix, PackedWeights, Weights};
use attentive_kernels::{Cpu, Real};
use std::borrow::Cow;
use std::sync::Arc;

/// Does `$body` with `$type` as the type of the numbers in `$x`, which must be one of those of activations.
macro_rules! by_type {
    ($x:expr, $type:ident => $body:expr) => {
        match $x.dtype() {
            $crate::tensor::DType::F32 => {
                type $type = f32;
                $body
            }
            $crate::tensor::DType::Bf16 => {
                type $type = half::bf16;
                $body
            }
            _ => panic!("f32 or bf16 expected, but the tensor is {:?}", $x),
        }
    };
}

pub(super) use by_type;

/// What is behind a tensor of this backend, in whatever order.
pub(super) fn memory(x: &Tensor) -> &Memory {
    x.buffer().get().unwrap_or_else(|| panic!("{x:?} is not in the processor's memory"))
}

/// The numbers of a tensor of this backend, in the usual order.
pub(super) fn data<T: Number>(x: &Tensor) -> &[T] {
    let memory = memory(x);
    assert!(memory.order().is_none(), "{x:?} has the order of a cache, and is for attention alone");
    memory.view().unwrap_or_else(|| panic!("{:?} expected, but the tensor is {x:?}", T::DTYPE))
}

pub(super) fn f32s(x: &Tensor) -> &[f32] {
    data(x)
}

pub(super) fn i32s(x: &Tensor) -> &[i32] {
    data(x)
}

/// The memory of a tensor that is not shared.
fn memory_mut(x: &mut Tensor) -> &mut Memory {
    let (dtype, shape) = (x.dtype(), x.shape());
    let memory = x.buffer_mut().get_mut::<Memory>();
    memory.unwrap_or_else(|| panic!("{dtype:?}{shape} is shared, or not in the processor's memory"))
}

/// The numbers of a tensor that is not shared.
pub(super) fn data_mut<T: Number>(x: &mut Tensor) -> &mut [T] {
    let (dtype, shape) = (x.dtype(), x.shape());
    let numbers = memory_mut(x).view_mut();
    numbers.unwrap_or_else(|| panic!("{:?} expected, but the tensor is {dtype:?}{shape}", T::DTYPE))
}

/// The numbers of a parameter that is not shared, and their packed copies, which have to follow them.
pub(super) fn learned_mut(x: &mut Tensor) -> (&mut [f32], Option<&mut BothWays>) {
    let (dtype, shape) = (x.dtype(), x.shape());
    memory_mut(x).learn().unwrap_or_else(|| panic!("F32 expected, but the tensor is {dtype:?}{shape}"))
}

/// The packed copies of weights, if there are any.
pub(super) fn packed(w: &Tensor) -> Option<&BothWays> {
    memory(w).packed([w.shape().rows(), w.shape().cols()])
}

/// Packs weights for training, if activations are bf16. A weight that had one backward pass will have more.
pub(super) fn pack<T: Number>(cpu: &Cpu, w: &Tensor) {
    if T::DTYPE == DType::Bf16 {
        memory(w).pack(|| BothWays::new(cpu, f32s(w), w.shape().rows(), w.shape().cols()));
    }
}

pub(super) fn matrix<T: Number>(x: &Tensor) -> Matrix<'_, T> {
    Matrix::new(data(x), x.shape().rows(), x.shape().cols())
}

/// The rows of a matrix, quantised; the tensor keeps them.
pub(super) fn quantised<T: Number + Real>(cpu: &Cpu, x: &Tensor) -> Arc<Int8Rows> {
    memory(x).quantised(x.shape().cols(), || Int8Rows::new(cpu, matrix::<T>(x)))
}

pub(super) fn rows<T: Number>(x: &Tensor) -> Rows<'_, T> {
    Rows { data: data(x), stride: x.shape().cols() }
}

/// Weights `[out, in]` as products with `T` take them: as they are, as [`Backend::prepare`](crate::ProductOps::prepare) made them, or
/// packed for both ways.
pub(super) fn weights<T: Number>(w: &Tensor) -> Weights<'_, T> {
    if let Some(prepared) = w.buffer().get::<Prepared>() {
        return prepared.weights(w);
    }
    let learned = packed(w).and_then(BothWays::forward);
    learned.map_or_else(|| Weights::F32(matrix(w).t()), PackedWeights::all)
}

/// The order of what products with these weights give, if it is not the usual one.
pub(super) fn order_of_outputs(w: &Tensor) -> Option<&Order> {
    w.buffer().get::<Prepared>()?.order.as_ref()
}

/// Prepared weights as a table whose rows are looked up, if they can be.
pub(super) fn prepared_table(w: &Tensor) -> Option<&PackedWeights<f32>> {
    w.buffer().get::<Prepared>()?.table()
}

/// A bias in the order of the outputs that it is added to.
pub(super) fn bias_for<'a>(w: &Tensor, bias: &'a Tensor) -> Cow<'a, [f32]> {
    match order_of_outputs(w) {
        Some(order) if memory(bias).order().is_none() => Cow::Owned(order.arrange(f32s(bias))),
        Some(_) => Cow::Borrowed(memory(bias).all()),
        None => Cow::Borrowed(f32s(bias)),
    }
}

pub(super) fn linear_shape(op: &str, x: &Tensor, w: &Tensor) -> Shape {
    let (a, b) = (x.shape(), w.shape());
    assert_eq!(a.cols(), b.cols(), "{op}: x {a} and w {b} do not fit");
    a.with_cols(b.rows())
}

pub(super) fn same_shape(op: &str, a: &Tensor, b: &Tensor) -> Shape {
    assert_eq!(a.shape(), b.shape(), "{op}: {} and {} differ", a.shape(), b.shape());
    a.shape()
}

/// Checks that the spans, which the kernels keep from overlapping, leave out no row: it would stay unwritten.
pub(super) fn covered(op: &str, what: &str, x: &Tensor, lengths: impl Iterator<Item = u32>) {
    let (rows, covered) = (x.shape().rows(), lengths.map(|length| length as usize).sum::<usize>());
    assert_eq!(covered, rows, "{op}: the spans have {covered} {what}, but {} has {rows} rows", x.shape());
}
